// Compares the counts of `capstone explain` with those that Nsight Compute took of the same launches on a GPU
// (scripts/gpu_counts.sh).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/analysis/explain/explain.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "tests/resources.h"

namespace capstone::test {
namespace {
namespace fs = std::filesystem;

const fs::path kSources = CAPSTONE_SOURCES;

/// Null if it cannot be read. Every test notices that, because the record then holds no kernel.
Json record() {
  const auto text = read_file(kSources / "tests/gpu/records/h200/counts.json");
  return text ? Json::parse(*text, nullptr, false) : Json();
}

/// The same sums as in tests/gpu/counts/compare.py.
std::uint64_t count_of(const LineCounts& total, const std::string& counter) {
  if (counter == "global load requests") return total.loads;
  if (counter == "global store requests") return total.stores;
  if (counter == "global sectors") return total.global.units;
  if (counter == "shared wavefronts") return total.shared.units;
  if (counter == "active lanes") return total.global.active_lanes + total.shared.active_lanes;
  ADD_FAILURE() << "the record has an unknown counter: " << counter;
  return 0;
}

class CountsOfAGpu : public testing::TestWithParam<std::string> {};

TEST_P(CountsOfAGpu, AreTheEmulatorsWithinTwoPercent) {
  const auto problem = load_problem(kSources / "tests/gpu/counts/problem");
  ASSERT_TRUE(problem) << render(problem.error());
  const fs::path source = kSources / "tests/gpu/counts/kernels" / GetParam();
  const ExplainRequest request{&*problem, source, problem->emulate, {}};
  const auto explained = explain(request, suite_resources_and_headers(), [](const std::string&) {});
  ASSERT_TRUE(explained) << render(explained.error());
  std::size_t compared = 0;
  const Json recorded = record();
  for (const Json& measured : recorded["kernels"]) {
    if (measured["file"] != GetParam()) continue;
    const auto ours = std::find_if(
        explained->kernels.begin(), explained->kernels.end(),
        [&](const KernelCounts& kernel) { return kernel.kernel == measured["kernel"].get<std::string>(); });
    ASSERT_NE(ours, explained->kernels.end()) << measured["kernel"];
    ++compared;
    for (const Json& counter : measured["counters"]) {
      const auto mine = count_of(ours->total(), counter["counter"]);
      const double gpus = counter["measured"];
      EXPECT_LE(std::abs(static_cast<double>(mine) - gpus), 0.02 * gpus)
          << measured["kernel"] << ": " << counter["counter"] << ", here " << mine;
      EXPECT_EQ(mine, counter["emulated"])
          << measured["kernel"] << ": " << counter["counter"] << " was another when it was recorded";
    }
  }
  EXPECT_EQ(compared, explained->kernels.size()) << "every kernel of the file is in the record";
}

TEST(RecordOfAGpu, CoversEveryFileOfKernels) {
  std::set<std::string> recorded, present;
  const Json whole = record();
  for (const Json& kernel : whole["kernels"]) recorded.insert(kernel["file"].get<std::string>());
  for (const auto& entry : fs::directory_iterator(kSources / "tests/gpu/counts/kernels"))
    present.insert(entry.path().filename());
  EXPECT_EQ(recorded, present);
}

INSTANTIATE_TEST_SUITE_P(H200, CountsOfAGpu,
                         testing::Values("copy.cu", "divergent.cu", "gather.cu", "histogram.cu", "sgemm.cu",
                                         "shared.cu", "transpose.cu"),
                         [](const auto& info) { return info.param.substr(0, info.param.size() - 3); });

}  // namespace
}  // namespace capstone::test
