// How a run went, try by try.
#include "harness/machine/history.h"

#include <gtest/gtest.h>

#include <cmath>

namespace capstone::machine {
namespace {

Node done(const std::string& name, const std::string& verdict, const std::string& failure = {}) {
  Node node;
  node.name = name;
  node.state = NodeState::kDone;
  node.verdict = verdict;
  node.failure = failure;
  return node;
}

Node scored(const std::string& name, double low, bool measured) {
  Node node = done(name, "PASS");
  node.fitness = Fitness{{low + 0.1, low, low + 0.2}, measured};
  return node;
}

std::vector<std::string> names(const std::vector<const Node*>& nodes) {
  std::vector<std::string> list;
  for (const Node* node : nodes) list.push_back(node->name);
  return list;
}

using Names = std::vector<std::string>;

TEST(History, TriesAreWhatWasJudged) {
  Tree tree{done("1", "WRONG"), Node(), done("2", "PASS"), done("3", "PASS")};
  tree.push_back(done("ideas", ""));
  tree.back().kind = NodeKind::kIdeas;
  EXPECT_EQ(names(judged_tries(tree)), (Names{"1", "2", "3"}));
  EXPECT_EQ(names(judged_tries(tree, 2)), (Names{"1", "2"}));
}

TEST(History, TheFormulaIsFittedOnTheFirstTriesAlone) {
  // Three tries, one hit; then no hit in thirteen.
  std::vector<bool> hits(16, false);
  hits[1] = true;
  const Coverage c = coverage_of(hits);
  EXPECT_EQ(c.fitted, 4);
  EXPECT_EQ(c.hits, 1);
  EXPECT_EQ(c.rest, 12);
  EXPECT_EQ(c.rest_hits, 0);
  ASSERT_EQ(c.points.size(), 16u);
  EXPECT_DOUBLE_EQ(c.points[1].formula.point, 1 - 0.75 * 0.75);
  EXPECT_DOUBLE_EQ(c.points[0].measured, 1.0 / 16);
  EXPECT_EQ(c.parts_at, 1);
  EXPECT_FALSE(c.beyond_chance) << "one of four and none of twelve are no contradiction";
  EXPECT_NEAR(c.p.low, 0.0063, 1e-4);  // Clopper and Pearson's for 1 of 4
  EXPECT_NEAR(c.p.high, 0.8059, 1e-4);
}

TEST(History, CurvesThatAgreeDoNotPart) {
  const Coverage all = coverage_of(std::vector<bool>(8, true)),
                 none = coverage_of(std::vector<bool>(8, false));
  EXPECT_EQ(all.parts_at, 0);
  EXPECT_DOUBLE_EQ(all.points[3].formula.point, 1);
  EXPECT_EQ(none.parts_at, 0);
  EXPECT_DOUBLE_EQ(none.points[7].measured, 0);
}

TEST(History, TheEndOfTheMeasuredCurveIsNoParting) {
  const Coverage c = coverage_of({false, false, true, false});
  EXPECT_DOUBLE_EQ(c.points[3].measured, 1);
  EXPECT_GT(c.points[3].measured - c.points[3].formula.point, kApart);
  EXPECT_EQ(c.parts_at, 0);
}

TEST(History, ADifferenceBeyondChanceIsTold) {
  std::vector<bool> hits(60, false);
  for (int i = 0; i < 10; ++i) hits[static_cast<std::size_t>(i)] = true;
  EXPECT_TRUE(coverage_of(hits).beyond_chance);
}

TEST(History, OneTryDrawsNoCurve) {
  EXPECT_TRUE(coverage_of({}).points.empty());
  EXPECT_TRUE(coverage_of({true}).points.empty());
  EXPECT_EQ(tries_to_fit(2), 1);
  EXPECT_EQ(tries_to_fit(8), 3);
  EXPECT_EQ(tries_to_fit(100), 10);
}

TEST(History, ProblemsThatAreNeverSolvedKeepTheMeasuredCurveBelow) {
  const std::vector<bool> easy(8, true), never(8, false);
  const auto points = pooled_coverage({easy, never});
  ASSERT_EQ(points.size(), 4u);  // k = 1, 2, 4, 8
  EXPECT_DOUBLE_EQ(points.back().measured, 0.5);
  EXPECT_DOUBLE_EQ(points.back().formula, 1 - std::pow(0.5, 8));
  EXPECT_TRUE(pooled_coverage({easy}).empty()) << "one problem is not pooled";
}

TEST(History, TheSameMistakeInAnotherLineIsTheSame) {
  const Tree tree{done("1", "WRONG", "wrong result: as if y had the other sign, at [3]"),
                  done("2", "DOES NOT BUILD", "line 4: expected ;"),
                  done("3", "PASS"),
                  done("4", "WRONG", "wrong result: no pattern found"),
                  done("5", "DOES NOT BUILD", "line 17: expected ;\nmore"),
                  done("6", "WRONG", "wrong result: no pattern found")};
  const auto groups = alike_failures(judged_tries(tree));
  ASSERT_EQ(groups.size(), 4u) << "what the judge cannot tell is not taken for the same";
  EXPECT_EQ(names(groups[0].tries), (Names{"2", "5"}));
}

TEST(History, DesignsAndSourcesThatRepeatAreCounted) {
  Tree tree{done("1", "PASS"), done("2", "WRONG"), done("3", "PASS"), done("4", "NO CODE")};
  for (int i = 0; i < 3; ++i) {
    tree[static_cast<std::size_t>(i)].behaviour.movement = i == 0 ? "bulk" : "plain";
    tree[static_cast<std::size_t>(i)].behaviour.arithmetic = "mma";
    tree[static_cast<std::size_t>(i)].tokens_sha256 = i == 1 ? "b" : "a";
  }
  const auto tries = judged_tries(tree);
  const auto designs = alike_designs(tries);
  ASSERT_EQ(designs.size(), 2u);
  EXPECT_EQ(designs[0].what, "plain · mma");
  EXPECT_EQ(names(designs[0].tries), (Names{"2", "3"}));
  EXPECT_EQ(repeated_sources(tries), 1);
}

TEST(History, TheFittestIsNeverModelledDoubtfulOrRefuted) {
  Tree tree{scored("modelled", 9, false), scored("doubtful", 5, true), scored("refuted", 4, true),
            scored("first", 2, true), scored("equal", 2, true)};
  tree[1].labels = {"source: reads the judge"};
  tree[2].confirmed = false;
  const auto tries = judged_tries(tree);
  ASSERT_TRUE(is_measured(tries));
  EXPECT_EQ(fittest(tries, true)->name, "first");
  EXPECT_EQ(fittest(tries, false)->name, "modelled");
  EXPECT_EQ(fittest({}, true), nullptr);
}

TEST(History, TheBestOfMoreTriesIsWorthMoreOnAverage) {
  const Tree tree{scored("a", 1, true), scored("b", 3, true), done("c", "WRONG"), scored("d", 9, false)};
  const auto tries = judged_tries(tree);  // worth 1, 3, 0, 0
  EXPECT_DOUBLE_EQ(expected_best(tries, true, 1).value(), 1);
  EXPECT_NEAR(expected_best(tries, true, 2).value(), (3 * 3 + 2 * 1) / 6.0, 1e-12);
  EXPECT_DOUBLE_EQ(expected_best(tries, true, 4).value(), 3);
  EXPECT_FALSE(expected_best(tries, true, 5));
}

TEST(History, RoundsCountIdeasOverAllIslandsAndKeepTheBestSoFar) {
  Tree tree;
  const auto ideas = [&tree](const std::string& name, int round, int island, const std::string& parent,
                             std::vector<std::string> list) {
    Node node = done(name, "");
    node.kind = NodeKind::kIdeas;
    node.round = round;
    node.island = island;
    node.parent = parent;
    node.ideas = std::move(list);
    tree.push_back(node);
  };
  const auto kernel = [&tree](const std::string& name, int round, int island, const std::string& parent,
                              double low) {
    Node node = scored(name, low, true);
    node.round = round;
    node.island = island;
    node.parent = parent;
    tree.push_back(node);
  };
  ideas("1-1", 1, 1, "", {"coalesced accesses of every thread"});
  ideas("1-2", 1, 2, "", {"coalesced accesses of every thread", "shared memory holds whole tiles"});
  kernel("1-1-1-1", 1, 1, "1-1", 3);
  kernel("1-2-2-1", 1, 2, "1-2", 2);
  ideas("2-1", 2, 1, "1-2-2-1", {"several elements"});
  kernel("2-1-1-1", 2, 1, "2-1", 2.5);
  const auto rounds = rounds_of(tree);
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].islands, 2);
  EXPECT_EQ(rounds[0].ideas, 3);
  EXPECT_EQ(rounds[0].merged, 1);
  EXPECT_EQ(rounds[0].correct, 2);
  EXPECT_EQ(rounds[1].best->name, "2-1-1-1");
  EXPECT_EQ(rounds[1].best_so_far->name, "1-1-1-1");
  EXPECT_EQ(names(ancestry_of(tree, *rounds[1].best)), (Names{"2-1-1-1", "2-1", "1-2-2-1", "1-2"}));
  EXPECT_EQ(rounds_of(tree, 2).size(), 1u);
}

TEST(History, AnAncestryThatGoesInACircleEnds) {
  Tree tree{done("a", "PASS"), done("b", "PASS")};
  tree[0].parent = "b";
  tree[1].parent = "a";
  EXPECT_EQ(ancestry_of(tree, tree[0]).size(), 2u);
}

}  // namespace
}  // namespace capstone::machine
