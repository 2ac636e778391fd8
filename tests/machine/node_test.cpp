// What is kept of a node, and how kernels are compared.
#include "harness/machine/node.h"

#include <gtest/gtest.h>

namespace capstone::machine {
namespace {

TEST(Node, SurvivesTheWayThroughJson) {
  Node node;
  node.name = "2-1-3-1";
  node.parent = "2-1";
  node.round = 2;
  node.island = 1;
  node.idea = "one warp a row";
  node.inspirations = {"1-1-1-1"};
  node.state = NodeState::kDone;
  node.tokens_in = 12;
  node.cost = 0.25;
  node.judge_seconds = 1.5;
  node.verdict = "PASS";
  node.fitness = Fitness{{1.5, 1.4, 1.6}, true};
  node.behaviour = {"memory", 2, 1.5, 256, 4096, "bulk", "wgmma"};
  node.confirmed = true;
  const Node back = Json::parse(Json(node).dump()).get<Node>();
  EXPECT_EQ(Json(back), Json(node));
  EXPECT_TRUE(back.proven());
  EXPECT_EQ(back.behaviour.cell(), "bulk · wgmma · 2 launches · memory · moves up to 2.5x");
}

TEST(Node, OfAnOlderRecordHasNoTimeOfJudging) {
  Json json = Node();
  json.erase("judge_seconds");
  EXPECT_EQ(json.get<Node>().judge_seconds, 0);
}

TEST(Node, SameTokensAreTheSameCodeWhateverItsComments) {
  EXPECT_EQ(token_digest("int a; // one\n"), token_digest("int   a ;/* two */"));
  EXPECT_NE(token_digest("int a;"), token_digest("int b;"));
}

TEST(Node, SourceTellsHowDataMovesAndWhatMultiplies) {
  const Behaviour plain = behaviour_of("y[i] = x[i]; // cp.async would do, and wgmma", nullptr);
  EXPECT_EQ(plain.movement, "plain");
  EXPECT_EQ(plain.arithmetic, "scalar");
  EXPECT_EQ(behaviour_of("asm(\"cp.async.bulk.tensor.2d\");", nullptr).movement, "bulk");
  EXPECT_EQ(behaviour_of("__pipeline_memcpy_async(a, b, 16);", nullptr).movement, "cp.async");
  EXPECT_EQ(behaviour_of("wmma::mma_sync(d, a, b, c);", nullptr).arithmetic, "mma");
}

TEST(Node, ModelledShareFallsWithBytesThatAreTouchedTwice) {
  Explanation e;
  e.compulsory_bytes = 3200;
  e.total.global.units = 100;
  e.floor = ModelledFloor{};
  e.floor->memory_ms = 1;
  EXPECT_DOUBLE_EQ(modelled_share(e).value(), 1);
  e.total.global.units = 400;
  EXPECT_DOUBLE_EQ(modelled_share(e).value(), 0.25);
  e.floor->wavefront_ms = 8;
  EXPECT_DOUBLE_EQ(modelled_share(e).value(), 0.125);
  e.floor.reset();
  EXPECT_FALSE(modelled_share(e));
}

}  // namespace
}  // namespace capstone::machine
