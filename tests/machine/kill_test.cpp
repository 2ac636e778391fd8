// A run that is killed at any moment goes on, and ends with the tree that it would have had.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/machine/run.h"

namespace capstone::machine {
namespace {

/// Answers that follow from the question's name, after a moment.
class Slow : public Provider {
 public:
  std::string description() const override { return "a slow script"; }
  Result<Answer> ask(const Question& question, const std::stop_token&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const std::string mark = sha256_hex(question.name).substr(0, 8);
    Answer answer;
    answer.text = question.name.size() <= 3
                      ? "1. " + mark + "one does\n2. " + mark + "other thing\n3. " + mark + "third way\n"
                      : "```cuda\nextern \"C\" void launch() { f(0x" + mark + "); }\n```\n";
    return answer;
  }
};

Result<Judged> judge(const Node&, const fs::path& source, bool) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CAPSTONE_TRY(const std::string code, read_file(source));
  const std::string digest = sha256_hex(code);
  Judged judged;
  judged.measurement.gate_one = digest[0] < '8' ? GateOne::kPassed : GateOne::kWrong;
  judged.measurement.gate_two = GateTwo::kTie;
  judged.measurement.measured.emplace();
  const double ratio = 1 + 0.01 * digest[1];
  judged.measurement.measured->speedup = Interval{ratio, ratio, ratio};
  return judged;
}

Result<std::string> evolve(const fs::path& folder) {
  CAPSTONE_TRY(const Archive archive, Archive::open(folder));
  CAPSTONE_TRY(const auto runs, archive.runs());
  RunInfo info;
  info.kind = "evolve";
  if (runs.empty()) {
    CAPSTONE_TRY(info, archive.begin(info));
  } else {
    info = runs.front();
  }
  CAPSTONE_TRY(const Problem problem, load_problem(fs::path(CAPSTONE_SHARE) / "problems" / "vector_add"));
  Resources resources;
  resources.share = CAPSTONE_SHARE;
  PromptInput standard;
  standard.problem = &problem;
  standard.resources = &resources;
  const Prompts prompts(standard, archive, 3);
  EvolveSettings settings;
  settings.rounds = 4;
  settings.ideas = 3;
  const auto search = make_search(settings);
  Slow provider;
  RunParts parts;
  parts.archive = &archive;
  parts.search = search.get();
  parts.prompts = &prompts;
  parts.provider = &provider;
  parts.judge = judge;
  parts.ideas = settings.ideas;
  parts.judges = 2;
  return run(info, parts);
}

// Without what depends on time.
Json tree_in(const fs::path& folder) {
  const Archive archive = Archive::open(folder).value();
  Tree tree = archive.tree(archive.runs().value().front()).value();
  for (Node& node : tree) node.seconds = node.judge_seconds = 0;
  return tree;
}

TEST(KilledRun, GoesOnAtTwentyRandomMomentsAndGrowsTheSameTree) {
  const fs::path whole = fs::path(::testing::TempDir()) / "run_whole",
                 killed = fs::path(::testing::TempDir()) / "run_killed";
  fs::remove_all(whole);
  fs::remove_all(killed);
  ASSERT_EQ(evolve(whole).value(), "the search is complete");
  std::mt19937 random(std::random_device{}());
  int ended_by_itself = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(evolve(killed) ? 0 : 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + random() % 40));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ended_by_itself += WIFEXITED(status);
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << "it failed instead of going on";
  }
  EXPECT_LT(ended_by_itself, 20) << "it was too fast to be killed even once";
  ASSERT_EQ(evolve(killed).value(), "the search is complete");
  const Json expected = tree_in(whole);
  EXPECT_GE(expected.size(), 40u);
  EXPECT_EQ(tree_in(killed), expected);
}

}  // namespace
}  // namespace capstone::machine
