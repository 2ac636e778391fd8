// Recorded ladders as a user asks for them.
#include "harness/workflows/ladder_run.h"

#include <algorithm>

#include "tests/workflows/fixture.h"

namespace capstone::workflows::test {
namespace {

class Ladders : public ProjectTest {};

TEST_F(Ladders, ProblemsOfASession) {
  LadderRun run;
  EXPECT_FALSE(ladder_problems(run, workspace_));  // neither a problem nor a session
  run.session = "L4";
  auto problems = ladder_problems(run, workspace_);
  ASSERT_TRUE(problems) << render(problems.error());
  EXPECT_FALSE(problems->empty());
  run.session = "X9";
  EXPECT_FALSE(ladder_problems(run, workspace_));
}

TEST_F(Ladders, RecordedOnADevice) {
  LadderRun run;
  run.problem = "sgemm";
  auto ladders = recorded_ladders("h200", run, workspace_);
  ASSERT_TRUE(ladders) << render(ladders.error());
  ASSERT_FALSE(ladders->empty());
  const std::size_t all = ladders->front().steps.size();
  ASSERT_GT(all, 1u);
  run.only = {ladders->front().steps.front().rung.name};
  EXPECT_EQ(recorded_ladders("h200", run, workspace_)->front().steps.size(), 1u);
  run.only = {"99"};
  EXPECT_FALSE(recorded_ladders("h200", run, workspace_));
  run.only = {};
  run.one_size = true;
  EXPECT_EQ(recorded_ladders("h200", run, workspace_)->size(), 1u);
  run.problem = "sgem";
  EXPECT_NE(recorded_ladders("h200", run, workspace_).error().hint.find("did you mean `sgemm`"),
            std::string::npos);
  EXPECT_FALSE(recorded_ladders("no_such_device", run, workspace_));
}

TEST_F(Ladders, AtPublishedSizes) {
  LadderRun run;
  run.published = true;
  run.backend = Backend::kEmulated;
  run.problem = "vector_add";  // publishes none
  const auto none = run_ladders(run, workspace_, sink());
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().what.find("no published sizes"), std::string::npos);
  run.problem = "gemm_bf16";
  const auto recorded = recorded_ladders("h200", run, workspace_);
  if (!recorded) {
    EXPECT_NE(recorded.error().what.find("published"), std::string::npos);
    return;
  }
  const auto problem = find_problem(workspace_.resources.problems(), "gemm_bf16");
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->published.size(), 40u);
  for (const Ladder& ladder : *recorded)
    EXPECT_TRUE(std::any_of(problem->published.begin(), problem->published.end(), [&](const auto& named) {
      return sizes_json(named.second) == ladder.sizes;
    })) << ladder.key();
}

TEST_F(Ladders, ALiveLadderNeedsTimes) {
  LadderRun run;
  run.problem = "vector_add";
  run.backend = Backend::kEmulated;
  run.needs_times = true;
  auto live = run_ladders(run, workspace_, sink());
  ASSERT_FALSE(live);
  EXPECT_EQ(live.error().code, ExitCode::kEnvironment);
}

}  // namespace
}  // namespace capstone::workflows::test
