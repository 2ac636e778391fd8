// The loop of asking and judging: with a scripted model and a scripted judge.
#include "harness/machine/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "harness/base/files.h"

namespace capstone::machine {
namespace {

/// Answers by a function of the question.
class Scripted : public Provider {
 public:
  using Script = std::function<Result<Answer>(const Question&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  std::string description() const override { return "a script"; }
  Result<Answer> ask(const Question& question, const std::stop_token&) override {
    ++asked;
    {
      const std::lock_guard lock(mutex_);
      questions.push_back(question);
    }
    return script_(question);
  }
  std::atomic<int> asked = 0;
  std::vector<Question> questions;

 private:
  Script script_;
  std::mutex mutex_;
};

Answer kernel(const std::string& line) {
  Answer answer;
  answer.text = "```cuda\nextern \"C\" void launch() { " + line + " }\n```\n";
  answer.tokens_in = 10;
  answer.tokens_out = 5;
  answer.cost = 0.5;
  return answer;
}

Answer reply(const std::string& text) {
  Answer answer;
  answer.text = text;
  return answer;
}

class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    fs::remove_all(folder_);
    archive_.emplace(Archive::open(folder_).value());
    auto loaded = load_problem(fs::path(CAPSTONE_SHARE) / "problems" / "softmax");
    problem_ = loaded.value();
    resources_.share = CAPSTONE_SHARE;
    judge_ = [this](const Node&, const fs::path& source, bool again) -> Result<Judged> {
      ++judged_;
      Judged judged;
      const std::string code = read_file(source).value();
      const bool wrong =
          code.find("wrong") != std::string::npos || (again && code.find("lucky") != std::string::npos);
      judged.measurement.gate_one = wrong ? GateOne::kWrong : GateOne::kPassed;
      if (wrong) {
        judged.measurement.cases.emplace_back();
        judged.measurement.cases.back().problem = "wrong result";
        return judged;
      }
      judged.measurement.gate_two = GateTwo::kFaster;
      judged.measurement.measured.emplace();
      const double ratio = code.find("quick") != std::string::npos ? 3 : 2;
      judged.measurement.measured->speedup = Interval{ratio, ratio - 0.1, ratio + 0.1};
      return judged;
    };
  }
  Result<std::string> go(const RunInfo& info, const Search& search, Provider& provider,
                         const Budget& budget = {}) {
    PromptInput standard;
    standard.problem = &problem_;
    standard.resources = &resources_;
    const Prompts prompts(standard, *archive_, 2);
    RunParts parts;
    parts.archive = &*archive_;
    parts.search = &search;
    parts.prompts = &prompts;
    parts.provider = &provider;
    parts.judge = judge_;
    parts.budget = budget;
    parts.ideas = 2;
    parts.judges = 2;
    return run(archive_->run(info.name).value(), parts);
  }
  RunInfo begin(const std::string& kind) {
    RunInfo info;
    info.kind = kind;
    return archive_->begin(info).value();
  }
  Tree tree_of(const RunInfo& info) { return archive_->tree(info).value(); }

  fs::path folder_ = fs::path(::testing::TempDir()) /
                     ("run_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  std::optional<Archive> archive_;
  Problem problem_;
  Resources resources_;
  Judging judge_;
  std::atomic<int> judged_ = 0;
};

TEST_F(RunTest, SamplesAreAskedJudgedAndKept) {
  Scripted model([](const Question& q) -> Result<Answer> {
    if (q.name == "0002") return kernel("wrong();");
    if (q.name == "0003") return reply("I cannot do that.");
    return kernel("good(" + q.name + ");");
  });
  const RunInfo info = begin("sample");
  EXPECT_EQ(go(info, *make_search(SampleSettings{4}), model).value(), "the search is complete");
  const Tree tree = tree_of(info);
  ASSERT_EQ(tree.size(), 4u);
  EXPECT_EQ(tree[0].verdict, "PASS");
  EXPECT_EQ(tree[0].gate_two, "FASTER");
  EXPECT_EQ(tree[1].failure, "wrong result");
  EXPECT_EQ(tree[2].verdict, kNoCode);
  EXPECT_DOUBLE_EQ(tree[3].fitness->low(), 1.9);
  EXPECT_NE(archive_->text(tree[1].reply_sha256)->find("wrong();"), std::string::npos);
  EXPECT_NE(archive_->text(tree[1].prompt_sha256)->find("Row-wise softmax"), std::string::npos);
}

TEST_F(RunTest, TheSameCodeIsJudgedOnce) {
  Scripted model([](const Question&) -> Result<Answer> { return kernel("good();"); });
  const RunInfo info = begin("sample");
  ASSERT_TRUE(go(info, *make_search(SampleSettings{1}), model));
  ASSERT_TRUE(go(info, *make_search(SampleSettings{6}), model));
  EXPECT_EQ(judged_, 1);
  int timed = 0;
  for (const Node& node : tree_of(info)) {
    EXPECT_EQ(node.verdict, "PASS");
    timed += node.judge_seconds > 0;
  }
  EXPECT_EQ(timed, 1) << "what is taken over took no time";
}

TEST_F(RunTest, BudgetEndsTheAskingAndAnotherSittingGoesOn) {
  Scripted model([](const Question& q) -> Result<Answer> { return kernel("good(" + q.name + ");"); });
  const RunInfo info = begin("sample");
  const auto search = make_search(SampleSettings{20});
  Budget budget;
  budget.tries = 7;
  EXPECT_EQ(go(info, *search, model, budget).value(), "7 tries are spent");
  EXPECT_EQ(model.asked, 7);
  budget.tries = 0;
  budget.money = 3.5;
  EXPECT_EQ(go(info, *search, model, budget).value(), "3.5 of money are spent") << "it counts all sittings";
  EXPECT_EQ(model.asked, 7);
  EXPECT_TRUE(go(info, *search, model));
  EXPECT_EQ(model.asked, 20) << "nothing is asked twice";
}

TEST_F(RunTest, AFailingProviderEndsTheRunAndLosesNothing) {
  std::atomic<bool> broken = true;
  Scripted model([&](const Question& q) -> Result<Answer> {
    if (q.name == "0003" && broken)
      return fail("the endpoint does not answer", "https://model", "look at it");
    return kernel("good(" + q.name + ");");
  });
  const RunInfo info = begin("sample");
  const auto search = make_search(SampleSettings{5});
  const auto ended = go(info, *search, model);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().what, "the endpoint does not answer");
  EXPECT_EQ(tree_of(info)[0].verdict, "PASS") << "what was answered before is judged";
  broken = false;
  ASSERT_TRUE(go(info, *search, model));
  for (const Node& node : tree_of(info)) EXPECT_EQ(node.verdict, "PASS");
}

TEST_F(RunTest, AFailingMachineIsNoVerdict) {
  judge_ = [](const Node&, const fs::path&, bool) -> Result<Judged> { return fail("no compiler"); };
  Scripted model([](const Question&) -> Result<Answer> { return kernel("good();"); });
  const RunInfo info = begin("sample");
  EXPECT_EQ(go(info, *make_search(SampleSettings{1}), model).error().what, "no compiler");
  EXPECT_EQ(tree_of(info)[0].state, NodeState::kAnswered);
}

TEST_F(RunTest, ATurnGetsTheWholeConversationAndTheJudgesWords) {
  Scripted model([](const Question& q) -> Result<Answer> {
    if (q.name == "1-1") return reply("no code today");
    return kernel(q.name == "1-2" ? "wrong();" : "good();");
  });
  const RunInfo info = begin("refine");
  ASSERT_TRUE(go(info, *make_search(RefineSettings{1, 3}), model));
  ASSERT_EQ(model.questions.size(), 3u);
  const auto& last = model.questions[2].conversation;
  ASSERT_EQ(last.size(), 5u);
  EXPECT_EQ(last[0].role, "user");
  EXPECT_NE(last[0].text.find("# Write a CUDA kernel"), std::string::npos);
  EXPECT_EQ(last[1].text, "no code today");
  EXPECT_NE(last[2].text.find("Your reply holds no kernel"), std::string::npos);
  EXPECT_EQ(last[3].role, "assistant");
  EXPECT_NE(last[4].text.find("Gate one: **WRONG**"), std::string::npos);
  EXPECT_NE(last[4].text.find("## How to answer"), std::string::npos);
}

TEST_F(RunTest, EvolutionBuildsOnWhatWasConfirmed) {
  Scripted model([](const Question& q) -> Result<Answer> {
    if (q.name == "1-1") return reply("1. Registers hold everything.\n2. Shared memory with padding.\n");
    if (q.name == "2-1")
      return reply("1. Vectorised loads of sixteen bytes.\n2. Several rows for each block.\n");
    if (q.name == "1-1-1-1") return kernel("quick(); lucky();");
    return kernel("good(" + std::to_string(std::hash<std::string>()(q.name)) + ");");
  });
  const RunInfo info = begin("evolve");
  EvolveSettings settings;
  settings.rounds = 2;
  settings.islands = 1;
  settings.ideas = 2;
  settings.each = 1;
  ASSERT_TRUE(go(info, *make_search(settings), model));
  const Tree tree = tree_of(info);
  const Node* lucky = find_node(tree, "1-1-1-1");
  EXPECT_EQ(lucky->confirmed, false);
  EXPECT_EQ(lucky->failure, "not confirmed: wrong result");
  EXPECT_EQ(find_node(tree, "2-1")->parent, "1-1-2-1");
  const auto ideas = std::find_if(model.questions.begin(), model.questions.end(),
                                  [](const Question& q) { return q.name == "2-1"; });
  ASSERT_NE(ideas, model.questions.end());
  const std::string& prompt = ideas->conversation[0].text;
  EXPECT_NE(prompt.find("## The kernel to improve"), std::string::npos);
  EXPECT_NE(prompt.find("exactly 2 ideas"), std::string::npos);
  EXPECT_NE(prompt.find("## Tried already"), std::string::npos);
  EXPECT_EQ(prompt.find("Answer with the complete file"), std::string::npos) << "ideas, no code yet";
  const auto code = std::find_if(model.questions.begin(), model.questions.end(),
                                 [](const Question& q) { return q.name == "2-1-1-1"; });
  ASSERT_NE(code, model.questions.end());
  EXPECT_NE(code->conversation[0].text.find("## The idea to implement\n\nVectorised loads"),
            std::string::npos);
  EXPECT_NE(code->conversation[0].text.find("Answer with the complete file"), std::string::npos);
}

}  // namespace
}  // namespace capstone::machine
