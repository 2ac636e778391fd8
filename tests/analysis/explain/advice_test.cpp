// The advice on a line follows from its counts.
#include "harness/analysis/explain/advice.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

constexpr double kCompulsory = 1e6;

Advice advice(LineCounts counts, double moved = kCompulsory) {
  counts.line = 7;
  return advice_on(counts, {"k", 1, 1, 32, {}}, kCompulsory, moved);
}
LineCounts global(std::uint64_t sectors, std::uint64_t ideal, std::uint64_t bytes = 128000,
                  std::uint64_t lanes = 32000) {
  LineCounts c;
  c.global = {1000, sectors, ideal, bytes, lanes};
  return c;
}
LineCounts shared(std::uint64_t wavefronts, std::uint64_t lanes = 32000) {
  LineCounts c;
  c.shared = {1000, wavefronts, 1000, 128000, lanes};
  return c;
}

TEST(Advice, StridedLoadIsUncoalescedAndSaysHowMuch) {
  const Advice r = advice(global(32000, 4000));
  EXPECT_EQ(r.pattern, "uncoalesced");
  EXPECT_NE(r.what.find("32.0 sectors of 32 bytes where 4.0 would do: 8.0 times the traffic"),
            std::string::npos)
      << r.what;
  EXPECT_NE(r.remedy.find("threadIdx.x"), std::string::npos);
}
TEST(Advice, LoadsAndStoresOfOneLineAreToldApart) {
  LineCounts c = global(18000, 4000);
  c.loads = c.stores = 500;
  c.store_sectors = 16000;
  const Advice r = advice(c);
  EXPECT_EQ(r.pattern, "uncoalesced");
  EXPECT_NE(
      r.what.find("a load of a warp touches 4.0 sectors of 32 bytes and a store 32.0, where 4.0 would do: "
                  "4.5 times the traffic"),
      std::string::npos)
      << r.what;
}
TEST(Advice, NeighboursThatBeginBetweenSectorsAreMisaligned) {
  for (const std::uint64_t sectors : {5000, 4970}) {  // in.x[i + 1]: a few requests begin at a sector
    const Advice r = advice(global(sectors, 4000));
    EXPECT_EQ(r.pattern, "misaligned");
    EXPECT_NE(r.what.find("5.0 sectors of 32 bytes where 4.0 would do"), std::string::npos) << r.what;
    EXPECT_EQ(r.what.find("minimum"), std::string::npos) << r.what;
  }
}
TEST(Advice, ColumnOfASharedTileIsABankConflict) {
  const Advice r = advice(shared(32000));
  EXPECT_EQ(r.pattern, "bank conflict");
  EXPECT_NE(r.what.find("32.0 wavefronts of shared memory where 1.0 would do: 32 times as long"),
            std::string::npos)
      << r.what;
  EXPECT_NE(r.remedy.find("pad"), std::string::npos);
}
TEST(Advice, FewActiveLanesAreDivergence) {
  EXPECT_EQ(advice(global(2000, 2000, 64000, 16000)).pattern, "divergence");
  EXPECT_EQ(advice(shared(1000, 8000)).pattern, "divergence");
  EXPECT_NE(advice(shared(1000, 8000)).remedy.find("threadIdx.x < n"), std::string::npos);
  EXPECT_NE(advice(shared(32000)).remedy.find("s[threadIdx.x + n]"), std::string::npos);
}
TEST(Advice, LoadingTheSameValuesAgainIsRedundant) {
  const Advice r = advice(global(4000000, 4000000, 128000000, 32000));
  EXPECT_EQ(r.pattern, "redundant loads");
  EXPECT_NE(r.what.find("128 times what the problem has to move"), std::string::npos) << r.what;
}
TEST(Advice, WhereTheLinesTogetherMoveMoreThanTheProblemHasToFewerTripsAreTheRemedy) {
  const Advice once = advice(global(4000, 4000)), thrice = advice(global(4000, 4000), 2 * kCompulsory);
  EXPECT_NE(once.remedy.find("float4"), std::string::npos) << once.remedy;
  EXPECT_NE(thrice.what.find("2.0 times what the problem has to move"), std::string::npos) << thrice.what;
  EXPECT_NE(thrice.remedy.find("read each value once"), std::string::npos) << thrice.remedy;
}
TEST(Advice, ABulkCopyHasNoLanesAndNeedsNoFloat4) {
  LineCounts c = global(4000, 4000, 128000, 0);
  c.global.bulk = c.global.requests;
  const Advice r = advice(c);
  EXPECT_EQ(r.pattern, "traffic");
  EXPECT_NE(r.what.find("by bulk copies"), std::string::npos) << r.what;
  EXPECT_EQ(r.remedy.find("float4"), std::string::npos) << r.remedy;
}
TEST(Advice, AtomicsOfSingleLanes) {
  LineCounts c = global(1000, 1000, 128000, 32000);
  c.atomics = 32000;
  EXPECT_EQ(advice(c).pattern, "atomics");
  EXPECT_NE(advice(c).remedy.find("within a warp"), std::string::npos);
  c = global(20000, 4000);  // to many places: a histogram
  c.atomics = 32000;
  EXPECT_NE(advice(c).remedy.find("privatised histogram"), std::string::npos) << advice(c).remedy;
}
TEST(Advice, IdealTrafficAndArithmeticAreNotBlamed) {
  EXPECT_EQ(advice(global(4000, 4000)).pattern, "traffic");
  LineCounts c = global(4, 4, 128, 32);
  c.flops = 100000000;
  EXPECT_EQ(advice(c).pattern, "arithmetic");
}
TEST(Advice, SlightlyMoreThanIdealIsNoRemark) { EXPECT_EQ(advice(global(4400, 4000)).pattern, "traffic"); }

}  // namespace
}  // namespace capstone
