// Ideas in English: read from a reply, and merged where they say the same.
#include <gtest/gtest.h>

#include "harness/machine/search.h"

namespace capstone::machine {
namespace {

TEST(Ideas, AreReadFromANumberedListWithItsContinuationLines) {
  const auto ideas = ideas_in(
      "Some words first.\n\n1. **One warp a row.** Shuffles replace shared memory.\n   It saves barriers.\n\n"
      "2) Keep the row in registers.\n### 3. Use two streams\nand join them.\n",
      8);
  ASSERT_EQ(ideas.size(), 3u);
  EXPECT_EQ(ideas[0], "**One warp a row.** Shuffles replace shared memory. It saves barriers.");
  EXPECT_EQ(ideas[1], "Keep the row in registers.");
  EXPECT_EQ(ideas[2], "Use two streams and join them.");
}

TEST(Ideas, AreReadFromBulletsWhereNothingIsNumbered) {
  EXPECT_EQ(ideas_in("- tile it\n- fuse it\n", 8), (std::vector<std::string>{"tile it", "fuse it"}));
}

TEST(Ideas, AreNoMoreThanWereAskedFor) { EXPECT_EQ(ideas_in("1. a\n2. b\n3. c\n", 2).size(), 2u); }

TEST(Ideas, DecimalNumbersAndCodeBeginNoIdea) {
  EXPECT_TRUE(ideas_in("The peak is\n3.35 TB/s\n", 4).empty());
  EXPECT_TRUE(ideas_in("no list at all", 4).empty());
}

TEST(Ideas, LikenessIsOfLongerWordsOnly) {
  EXPECT_GE(likeness("Keep the whole row in registers between passes",
                     "keep the row in registers, between the passes, whole"),
            kSameIdea);
  EXPECT_LT(likeness("Keep the whole row in registers", "Split the reduction over two blocks"), kSameIdea);
  EXPECT_EQ(likeness("", ""), 1);
}

TEST(Ideas, OfALaterNodeMergeWithEarlierOnes) {
  Tree tree(2);
  tree[0].name = "1-1";
  tree[0].kind = NodeKind::kIdeas;
  tree[0].ideas = {"Keep the whole row in registers", "Split every row over several blocks"};
  tree[1].name = "1-2";
  tree[1].kind = NodeKind::kIdeas;
  tree[1].ideas = {"Registers keep the whole row", "Use tensor cores for the exponentials"};
  const auto fates = fates_of(tree).at("1-2");
  ASSERT_EQ(fates.size(), 2u);
  EXPECT_EQ(fates[0].same_as, "1-1, idea 1");
  EXPECT_EQ(fates[1].same_as, "");
}

}  // namespace
}  // namespace capstone::machine
