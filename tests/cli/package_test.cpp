// What a package carries: for students without what would solve a problem that counts.
#include <algorithm>
#include <sstream>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using Package = CliTest;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

TEST_F(Package, OfStudentsLeavesOutWhatSolvesAGradedProblem) {
  const std::string script = CAPSTONE_SOURCE_DIR "/scripts/package_files.sh";
  if (program({"git", "-C", CAPSTONE_SOURCE_DIR, "rev-parse"}).code != 0) GTEST_SKIP() << "no git checkout";
  Outcome whole = program({script}), student = program({script, "--student"});
  ASSERT_EQ(whole.code, 0) << whole;
  ASSERT_EQ(student.code, 0) << student;
  const auto all = lines(whole.out), rest = lines(student.out);
  auto has = [&](const std::string& file) { return std::find(rest.begin(), rest.end(), file) != rest.end(); };
  int checked = 0;
  for (const std::string& file : all) {
    if (!file.starts_with("reference_kernels/") || std::count(file.begin(), file.end(), '/') != 3) continue;
    // A ladder of languages names the problem; all of its rungs solve that.
    const std::string ladder =
        slurp(fs::path(CAPSTONE_SOURCE_DIR) / fs::path(file).parent_path() / "ladder.yaml");
    const auto named = ladder.find("\nproblem: ");
    const std::string problem = named == std::string::npos
                                    ? fs::path(file).parent_path().filename().string()
                                    : ladder.substr(named + 10, ladder.find('\n', named + 1) - named - 10);
    const std::string definition =
        slurp(fs::path(CAPSTONE_SOURCE_DIR) / "problems" / problem / "problem.yaml");
    const bool graded = definition.find("\ngraded: true") != std::string::npos,
               first = ladder.empty() && fs::path(file).filename().string().starts_with("01_");
    EXPECT_EQ(has(file), !graded || first) << file;
    checked += graded;
  }
  EXPECT_GT(checked, 20);
  int labs = 0;
  for (const std::string& file : all) {
    if (!file.starts_with("reference_kernels/labs/")) continue;
    std::istringstream lab(slurp(fs::path(CAPSTONE_SOURCE_DIR) / file));
    std::string rung;
    for (std::string line; std::getline(lab, line);)
      if (line.starts_with("rung: ")) rung = "reference_kernels/" + line.substr(6);
    EXPECT_EQ(has(file), has(rung)) << "a lab goes with its rung: " << file;
    labs += has(file);
  }
  EXPECT_GT(labs, 5) << "students have labs, too";
  for (const std::string& file : rest)
    EXPECT_FALSE(file.starts_with("examples/") && !file.starts_with("examples/demos/")) << file;
  EXPECT_TRUE(has("problems/sgemm/baseline.cu")) << "the baseline stays";
  EXPECT_TRUE(has("tests/corpus/README.md"));
  EXPECT_EQ(program({script, "--students"}).code, 2);
}

}  // namespace
}  // namespace capstone::cli_test
