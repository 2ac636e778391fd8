// What each search asks next, from the tree alone.
#include "harness/machine/search.h"

#include <gtest/gtest.h>

#include <set>

namespace capstone::machine {
namespace {

std::vector<std::string> names_of(const std::vector<Node>& nodes) {
  std::vector<std::string> names;
  for (const Node& node : nodes) names.push_back(node.name);
  return names;
}
using Names = std::vector<std::string>;

TEST(Search, SamplesAreIndependentAndMayGrowInNumber) {
  const auto two = make_search(SampleSettings{2});
  Tree tree = two->next({});
  EXPECT_EQ(names_of(tree), (Names{"0001", "0002"}));
  EXPECT_TRUE(two->next(tree).empty());
  EXPECT_EQ(names_of(make_search(SampleSettings{3})->next(tree)), (Names{"0003"}));
}

TEST(Search, ATurnWaitsForTheOneBeforeInItsOwnChain) {
  const auto search = make_search(RefineSettings{2, 3});
  Tree tree = search->next({});
  EXPECT_EQ(names_of(tree), (Names{"1-1", "2-1"}));
  EXPECT_TRUE(search->next(tree).empty());
  tree[1].state = NodeState::kDone;
  const auto next = search->next(tree);
  ASSERT_EQ(names_of(next), (Names{"2-2"}));
  EXPECT_EQ(next[0].parent, "2-1");
}

class Evolution : public ::testing::Test {
 protected:
  // Answers and judges everything that is asked, as `judge` says.
  Tree grow(const EvolveSettings& settings, const std::function<void(Node&)>& judge) {
    const auto search = make_search(settings);
    Tree tree;
    for (;;) {
      for (Node node : search->next(tree)) {
        node.state = NodeState::kDone;
        if (node.kind == NodeKind::kIdeas) {
          for (int i = 0; i < settings.ideas; ++i)
            node.ideas.push_back("idea" +
                                 std::to_string(std::hash<std::string>()(node.name + std::to_string(i))));
        } else {
          node.tokens_sha256 = node.name;
          judge(node);
        }
        tree.push_back(node);
      }
      const auto confirm = search->to_confirm(tree);
      for (const std::string& name : confirm)
        for (Node& node : tree)
          if (node.name == name) node.confirmed = node.failure.empty();
      if (confirm.empty() && search->next(tree).empty()) return tree;
    }
  }
  static void pass(Node& node, double fitness) {
    node.verdict = "PASS";
    node.fitness = Fitness{{fitness, fitness, fitness}, true};
  }
};

TEST_F(Evolution, HasIdeasThenImplementationsThenTheNextRound) {
  EvolveSettings settings;
  settings.rounds = 2;
  settings.islands = 1;
  settings.ideas = 2;
  settings.each = 2;
  const Tree tree = grow(settings, [](Node& node) { pass(node, node.name == "1-1-2-1" ? 2 : 1); });
  EXPECT_EQ(names_of(tree), (Names{"1-1", "1-1-1-1", "1-1-1-2", "1-1-2-1", "1-1-2-2", "2-1", "2-1-1-1",
                                   "2-1-1-2", "2-1-2-1", "2-1-2-2"}));
  EXPECT_EQ(tree[5].parent, "1-1-2-1") << "the fittest that is proven";
  EXPECT_EQ(tree[6].parent, "2-1");
  EXPECT_EQ(tree[6].idea, tree[5].ideas[0]);
}

TEST_F(Evolution, IsTheSameTreeForTheSameSeed) {
  EvolveSettings settings;
  settings.rounds = 4;
  const auto judge = [](Node& node) { pass(node, 1 + 0.1 * static_cast<double>(node.name.size() % 3)); };
  EXPECT_EQ(Json(grow(settings, judge)), Json(grow(settings, judge)));
}

TEST_F(Evolution, ALuckySampleThatIsNotConfirmedNeverBecomesAParent) {
  EvolveSettings settings;
  settings.rounds = 3;
  settings.islands = 2;
  const Tree tree = grow(settings, [](Node& node) {
    pass(node, node.name.ends_with("-1") ? 9 : 1);
    if (node.name.ends_with("-1")) node.failure = "it was luck";
  });
  std::set<std::string> parents;
  for (const Node& node : tree)
    if (node.kind == NodeKind::kIdeas && !node.parent.empty()) parents.insert(node.parent);
  ASSERT_FALSE(parents.empty());
  for (const std::string& parent : parents) EXPECT_TRUE(find_node(tree, parent)->proven()) << parent;
}

TEST_F(Evolution, WrongKernelsNeverBecomeParentsNorInspirations) {
  EvolveSettings settings;
  settings.rounds = 3;
  const Tree tree = grow(settings, [](Node& node) { node.verdict = "WRONG"; });
  for (const Node& node : tree) {
    EXPECT_TRUE(node.inspirations.empty());
    EXPECT_TRUE(node.kind == NodeKind::kKernel || node.parent.empty());
  }
}

TEST_F(Evolution, WhatNeedsAnExplanationIsBuiltOnByNothing) {
  EvolveSettings settings;
  settings.rounds = 3;
  settings.islands = 1;
  const Tree tree = grow(settings, [](Node& node) {
    pass(node, node.name.ends_with("-1") ? 90 : 1);
    if (node.name.ends_with("-1")) node.labels = {"needs an explanation: faster than the memory"};
  });
  for (const Node& node : tree) {
    EXPECT_TRUE(node.kind == NodeKind::kKernel || !node.parent.ends_with("-1"));
    for (const std::string& other : node.inspirations) EXPECT_FALSE(other.ends_with("-1"));
  }
}

TEST_F(Evolution, IslandsMeetAtMigrationsOnly) {
  EvolveSettings settings;
  settings.rounds = 4;
  settings.islands = 2;
  settings.ideas = settings.each = 1;
  settings.migrate_every = 2;
  const Tree tree = grow(settings, [](Node& node) {
    if (node.island == 1)
      pass(node, 2);
    else
      node.verdict = "WRONG";
  });
  EXPECT_EQ(find_node(tree, "2-2")->parent, "");
  EXPECT_TRUE(find_node(tree, "3-2")->parent.starts_with("1-1-") ||
              find_node(tree, "3-2")->parent.starts_with("2-1-"));
}

TEST_F(Evolution, CopiesOfAKernelAreConfirmedOnce) {
  EvolveSettings settings;
  settings.rounds = 1;
  settings.islands = 1;
  const Tree tree = grow(settings, [](Node& node) {
    pass(node, 1);
    node.tokens_sha256 = "the same";
  });
  int confirmed = 0;
  for (const Node& node : tree) confirmed += node.confirmed.has_value();
  EXPECT_EQ(confirmed, 1);
}

TEST(Search, SettingsOutOfRangeAreNamed) {
  const auto wrong = search_from("sample", Json{{"k", 0}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().what, "`k` is 0; it lies between 1 and 100000");
  EXPECT_FALSE(search_from("dream", Json::object()));
}

}  // namespace
}  // namespace capstone::machine
