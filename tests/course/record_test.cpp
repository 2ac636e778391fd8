// A cohort that was graded on a GPU earlier: this version still reads its results, and each has the expected
// verdict.
#include <gtest/gtest.h>

#include <map>

#include "harness/base/csv.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/result.h"
#include "harness/model/upgrade.h"
#include "harness/project/ledger/stored.h"

namespace capstone {
namespace {

TEST(GpuCohort, EveryResultIsReadAndAsExpected) {
  const fs::path folder = fs::path(CAPSTONE_SOURCE_DIR) / "tests" / "gpu" / "records" / "h200" / "cohort";
  auto expected = read_file(folder / "expected.csv"), results = read_ledger_text(folder / "results.jsonl");
  ASSERT_TRUE(expected && results);
  auto table = CsvTable::read(*expected, "expected.csv", {"name", "state", "fault"});
  ASSERT_TRUE(table);
  std::map<std::string, SubmissionResult> all;
  int timed = 0;
  for (const std::string& line : split(std::string(trim(*results)), '\n')) {
    auto result = parse_recorded(line).get<SubmissionResult>();
    bool any = false;
    for (const Measurement& m : result.judged) {
      EXPECT_EQ(m.backend, Backend::kCuda);
      EXPECT_EQ(m.environment["device"], "NVIDIA H200");
      any |= m.measured && m.measured->speedup.has_value();
    }
    timed += any;
    all[result.name] = std::move(result);
  }
  EXPECT_GE(timed, 12);
  ASSERT_EQ(all.size(), table->rows());
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const SubmissionResult& result = all[table->at(i, "name")];
    EXPECT_EQ(name_of(result.state), table->at(i, "state")) << result.name;
    EXPECT_EQ(name_of(result.fault), table->at(i, "fault")) << result.name;
  }
}

}  // namespace
}  // namespace capstone
