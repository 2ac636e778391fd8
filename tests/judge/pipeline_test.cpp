// The steps of the pipeline that need no build: what is bound, and what a problem is at given sizes.
#include "harness/judge/pipeline.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "tests/judge/shipped.h"
#include "tests/resources.h"

namespace capstone {
namespace {

using test::problem_of;

TEST(BoundProblem, EvaluatesEveryShapeOnce) {
  const Problem problem = problem_of("softmax");
  const BoundProblem bound = bound_at(problem, {{"rows", 3}, {"cols", 5}}).value();
  ASSERT_EQ(bound.tensors.size(), 2u);
  EXPECT_EQ(bound.tensors[1].shape, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(bound.tensors[1].elements, 15);
  EXPECT_EQ(bound.tensors[1].bytes, 60u);
  const Layout layout = make_layout(bound, 100).value();
  EXPECT_EQ(layout.tensors.size(), 2u);
  EXPECT_EQ(layout.tensors[0].bytes, 60u);
  const Json args = call_arguments(bound, layout).value();
  EXPECT_EQ(args, call_arguments(problem, layout, bound.sizes).value());
  EXPECT_EQ(args.size(), 4u);
}

TEST(BoundProblem, AnAbsurdShapeIsNamed) {
  const Problem problem = problem_of("softmax");
  const auto bound = bound_at(problem, {{"rows", std::int64_t{1} << 40}, {"cols", std::int64_t{1} << 40}});
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().what, "x does not fit: more than 64 TiB");
}

TEST(Bind, DrawsTheHiddenCasesThatTheOptionsAskFor) {
  const Problem problem = problem_of("softmax");
  JudgeRequest request;
  request.problem = &problem;
  request.options.hidden_cases = 2;
  const Bound bound = bind(request, DrawLimits{}).value();
  int hidden = 0;
  for (const BoundCase& each : bound.cases) {
    hidden += each.plan.id.starts_with("hidden-");
    EXPECT_EQ(each.bound.sizes, each.plan.sizes);
    EXPECT_EQ(each.bound.problem, &problem);
  }
  EXPECT_EQ(hidden, 2);
}

TEST(Bind, TakesTheCaseThatIsReplayed) {
  const Problem problem = problem_of("softmax");
  JudgeRequest request;
  request.problem = &problem;
  request.replay = CasePlan{"hidden-1", {{"rows", 5}, {"cols", 77}}, 42, Battery::kPlain};
  const Bound bound = bind(request, DrawLimits{}).value();
  ASSERT_EQ(bound.cases.size(), 1u);
  EXPECT_EQ(bound.cases[0].plan.seed, 42u);
  EXPECT_FALSE(is_timed(request));
}

// A judgement stops at the step that fails; what came before is in the record.
TEST(EmulatedBackend, ASourceThatDoesNotBuildHasAVerdictAndNothingToRun) {
  const fs::path file = fs::path(testing::TempDir()) / "does_not_build.cu";
  ASSERT_TRUE(write_file_atomic(file, "this is not CUDA\n"));
  const Problem problem = problem_of("softmax");
  JudgeRequest request;
  request.problem = &problem;
  request.candidates = {{"human", file}};
  const Resources resources = test::suite_resources();
  const Sandbox sandbox = Sandbox::detect(resources);
  const Narration say = [](const StageEvent&) {};
  const JudgeContext context{&request, &resources, &say, &sandbox};
  const auto backend = make_emulated_backend(context, OracleInWaiting(request, resources), "no GPU wanted");
  const auto built = backend->build();
  ASSERT_TRUE(built) << built.error().what;
  ASSERT_EQ(built->size(), 1u);
  EXPECT_EQ((*built)[0].program, nullptr);
  EXPECT_EQ((*built)[0].record.gate_one, GateOne::kBuildFailed);
  EXPECT_EQ((*built)[0].record.gate_two_reason, "no GPU wanted");
  const auto checked = backend->check(*built, bind(request, backend->draw_limits()).value());
  ASSERT_TRUE(checked);
  EXPECT_TRUE((*checked)[0].record.cases.empty());
}

}  // namespace
}  // namespace capstone
