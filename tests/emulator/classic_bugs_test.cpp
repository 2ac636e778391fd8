// Bugs that courses know (classic_bugs.cu): the first finding of `capstone run --check all` names line and
// cause.
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/runtime/build/run_program.h"
#include "tests/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

std::filesystem::path classic_bugs() {
  return std::filesystem::path(CAPSTONE_TEST_PROGRAMS).parent_path() / "classic_bugs.cu";
}

ProcessResult check_program(const std::string& name) {
  ProgramRequest request;
  request.source = classic_bugs();
  request.arguments = {name};
  request.every_check = true;
  request.timeout = std::chrono::seconds(1);
  auto run = run_emulated_program(request, test_resources());
  EXPECT_TRUE(run) << render(run.error());
  if (!run) return {};
  EXPECT_TRUE(run->build.result.ok) << run->build.result.log << run->build.not_judgeable;
  return run->process;
}

TEST(ClassicBugs, TheFirstLineNamesPlaceAndCause) {
  constexpr int kAtLeast = 20;
  auto source = read_file(classic_bugs(), std::size_t{1} << 20);
  ASSERT_TRUE(source) << render(source.error());
  int line = 0, bugs = 0;
  for (const std::string& text : split(*source, '\n')) {
    ++line;
    const std::size_t mark = text.find("// FIND "), colon = text.find(": ", mark);
    if (mark == text.npos || colon == text.npos) continue;
    ++bugs;
    const std::string name = text.substr(mark + 8, colon - mark - 8);
    const ProcessResult process = check_program(name);
    EXPECT_EQ(process.status, 1) << name << process.err;
    const std::string first = process.err.substr(0, process.err.find('\n'));
    EXPECT_TRUE(first.starts_with("capstone: classic_bugs.cu:" + std::to_string(line) + ": "))
        << name << " in line " << line << ": " << first;
    EXPECT_NE(first.find(text.substr(colon + 2)), first.npos) << name << ": " << first;
  }
  EXPECT_GE(bugs, kAtLeast);
}

TEST(ClassicBugs, ARightProgramIsNotAccused) {
  const ProcessResult process = check_program("right");
  EXPECT_EQ(process.status, 0);
  EXPECT_EQ(process.out, "end of the program\n");
  EXPECT_EQ(process.err, "");
}

}  // namespace
}  // namespace capstone::test
