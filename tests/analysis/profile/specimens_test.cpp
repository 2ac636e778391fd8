// The specimens of the profiling session: those counters of each pair that the CPU can count. The others need
// a GPU (scripts/gpu_specimens.sh).
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "harness/analysis/explain/explain.h"
#include "harness/analysis/profile/profile.h"
#include "harness/model/problem.h"
#include "tests/resources.h"

namespace capstone {
namespace {

/// How bad a kernel is by each headline counter: 1 is perfect or a fixed unit, more is worse.
using Headline = std::map<std::string, double>;

Headline headline_of(const std::string& specimen) {
  const std::filesystem::path sources = CAPSTONE_SOURCES;
  const auto problem = load_problem(sources / "problems/damped_steps");
  EXPECT_TRUE(problem) << render(problem.error());
  const auto explained =
      explain({&*problem,
               sources / "reference_kernels/L7_profiling/damped_steps" / (specimen + ".cu"),
               problem->emulate,
               {}},
              test::suite_resources(), [](const std::string&) {});
  EXPECT_TRUE(explained) << render(explained.error());
  if (!explained) return {};
  const auto kernels = counts_of(*explained);
  EXPECT_EQ(kernels.size(), 1u);
  const KernelProfile& k = kernels.front();
  return {{"sectors a request", *k.sectors_per_request},
          {"wavefronts over ideal", *k.wavefronts_over_ideal},
          {"lanes that wait", 32 / *k.lanes_per_instruction},
          {"launches", *k.launches}};
}

class Specimens : public testing::Test {
 protected:
  static void SetUpTestSuite() { sound_ = headline_of("08_sound"); }

  /// The specimen's own counter is at least five times worse than the sound kernel's; no other counter
  /// differs by more than a factor of two.
  void expect_only(const std::string& specimen, const std::string& own) {
    for (const auto& [counter, value] : headline_of(specimen)) {
      const double factor = value / sound_.at(counter);
      if (counter == own) {
        EXPECT_GE(factor, 5) << specimen << ": " << counter << " is " << value << ", sound "
                             << sound_.at(counter);
      } else {
        EXPECT_TRUE(factor <= 2 && factor >= 0.5)
            << specimen << ": " << counter << " is " << value << ", sound " << sound_.at(counter);
      }
    }
  }

  static Headline sound_;
};
Headline Specimens::sound_;

TEST_F(Specimens, SoundOneIsSound) {
  EXPECT_LT(sound_.at("sectors a request"), 4);
  EXPECT_DOUBLE_EQ(sound_.at("wavefronts over ideal"), 1);
  EXPECT_LT(sound_.at("lanes that wait"), 1.05);
  EXPECT_DOUBLE_EQ(sound_.at("launches"), 1);
}

TEST_F(Specimens, UncoalescedMovesItsSectors) { expect_only("01_uncoalesced", "sectors a request"); }
TEST_F(Specimens, BankConflictMovesItsWavefronts) {
  expect_only("02_bank_conflict", "wavefronts over ideal");
}
TEST_F(Specimens, SpillMovesNoCounterOfTheCpus) { expect_only("03_spill", ""); }
TEST_F(Specimens, DivergenceMovesItsLanes) { expect_only("04_divergence", "lanes that wait"); }
TEST_F(Specimens, LowOccupancyMovesNoCounterOfTheCpus) { expect_only("05_low_occupancy", ""); }
TEST_F(Specimens, TailWaveMovesNoCounterOfTheCpus) { expect_only("06_tail_wave", ""); }
TEST_F(Specimens, LaunchBoundMovesItsLaunches) { expect_only("07_launch_bound", "launches"); }

}  // namespace
}  // namespace capstone
