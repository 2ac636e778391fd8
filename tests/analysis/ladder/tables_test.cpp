// scripts/ladder_tables.py: the READMEs agree with the committed results.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "harness/analysis/ladder/ladder.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace capstone {
namespace {

const fs::path kSources = CAPSTONE_SOURCES;

ProcessResult tables(std::vector<std::string> arguments, const char* script = "ladder_tables.py") {
  ProcessSpec spec;
  spec.argv = {"python3", (kSources / "scripts" / script).string()};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  const auto result = run_process(spec);
  EXPECT_TRUE(result) << render(result.error());
  return result.value_or(ProcessResult{});
}

TEST(LadderTables, ReadmesSayWhatTheResultsSay) {
  const ProcessResult checked = tables({"--check"});
  EXPECT_TRUE(checked.ok()) << checked.err;
}

TEST(AttentionOverLength, ThePageAndItsDrawingSayWhatTheRecordsSay) {
  const ProcessResult checked = tables({"--check"}, "attention_over_length.py");
  EXPECT_TRUE(checked.ok()) << checked.err;
}

class MadeUp : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    write("reference_kernels/README.md", "<!-- measured -->\n<!-- end of measured -->\n");
    write("reference_kernels/L3_memory/transpose/README.md",
          "# Transpose\n<!-- measured -->\n<!-- end of measured -->\nmore\n");
    for (const char* rung : {"01_naive", "02_shared", "03_padded"})
      write(std::string("reference_kernels/L3_memory/transpose/") + rung + ".cu", rung);
    write("docs/reference/handbook_numbers.md",
          "## 50–100×\n- **Said**: so.\n- **Measured here**: old\n\n## 67 million\n- **Measured here**: "
          "typed\n");
    Ladder ladder;
    ladder.problem = "transpose";
    ladder.sizes = {{"rows", 8192}, {"cols", 8192}};
    ladder.backend = "cuda";
    ladder.device = "NVIDIA Abacus";
    ladder.driver = "1.2";
    ladder.time = "2026-01-01T00:00:00Z";
    ladder.tool = "0";
    ladder.bytes = 5e8;
    ladder.copy_bytes_per_second = 2.5e12;
    for (double ms : {0.8, 0.25}) {
      LadderStep step;
      step.rung.name = ms > 0.5 ? "01_naive" : "02_shared";
      step.code_sha256 = code_digest(ms > 0.5 ? "// as it was then\n01_naive\n" : "another source");
      step.gate_one = "PASS";
      step.ms = {ms, ms, ms};
      step.percent_of_peak = 40;
      step.of_library = {0.5, 0.5, 0.5};
      ladder.steps.push_back(step);
    }
    EXPECT_TRUE(make_folders(root_ / "reference_kernels/results"));
    EXPECT_TRUE(record_ladder(root_ / "reference_kernels/results/abacus.json", ladder));
  }
  void write(const std::string& path, const std::string& text) {
    EXPECT_TRUE(make_folders((root_ / path).parent_path()));
    EXPECT_TRUE(write_file_atomic(root_ / path, text));
  }
  std::string text(const std::string& path) { return read_file(root_ / path).value_or(""); }
  void TearDown() override { fs::remove_all(root_); }
  // Tests run in parallel.
  fs::path root_ = fs::path(testing::TempDir()) / ("capstone-ladder-tables-" + std::to_string(::getpid()));
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST_F(MadeUp, TableHasEveryRungAndTypesNone) {
  EXPECT_FALSE(tables({"--check", "--root", root_.string()}).ok()) << "not written yet";
  ASSERT_TRUE(tables({"--root", root_.string()}).ok());
  const std::string readme = text("reference_kernels/L3_memory/transpose/README.md");
  EXPECT_TRUE(holds(readme, "| 01_naive | 800 µs | 625 | 40.0 % | 25.0 % | 50.0 % |  |")) << readme;
  EXPECT_TRUE(holds(
      readme, "| 02_shared (of an earlier version) | 250 µs | 2000 | 40.0 % | 80.0 % | 50.0 % | 3.20× |"))
      << readme;
  EXPECT_TRUE(holds(readme, "| 03_padded | not measured |")) << readme;
  EXPECT_TRUE(holds(readme, "NVIDIA Abacus, driver 1.2, 2026-01-01")) << readme;
  EXPECT_TRUE(readme.starts_with("# Transpose\n") && readme.ends_with("\nmore\n"))
      << "what a person wrote stays";
  EXPECT_TRUE(holds(text("reference_kernels/README.md"),
                    "| NVIDIA Abacus, rows=8192 cols=8192 | 02_shared | 250 µs | 2000 GB/s |"));
  EXPECT_TRUE(tables({"--check", "--root", root_.string()}).ok());
}

TEST_F(MadeUp, NumbersOfTheHandbookAreFilledInWhereRecordsSayThem) {
  ASSERT_TRUE(tables({"--root", root_.string()}).ok());
  EXPECT_EQ(text("docs/reference/handbook_numbers.md"),
            "## 50–100×\n- **Said**: so.\n- **Measured here**: not measured\n\n## 67 million\n- **Measured "
            "here**: typed\n");
}

TEST_F(MadeUp, MissingPlaceForATableIsAnError) {
  write("reference_kernels/README.md", "nothing\n");
  const ProcessResult refused = tables({"--root", root_.string()});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(holds(refused.err, "must contain <!-- measured -->")) << refused.err;
}

}  // namespace
}  // namespace capstone
