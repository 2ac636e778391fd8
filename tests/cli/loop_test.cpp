// The student's loop: try, watch, status, diff, and what helps at the command line.
#include <signal.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "cli/terminal.h"
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using std::chrono::milliseconds;

class Loop : public CliTest {
 protected:
  /// A project with a right kernel for a small problem.
  fs::path right_kernel(const std::string& name = "project") const {
    return project(name, "01", "vector_add");
  }
  static std::string wrong(std::string source) {
    const std::size_t at = source.find("] + ");
    EXPECT_NE(at, std::string::npos) << source;
    return source.replace(at, 4, "] - ");
  }
  static void break_kernel(const fs::path& root) {
    const fs::path file = root / "human" / "kernel.cu";
    spit(file, wrong(slurp(file)));
  }
  /// Whether a file that a command writes to gets a text, within a minute.
  static bool gets(const fs::path& file, const std::string& text) {
    for (int i = 0; i < 600; ++i) {
      if (slurp(file).find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(milliseconds(100));
    }
    return false;
  }
};

TEST_F(Loop, TryJudgesGateOneAndRecordsNothing) {
  const fs::path root = right_kernel();
  const Outcome passed =
      capstone({"try", "--backend", "emulated", "--hidden", "0", "--quick"}, {.cwd = root});
  EXPECT_EQ(passed.code, 0) << passed;
  EXPECT_TRUE(says(passed.out, "human/kernel.cu: PASS"));
  EXPECT_TRUE(says(passed.out, "build "));
  EXPECT_TRUE(says(passed.out, "check "));
  EXPECT_TRUE(records(root, "measurement").empty());
  EXPECT_TRUE(fs::is_empty(root / ".capstone" / "sources"));

  break_kernel(root);
  const Outcome wrong = capstone({"try", "--backend", "emulated", "--hidden", "0"}, {.cwd = root});
  EXPECT_EQ(wrong.code, 1) << wrong;
  EXPECT_TRUE(records(root, "measurement").empty());
}

TEST_F(Loop, TrySaysThatAKernelIsStillTheStub) {
  const fs::path root = home_ / "stub";
  const Outcome made = capstone({"init", "vector_add", root.string()});
  ASSERT_EQ(made.code, 0) << made;
  EXPECT_TRUE(says(made.out, "no authors yet: name them in capstone.yaml"));
  const Outcome stub = capstone({"try", "--backend", "emulated", "--hidden", "0", "--quick"}, {.cwd = root});
  EXPECT_EQ(stub.code, 1) << stub;
  EXPECT_TRUE(says(stub.out, "this is still the stub that `capstone init` wrote"));
  EXPECT_TRUE(
      says(capstone({"predict", "memory", "--speedup", "2x"}, {.cwd = root}).out, "memory-bound, 2x"));
}

TEST_F(Loop, TryTakesAFileAndSaysWhereThereIsNone) {
  const fs::path root = right_kernel();
  fs::copy_file(root / "human" / "kernel.cu", home_ / "other file.cu");
  const Outcome other = capstone({"try", "other file.cu", "--problem", "vector_add", "--backend", "emulated",
                                  "--hidden", "0", "--quick"});
  EXPECT_EQ(other.code, 0) << other;
  EXPECT_TRUE(says(other.out, "other file.cu: PASS"));
  fs::remove(root / "human" / "kernel.cu");
  const Outcome none = capstone({"try"}, {.cwd = root});
  EXPECT_EQ(none.code, 2) << none;
  EXPECT_TRUE(says(none.err, "human/kernel.cu"));
}

TEST_F(Loop, ACompilerErrorIsShownWithItsSourceLineAndCaret) {
  const fs::path root = project_with(kernel("// nothing\n", "int broken = missing_name;"));
  for (const char* command : {"try", "measure"}) {
    const Outcome outcome = capstone({command, "--backend", "emulated", "--quick"}, {.cwd = root});
    EXPECT_EQ(outcome.code, 1) << outcome;
    EXPECT_TRUE(says(outcome.out, "int broken = missing_name;"));
    EXPECT_TRUE(says(outcome.out, "^~~"));
  }
}

TEST_F(Loop, WatchTriesAgainOnEverySaveReviewsTheWorklogAndWaitsForAVanishedFile) {
  const fs::path root = right_kernel(), file = root / "human" / "kernel.cu";
  const std::string right = slurp(file);
  ProcessSpec spec = this->spec({}, {.cwd = root});
  spec.argv = {"sh", "-c", "exec \"$0\" watch --backend emulated --hidden 0 --quick > ../seen",
               CAPSTONE_BINARY};
  auto watch = Child::start(spec);
  ASSERT_TRUE(watch);
  const fs::path seen = home_ / "seen";
  EXPECT_TRUE(gets(seen, "waiting for the next save"));
  spit(root / "human" / "kernel.cu.new", wrong(right));
  fs::rename(root / "human" / "kernel.cu.new", file);  // as editors save
  EXPECT_TRUE(gets(seen, "human/kernel.cu: WRONG"));
  fs::remove(file);
  EXPECT_TRUE(gets(seen, "human/kernel.cu is not there any more"));
  spit(file, right);
  const std::string gone = "not there any more: waiting until it is saved again\n\nhuman/kernel.cu: PASS";
  EXPECT_TRUE(gets(seen, gone)) << slurp(seen);
  EXPECT_EQ(slurp(seen).find("worklog.md: "), std::string::npos) << "it was not saved";
  spit(root / "worklog.md", slurp(root / "worklog.md") + "\nIt is {{v9.speedup}}.\n");
  EXPECT_TRUE(gets(seen, "first: unknown placeholder {{v9.speedup}} (worklog.md:")) << slurp(seen);
  ::kill(watch->pid(), SIGINT);
  const ProcessResult ended = watch->finish(milliseconds(20000));
  EXPECT_EQ(ended.status, 130) << slurp(seen) << ended.err;
  EXPECT_TRUE(records(root, "measurement").empty());
  EXPECT_EQ(processes_left(), "");
}

TEST_F(Loop, StatusNamesTheOneNextCommand) {
  const fs::path root = right_kernel();
  const auto next = [&] {
    const Outcome answer = capstone({"status", "--format", "json"}, {.cwd = root});
    EXPECT_EQ(answer.code, 0) << answer;
    return Json::parse(answer.out).value("next", "");
  };
  EXPECT_TRUE(says(next(), "capstone predict"));
  EXPECT_EQ(capstone({"predict", "memory", "--because", "bytes"}, {.cwd = root}).code, 0);
  EXPECT_TRUE(says(next(), "capstone measure -m"));
  EXPECT_EQ(measure(root, {"--quick"}).code, 0);
  EXPECT_EQ(next(), "capstone llm prompt");
  break_kernel(root);
  EXPECT_TRUE(says(next(), "capstone measure -m"));
  const Outcome text = capstone({"status"}, {.cwd = root});
  EXPECT_TRUE(says(text.out, "v1: PASS; human/kernel.cu was changed since"));
  EXPECT_EQ(capstone({"status"}).code, 2);
}

TEST_F(Loop, DiffShowsVersionsWithExpectationAndResult) {
  const fs::path root = right_kernel();
  EXPECT_EQ(capstone({"diff"}, {.cwd = root}).code, 2);
  EXPECT_EQ(measure(root, {"--quick"}).code, 0);
  break_kernel(root);
  const Outcome file = capstone({"diff"}, {.cwd = root});
  EXPECT_TRUE(says(file.out, "--- v1 (no expectation, PASS)\n+++ human/kernel.cu (not measured)\n@@"));
  EXPECT_EQ(measure(root, {"--quick", "--expect", "2x"}).code, 1);
  const Outcome versions = capstone({"diff", "v1", "2"}, {.cwd = root});
  EXPECT_EQ(versions.code, 0) << versions;
  EXPECT_TRUE(says(versions.out, "+++ v2 (expected 2.00x, WRONG)"));
  const Outcome none = capstone({"diff", "v1", "v7"}, {.cwd = root});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(says(none.err, "measured: v1, v2"));

  EXPECT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  const std::string page = slurp(root / "report" / "worklog.html");
  EXPECT_TRUE(page.find("From v1 to v2: expected 2.00x, WRONG") != std::string::npos);
  EXPECT_TRUE(page.find("The kernel as it is now: human/kernel.cu") != std::string::npos);
}

TEST_F(Loop, EditorFilesAreWrittenKeptAndFollowAMove) {
  const fs::path root = project("a b", {}, "vector_add");
  const Json commands = Json::parse(slurp(root / "compile_commands.json"));
  EXPECT_EQ(commands[0]["directory"], fs::canonical(root).string());
  for (const Json& argument : commands[0]["arguments"])
    if (const std::string path = argument; path.starts_with("/")) {
      EXPECT_TRUE(fs::exists(path)) << path;
    }
  EXPECT_TRUE(Json::accept(slurp(root / ".vscode" / "tasks.json")));
  spit(root / ".vscode" / "tasks.json", "{}");
  fs::rename(root, home_ / "moved");
  capstone({"try", "--backend", "emulated", "--quick", "--hidden", "0"}, {.cwd = home_ / "moved"});
  EXPECT_EQ(slurp(home_ / "moved" / ".vscode" / "tasks.json"), "{}");
  EXPECT_EQ(Json::parse(slurp(home_ / "moved" / "compile_commands.json"))[0]["directory"],
            fs::canonical(home_ / "moved").string());
  const Outcome plan = capstone({"submit", "--dry-run"}, {.cwd = home_ / "moved"});
  EXPECT_TRUE(says(plan.out, "left out   compile_commands.json"));
}

TEST_F(Loop, HelpIsACommandAndInitExplainsItself) {
  EXPECT_TRUE(says(capstone({"help", "measure"}).out, "--expect"));
  EXPECT_TRUE(says(capstone({"help", "llm", "add"}).out, "--model"));
  const Outcome unknown = capstone({"help", "mesure"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(says(unknown.err, "did you mean `measure`?"));
  const Outcome bare = capstone({"init"});
  EXPECT_EQ(bare.code, 2);
  EXPECT_TRUE(says(bare.err, "capstone problems"));
  EXPECT_TRUE(says(capstone({"init", "vector_add", "a b"}).out, "next: cd 'a b' &&"));
}

TEST_F(Loop, HelpAndVerdictsFoldOnANarrowTerminal) {
  std::error_code code;
  if (!fs::exists("/usr/bin/script", code)) GTEST_SKIP() << "no script(1) here";
  const fs::path root = right_kernel();
  for (const std::string words :
       {"measure --help", "help", "help llm add", "measure --backend emulated --quick --hidden 0"}) {
    const Outcome shown = program({"/usr/bin/script", "-qec",
                                   "stty cols 80; NO_COLOR=1 " + std::string(CAPSTONE_BINARY) + " " + words +
                                       " 2>/dev/null; echo exit=$?",
                                   "/dev/null"},
                                  {.cwd = root});
    ASSERT_TRUE(says(shown.out, "exit=0")) << words;
    std::istringstream lines(shown.out);
    for (std::string line; std::getline(lines, line);) {
      line.erase(std::remove(line.begin(), line.end(), '\r'), line.end());
      if (!line.starts_with("next: ")) {  // a command is pasted as one line
        EXPECT_LE(cli::display_width(line), 80u) << words << ": " << line;
      }
    }
  }
}

std::string path_with_capstone() {
  return fs::path(CAPSTONE_BINARY).parent_path().string() + ":/usr/local/bin:/usr/bin:/bin";
}
bool has(const char* shell) { return fs::exists(fs::path("/usr/bin") / shell); }

TEST_F(Loop, CompletionKnowsValuesAndHidesWhatIsInternal) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome script = capstone({"completion", shell});
    EXPECT_EQ(script.code, 0);
    EXPECT_EQ(script.out.find("grade-one"), std::string::npos) << shell;
    EXPECT_TRUE(says(script.out, "completion --values problems"));
    EXPECT_TRUE(says(script.out, "completion --values versions"));
  }
  EXPECT_TRUE(says(capstone({"completion", "--values", "problems"}).out, "softmax\n"));
  spit(home_ / "complete.sh",
       "eval \"$(capstone completion bash)\"\n"
       "ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _capstone; echo \"${COMPREPLY[@]}\"; }\n"
       "ask capstone measure --backend em\nask capstone init soft\nask capstone grade-\nask capstone measure "
       "hu\n");
  const Outcome answered = program({"bash", "complete.sh"}, {.env = {{"PATH", path_with_capstone()}}});
  EXPECT_EQ(answered.out, "emulated\nsoftmax\n\nhuman\n") << answered;
}

TEST_F(Loop, FishCompletesCommandsValuesAndProblems) {
  if (!has("fish")) GTEST_SKIP() << "no fish here";
  spit(home_ / "complete.fish",
       "capstone completion fish | source\n"
       "for line in 'capstone measure --backend em' 'capstone init softm' 'capstone llm wi' 'capstone run "
       "--check '\n"
       "  complete -C $line\nend\n");
  const Outcome answered = program({"fish", "complete.fish"}, {.env = {{"PATH", path_with_capstone()}}});
  EXPECT_EQ(answered.out, "emulated\nsoftmax\nwithdraw\nall\nmemory\nraces\n") << answered;
  EXPECT_EQ(answered.err, "");
}

TEST_F(Loop, ZshCompletesCommandsValuesAndProblems) {
  if (!has("zsh")) GTEST_SKIP() << "no zsh here";
  // An interactive shell behind a terminal: each read waits for the completed word.
  spit(home_ / "complete.zsh", R"~(zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell 'autoload -U compinit; compinit -u -D; eval "$(capstone completion zsh)"; echo re""ady'
zpty -r shell seen '*ready*'
for line in 'measure --backend em:emulated' 'init softm:softmax' 'llm wi:withdraw'; do
  zpty -w -n shell "capstone ${line%%:*}"$'\t'
  zpty -r shell seen "*${line##*:}*" && print -r -- ${line##*:}
  zpty -w -n shell $'\x15'
done
zpty -d shell
)~");
  const Outcome answered =
      program({"zsh", "-f", "complete.zsh"}, {.env = {{"PATH", path_with_capstone()}, {"TERM", "dumb"}}});
  EXPECT_EQ(answered.out, "emulated\nsoftmax\nwithdraw\n") << answered;
}

TEST_F(Loop, AReasonThatNamesNoCauseIsAskedForOneAndKept) {
  const fs::path root = right_kernel();
  const Outcome vague = measure(root, {"-m", "faster", "--quick"});
  ASSERT_EQ(vague.code, 0) << vague;
  EXPECT_TRUE(says(vague.err, "note: \"faster\" says how it went, not why"));
  EXPECT_EQ(records(root, "measurement").back().at("body").at("reason"), "faster");
  EXPECT_FALSE(says(measure(root, {"-m", "one element a thread", "--quick"}).err, "not why"));
}

}  // namespace
}  // namespace capstone::cli_test
