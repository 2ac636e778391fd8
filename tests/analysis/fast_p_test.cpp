#include "harness/analysis/fast_p.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

Solution solved(const std::string& problem, double low, double point, double high) {
  return {problem, true, Interval{point, low, high}};
}

TEST(FastP, IsStrictAndCountsWhatIsWrong) {
  const std::vector<Solution> solutions{
      solved("a", 0.9, 1.0, 1.1), solved("b", 1.8, 2.0, 2.2), {"c", false, {}}, {"d", true, {}}};
  EXPECT_EQ(fast_p(solutions, 0).hits, 3) << "p = 0 is: correct";
  EXPECT_EQ(fast_p(solutions, 1).hits, 1) << "exactly as fast is not faster";
  EXPECT_EQ(fast_p(solutions, 2).hits, 0);
  EXPECT_EQ(fast_p(solutions, 1).problems, 4);
  EXPECT_DOUBLE_EQ(fast_p(solutions, 1).share.point, 0.25);
}

TEST(FastP, BestSampleOfAProblemCountsOnce) {
  const std::vector<Solution> solutions{
      solved("a", 1.4, 1.5, 1.6), solved("a", 2.4, 2.5, 2.6), {"a", false, {}}};
  EXPECT_EQ(fast_p(solutions, 2).hits, 1);
  EXPECT_EQ(fast_p(solutions, 2).problems, 1);
}

TEST(FastP, ResolvedNeedsTheWholeInterval) {
  const std::vector<Solution> solutions{solved("a", 0.95, 1.05, 1.15), solved("b", 1.02, 1.05, 1.08)};
  EXPECT_EQ(fast_p(solutions, 1).hits, 2);
  EXPECT_EQ(fast_p(solutions, 1).resolved, 1);
}

TEST(FastP, BandIsExact) {
  const FastPoint none = fast_p({{"a", false, {}}, {"b", false, {}}, {"c", false, {}}}, 1);
  EXPECT_DOUBLE_EQ(none.share.low, 0);
  EXPECT_NEAR(none.share.high, 1 - std::pow(0.025, 1.0 / 3), 1e-9);
  EXPECT_EQ(fast_p({}, 1).problems, 0);
}

TEST(PassAtK, IsTheUnbiasedEstimator) {
  EXPECT_DOUBLE_EQ(*pass_at_k(10, 3, 1), 0.3);
  EXPECT_NEAR(*pass_at_k(10, 3, 5), 1 - 21.0 / 252, 1e-12) << "1 - C(7, 5) / C(10, 5)";
  EXPECT_DOUBLE_EQ(*pass_at_k(4, 4, 2), 1);
  EXPECT_DOUBLE_EQ(*pass_at_k(4, 0, 2), 0);
  EXPECT_FALSE(pass_at_k(4, 2, 5)) << "four samples say nothing about five";
  EXPECT_NEAR(*pass_at_k(2000, 1000, 1000), 1, 1e-12) << "no overflow";
}

TEST(PassAtK, BoardsFormulaIsTooLow) {
  std::vector<Solution> solutions;
  for (int i = 0; i < 10; ++i) solutions.push_back({"a", i < 3, {}});
  const PassAtK pass = pass_at_k(solutions, 5);
  EXPECT_NEAR(pass.unbiased, 0.916667, 1e-6);
  EXPECT_NEAR(pass.board, 1 - std::pow(0.7, 5), 1e-12);
  EXPECT_LT(pass.board, pass.unbiased);
}

TEST(EvalResults, AreMatchedWithTheReferenceByNumber) {
  const Json results =
      Json::parse(R"({"1": [{"sample_id": 0, "compiled": true, "correctness": true, "runtime": 2.0}],
                                       "2": [{"sample_id": 0, "compiled": false, "correctness": false, "runtime": -1}], "3": []})");
  const Json baseline =
      Json::parse(R"({"level1": {"1_Square.py": {"mean": 5.0}, "2_Other.py": {"mean": 1.0}}})");
  const auto solutions = read_eval_results(results, baseline);
  ASSERT_TRUE(solutions) << render(solutions.error());
  EXPECT_EQ(fast_p(*solutions, 2).hits, 1);
  EXPECT_EQ(fast_p(*solutions, 2.5).hits, 0);
  EXPECT_EQ(fast_p(*solutions, 0).problems, 3) << "what was not handed in counts";
}

TEST(EvalResults, ThatAreNoneAreAnError) {
  EXPECT_FALSE(read_eval_results(Json::array(), {}));
  EXPECT_FALSE(read_eval_results(Json::parse(R"({"1": [{"runtime": 3}]})"), {}));
}

}  // namespace
}  // namespace capstone
