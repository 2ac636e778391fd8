#include "harness/base/spelling.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

TEST(Spelling, CountsInsertDeleteReplaceAndSwap) {
  EXPECT_EQ(edit_distance("measure", "measure"), 0);
  EXPECT_EQ(edit_distance("mesure", "measure"), 1);
  EXPECT_EQ(edit_distance("measuree", "measure"), 1);
  EXPECT_EQ(edit_distance("maesure", "measure"), 1);  // two neighbours swapped
  EXPECT_EQ(edit_distance("Measure", "mEASURE"), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

TEST(Spelling, SuggestsWhatWasMeant) {
  const std::vector<std::string> commands{"init", "predict", "measure", "explain", "layernorm_forward"};
  EXPECT_EQ(nearest("mesaure", commands), "measure");
  EXPECT_EQ(nearest("inti", commands), "init");
  EXPECT_EQ(nearest("layernorm", commands), "layernorm_forward") << "a beginning is near";
  EXPECT_EQ(nearest("forward", commands), "layernorm_forward") << "a part is near";
}

TEST(Spelling, SuggestsNothingForSomethingElse) {
  EXPECT_EQ(nearest("kubernetes", {"init", "measure"}), std::nullopt);
  EXPECT_EQ(nearest("x", {"ab", "y"}), std::nullopt) << "one wrong letter of one is all of it";
  EXPECT_EQ(nearest("no", {"id"}), std::nullopt);
  EXPECT_EQ(nearest("anything", {}), std::nullopt);
}

}  // namespace
}  // namespace capstone
