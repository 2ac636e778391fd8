// What a run has come to.
#include "harness/machine/summary.h"

#include <gtest/gtest.h>

namespace capstone::machine {
namespace {

Node done(const std::string& name, const std::string& verdict, const std::string& gate_two = {}) {
  Node node;
  node.name = name;
  node.state = NodeState::kDone;
  node.verdict = verdict;
  node.gate_two = gate_two;
  return node;
}

TEST(Summary, CountsBothGatesAndTheFirstFailureOfEachClass) {
  Tree tree{done("1", "WRONG"), done("2", "PASS", "FASTER"), done("3", "DOES NOT BUILD"), done("4", "WRONG")};
  tree[0].failure = "the last column";
  tree[1].fitness = Fitness{{2, 1.9, 2.1}, true};
  tree.emplace_back();  // planned
  const Summary s = summarise(tree, {});
  EXPECT_EQ(s.kernels, 5);
  EXPECT_EQ(s.judged, 4);
  EXPECT_EQ(s.correct, 1);
  EXPECT_EQ(s.faster, 1);
  EXPECT_EQ(s.best, "2");
  ASSERT_EQ(s.failures.size(), 2u);
  EXPECT_EQ(s.failures[0].verdict, "WRONG");
  EXPECT_EQ(s.failures[0].count, 2);
  EXPECT_EQ(s.failures[0].first, "1");
  EXPECT_EQ(s.failures[0].line, "the last column");
  ASSERT_EQ(s.table.size(), 3u);  // k = 1, 2, 4
  EXPECT_DOUBLE_EQ(s.table[0].correct, 0.25);
  EXPECT_DOUBLE_EQ(s.table[1].correct, 0.5);            // 1 - C(3, 2) / C(4, 2)
  EXPECT_DOUBLE_EQ(s.table[1].board, 1 - 0.75 * 0.75);  // 0.4375
  EXPECT_DOUBLE_EQ(s.table[2].correct, 1);
  EXPECT_DOUBLE_EQ(fast_share(tree, 1.5).value(), 0.25);
  EXPECT_DOUBLE_EQ(fast_share(tree, 2).value(), 0);
}

TEST(Summary, AConfirmedKernelIsBetterThanALuckyOne) {
  Tree tree{done("lucky", "PASS"), done("proven", "PASS")};
  tree[0].fitness = Fitness{{3, 2.9, 3.1}, true};
  tree[1].fitness = Fitness{{2, 1.9, 2.1}, true};
  tree[1].confirmed = true;
  EXPECT_EQ(summarise(tree, {}).best, "proven");
}

TEST(Summary, OfNothingDividesByNothing) {
  const Summary s = summarise({}, {});
  EXPECT_TRUE(s.table.empty());
  EXPECT_FALSE(fast_share({}, 1));
}

}  // namespace
}  // namespace capstone::machine
