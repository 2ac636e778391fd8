// Command lines and files that are not what they should be.
#include <unistd.h>

#include <algorithm>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using BadInput = CliTest;

TEST_F(BadInput, UnknownProblemGetsTheNearestName) {
  Outcome answer = capstone({"init", "bias_gelu_layernrm", "project"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: no problem `bias_gelu_layernrm`"));
  EXPECT_TRUE(says(answer.err, "  --> "));
  EXPECT_TRUE(says(answer.err, "  hint: did you mean `bias_gelu_layernorm`?"));
  EXPECT_FALSE(fs::exists(home_ / "project"));
}

TEST_F(BadInput, MistypedCommandGetsTheNearestName) {
  Outcome answer = capstone({"mesure"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: unknown command mesure"));
  EXPECT_TRUE(says(answer.err, "hint: did you mean `measure`?"));
  EXPECT_EQ(answer.out, "");
}

TEST_F(BadInput, MistypedSubcommandGetsTheNearestName) {
  Outcome answer = capstone({"llm", "promt"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "hint: did you mean `prompt`?"));
}

TEST_F(BadInput, AFolderThatBeginsWithADashIsToldHowToBeNamed) {
  const Outcome answer = capstone({"init", "sum", "-dash"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "a file or folder of that name is written ./-dash"));
}

TEST_F(BadInput, TheHelpOfACommandThatDoesNotExistIsAnError) {
  for (const auto& words :
       {std::vector<std::string>{"mesure", "--help"}, {"--help", "mesure"}, {"mesure", "-h"}}) {
    const Outcome answer = capstone(words);
    EXPECT_EQ(answer.code, 2) << answer;
    EXPECT_TRUE(says(answer.err, "error: unknown command mesure"));
    EXPECT_TRUE(says(answer.err, "hint: did you mean `measure`?"));
    EXPECT_EQ(answer.out, "");
  }
  const Outcome nested = capstone({"llm", "promt", "--help"});
  EXPECT_EQ(nested.code, 2) << nested;
  EXPECT_TRUE(says(nested.err, "hint: did you mean `prompt`?"));
  EXPECT_EQ(capstone({"measure", "--help"}).code, 0);
  EXPECT_EQ(capstone({"llm", "prompt", "--help"}).code, 0);
  EXPECT_EQ(capstone({"measure", "human", "--help"}).code, 0);
  EXPECT_EQ(capstone({"--version"}).code, 0);
}

TEST_F(BadInput, WhatIsWrongIsSaidInCommandsWithSubcommandsToo) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{"problems", "--tier", "5"}, "error: --tier: 5 is not in range 1 to 3"},
      {{"gradebook", "graded", "--format", "htm"}, "error: --format: htm not in "},
      {{"gradebook", "--roster", "x"}, "error: --roster requires --progress"},
      {{"problems", "sgemm"}, "hint: did you mean `capstone problems show sgemm`?"}};
  for (const auto& [words, text] : cases) {
    const Outcome answer = capstone(words);
    EXPECT_EQ(answer.code, 2) << answer;
    EXPECT_TRUE(says(answer.err, text));
    EXPECT_EQ(answer.err.find("unknown command"),
              words.size() == 2 ? answer.err.find("unknown command sgemm") : std::string::npos)
        << answer;
  }
}

TEST_F(BadInput, NumbersOutOfRangeAndWhatIsNoNumberAreSaidPlainly) {
  const fs::path root = project();
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{"predict", "memory", "--speedup", "-1"}, "error: --speedup must not be negative, not -1\n"},
      {{"predict", "memory", "--speedup", "0"}, "error: --speedup must be greater than 0, not 0\n"},
      {{"predict", "memory", "--speedup", "abc"}, "error: --speedup takes a number, not \"abc\"\n"},
      {{"problems", "--tier", "abc"}, "error: --tier takes a number, not \"abc\"\n"},
      {{"calibrate", "--budget", "0.5"}, "error: --budget: 0.5 is not in range 1 to 3600\n"},
      {{"mark", "ada", "--points", "many"}, "error: --points takes a number, not \"many\"\n"}};
  for (const auto& [words, text] : cases) {
    const Outcome answer = capstone(words, {.cwd = root});
    EXPECT_EQ(answer.code, 2) << answer;
    EXPECT_TRUE(says(answer.err, text));
  }
}

TEST_F(BadInput, MembersThatNobodyCouldReadAreRefusedByInit) {
  for (const char* member :
       {"", "  ", "<ada@example.org>", "A <nomail", "A <nomail>", "A <a@>", "A (id 1", "A <a b@c>"}) {
    const Outcome answer = capstone({"init", "softmax", "bad", "--member", member});
    EXPECT_EQ(answer.code, 2) << member << answer;
    EXPECT_TRUE(says(answer.err, "error: --member ")) << member;
    EXPECT_FALSE(fs::exists(home_ / "bad")) << member;
  }
  EXPECT_EQ(
      capstone({"init", "softmax", "good", "--member", "Ada", "--member", "Bob <b@example.org> (id 7)"}).code,
      0);
  const Outcome nameless =
      capstone({"llm", "add", "-", "--model", " "}, {.cwd = home_ / "good", .input = "x"});
  EXPECT_EQ(nameless.code, 2) << nameless;
  EXPECT_TRUE(says(nameless.err, "error: --model is empty"));
  EXPECT_TRUE(records(home_ / "good", "attempt").empty());
}

TEST_F(BadInput, MistypedFlagGetsTheNearestName) {
  Outcome answer = capstone({"measure", "--bakend", "emulated"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: unknown option --bakend for `capstone measure`"));
  EXPECT_TRUE(says(answer.err, "hint: did you mean `--backend`?"));
}

TEST_F(BadInput, AValueOutsideItsChoicesIsToldWhichThereAre) {
  for (const char* command : {"measure", "ladder", "selftest"}) {
    Outcome answer = capstone({command, "--backend", "emulate"});
    EXPECT_EQ(answer.code, 2) << answer;
    EXPECT_TRUE(says(answer.err,
                     "error: --backend: emulate is none of auto, cuda, emulated; did you mean emulated?"));
  }
  Outcome answer = capstone({"measure", "--execution", "open"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: --execution: open is none of auto, in-process, replayed"));
  EXPECT_TRUE(says(capstone({"measure", "--help"}).out, "--backend auto|cuda|emulated"));
}

TEST_F(BadInput, UnknownRungGetsTheNearestName) {
  Outcome answer = capstone({"init", "softmax", "project", "--from", "onlin"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: no rung named onlin for softmax"));
  EXPECT_TRUE(says(answer.err, "did you mean `02_online`?"));
  EXPECT_FALSE(fs::exists(home_ / "project"));
}

TEST_F(BadInput, NonsenseExpectationIsRefusedBeforeAnythingIsBuilt) {
  fs::path root = project();
  Outcome answer = measure(root, {"--expect", "fast"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: --expect takes a factor, not \"fast\""));
  EXPECT_TRUE(records(root, "measurement").empty());
  expect_ledger_intact(root);
}

TEST_F(BadInput, BrokenProblemOfTheUsersIsReportedByLineAndColumn) {
  fs::copy(fs::path(CAPSTONE_SOURCE_DIR) / "problems" / "sgemm", home_ / "mine", fs::copy_options::recursive);
  fs::permissions(home_ / "mine" / "problem.yaml", fs::perms::owner_write, fs::perm_options::add);
  std::string text = slurp(home_ / "mine" / "problem.yaml");
  std::size_t at = text.find("\ntolerance:");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 11, "\ntolerence:");
  fs::create_directories(home_ / "mine");
  spit(home_ / "mine" / "problem.yaml", text);
  auto line = 2 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  Outcome answer = capstone({"init", "./mine", "project"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: unknown key `tolerence`"));
  EXPECT_TRUE(says(answer.err, "mine/problem.yaml:" + std::to_string(line) + ":1"));
  EXPECT_TRUE(says(answer.err, "hint: did you mean `tolerance`?"));
  EXPECT_FALSE(fs::exists(home_ / "project"));
}

TEST_F(BadInput, OutsideAProjectEveryPathTriedIsNamed) {
  fs::create_directories(home_ / "a" / "b");
  for (const char* command : {"measure", "report", "check", "submit", "ledger"}) {
    Outcome answer = capstone({command}, {.cwd = home_ / "a" / "b"});
    EXPECT_EQ(answer.code, 2) << command << ": " << answer;
    EXPECT_TRUE(says(answer.err, "error: this is not a capstone project"));
    EXPECT_TRUE(says(answer.err, "--> " + (home_ / "a" / "b").string()));
    EXPECT_TRUE(says(answer.err, "hint: create one with `capstone init"));
    EXPECT_TRUE(says(answer.err, (home_ / "a").string() + ", " + home_.string()));
  }
}

TEST_F(BadInput, CommandsWorkFromAFolderInsideTheProject) {
  fs::path root = project();
  EXPECT_EQ(capstone({"ledger", "--verify"}, {.cwd = root / "human"}).code, 0);
}

TEST_F(BadInput, InitNeverOverwritesAnything) {
  fs::create_directories(home_ / "project");
  spit(home_ / "project" / "thesis.txt", "two years of work");
  Outcome answer = capstone({"init", "softmax", "project"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: the folder is not empty, and existing files are never overwritten"));
  EXPECT_TRUE(says(answer.err, "--> " + (home_ / "project").string()));
  EXPECT_TRUE(says(answer.err, "it holds thesis.txt"));
  EXPECT_EQ(slurp(home_ / "project" / "thesis.txt"), "two years of work");
  EXPECT_EQ(std::distance(fs::directory_iterator(home_ / "project"), fs::directory_iterator()), 1);
}

TEST_F(BadInput, InitWhereNothingCanBeWritten) {
  Outcome answer = capstone({"init", "softmax", "/proc/capstone-project"});
  EXPECT_EQ(answer.code, 3) << answer;
  EXPECT_TRUE(says(answer.err, "error: cannot create"));
  EXPECT_TRUE(says(answer.err, "--> /proc"));
  EXPECT_TRUE(says(answer.err, "hint: "));
}

TEST_F(BadInput, CacheThatCannotBeWrittenIsNamedAndNothingIsRecorded) {
  fs::path root = project("project", "02");
  Outcome answer = capstone({"measure", "--backend", "emulated"},
                            {.cwd = root, .env = {{"CAPSTONE_CACHE", "/proc/no-cache"}}});
  EXPECT_EQ(answer.code, 3) << answer;
  EXPECT_TRUE(says(answer.err, "--> /proc/no-cache"));
  EXPECT_TRUE(says(answer.err, "set CAPSTONE_CACHE"));
  EXPECT_TRUE(records(root, "measurement").empty());
  expect_ledger_intact(root);
}

// A worker that somebody else put into the cache would run.
TEST_F(BadInput, CacheThatOthersCanWriteToIsRefused) {
  const fs::path cache = home_ / "cache";
  fs::create_directory(cache);
  auto list = [&] { return capstone({"problems"}, {.env = {{"CAPSTONE_CACHE", cache.string()}}}); };
  fs::permissions(cache, fs::perms::all);
  Outcome answer = list();
  EXPECT_EQ(answer.code, 3) << answer;
  EXPECT_TRUE(says(answer.err, "every user can write to the cache folder"));
  EXPECT_TRUE(says(answer.err, "--> " + cache.string()));
  EXPECT_TRUE(says(answer.err, "set CAPSTONE_CACHE"));
  fs::permissions(cache, fs::perms::owner_all | fs::perms::group_all);
  EXPECT_EQ(list().code, 0);
  EXPECT_EQ(fs::status(cache).permissions(), fs::perms::owner_all) << "closed to the group";
  if (::geteuid() != 0) return;  // only root can give a folder away
  ASSERT_EQ(::chown(cache.c_str(), 65534, 65534), 0);
  answer = list();
  EXPECT_EQ(answer.code, 3) << answer;
  EXPECT_TRUE(says(answer.err, "the cache folder belongs to another user"));
  fs::create_symlink(home_, home_ / "link");
  ASSERT_EQ(::lchown((home_ / "link").c_str(), 65534, 65534), 0);
  EXPECT_EQ(capstone({"problems"}, {.env = {{"CAPSTONE_CACHE", (home_ / "link").string()}}}).code, 3)
      << "another user's link to one of our folders";
}

TEST_F(BadInput, WithoutAHomeTheCacheIsAFolderOfTheUsersOwn) {
  const fs::path temporary = home_ / "tmp", cache = temporary / ("capstone-" + std::to_string(::geteuid()));
  fs::create_directory(temporary);
  const How bare{.env = {{"HOME", ""}, {"CAPSTONE_CACHE", ""}, {"TMPDIR", temporary.string()}}};
  EXPECT_EQ(capstone({"problems"}, bare).code, 0);
  EXPECT_EQ(fs::status(cache).permissions(), fs::perms::owner_all);
  fs::permissions(cache, fs::perms::all);
  const Outcome answer = capstone({"problems"}, bare);
  EXPECT_EQ(answer.code, 3) << answer;
  EXPECT_TRUE(says(answer.err, "--> " + cache.string()));
}

TEST_F(BadInput, StateFolderThatCannotBeWrittenIsNamed) {
  fs::path root = project();
  Outcome answer =
      capstone({"predict", "memory"}, {.cwd = root, .env = {{"XDG_STATE_HOME", "/proc/no-state"}}});
  EXPECT_EQ(answer.code, 3) << answer;
  EXPECT_TRUE(says(answer.err, "--> /proc/no-state"));
  EXPECT_TRUE(says(answer.err, "set XDG_STATE_HOME"));
  expect_ledger_intact(root);
}

TEST_F(BadInput, RungOfAnotherProblemIsSuggestedWithItsProblem) {
  Outcome answer = capstone({"init", "bias_gelu_layernorm", "project", "--from", "03_decoupled_look_bac"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err,
                   "`03_decoupled_look_back` is a rung of scan: capstone init scan --from "
                   "03_decoupled_look_back"));
}

TEST_F(BadInput, DefinitionThatDoesNotLoadFailsItsLint) {
  Outcome answer = capstone({"problems", "lint", "sgem"});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "did you mean `sgemm`?"));
  fs::create_directories(home_ / "mine");
  spit(home_ / "mine" / "problem.yaml", "schema: 1\nid: mine\ntitel: no\n");
  answer = capstone({"problems", "lint", (home_ / "mine").string()});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.out, "FAIL     loads")) << answer;
  EXPECT_TRUE(says(answer.out, "problem.yaml:3:1"));
  EXPECT_TRUE(says(answer.out, "hint: did you mean `title`?"));
}

TEST_F(BadInput, CheckNamesTheSectionThatIsMissing) {
  fs::path root = project();
  std::string text = slurp(root / "worklog.md");
  std::size_t third = text.find("## 3. "), fourth = text.find("## 4. ");
  ASSERT_NE(third, std::string::npos);
  std::string heading = text.substr(third + 6, text.find('\n', third) - third - 6);
  spit(root / "worklog.md", text.substr(0, third) + text.substr(fourth));
  Outcome checked = capstone({"check", "--format", "json"}, {.cwd = root});
  EXPECT_EQ(checked.code, 1) << checked;
  bool named = false;
  for (const Json& finding : Json::parse(checked.out, nullptr, false))
    named |= finding["section"] == 3 && finding["severity"] == "missing" &&
             finding["what"].get<std::string>().find("section") != std::string::npos;
  EXPECT_TRUE(named) << "no finding says that section 3 (" << heading << ") is gone: " << checked;
  EXPECT_EQ(capstone({"report"}, {.cwd = root}).code, 0) << "a report is made of what is there";
  expect_ledger_intact(root);
}

TEST_F(BadInput, CheckMissesMembersAndTheProblemThatWasPinned) {
  ASSERT_EQ(capstone({"init", "softmax", "alone"}).code, 0);
  const fs::path root = home_ / "alone";
  Outcome checked = capstone({"check"}, {.cwd = root});
  EXPECT_EQ(checked.code, 1) << checked;
  EXPECT_TRUE(says(checked.out, "missing: no member is named  (capstone.yaml)"));
  EXPECT_EQ(checked.out.find("pinned copy"), std::string::npos) << checked;
  EXPECT_EQ(checked.out.find("launch.h"), std::string::npos) << checked;
  spit(root / "problem" / "launch.h", slurp(root / "problem" / "launch.h") + "// mine\n");
  EXPECT_TRUE(says(capstone({"check"}, {.cwd = root}).out, "problem/launch.h is not what `init` wrote"));
  std::string yaml = slurp(root / "problem" / "problem.yaml");
  yaml.replace(yaml.find("tier: "), 7, "tier: 3");
  spit(root / "problem" / "problem.yaml", yaml);
  checked = capstone({"check"}, {.cwd = root});
  EXPECT_EQ(checked.code, 1) << checked;
  EXPECT_TRUE(says(checked.out,
                   "missing: the project's pinned copy of the problem was changed, so a verdict on it would "
                   "not count  (problem/)"));
  EXPECT_TRUE(
      says(capstone({"measure"}, {.cwd = root}).err,
           "the project's pinned copy of the problem was changed, so a verdict on it would not count"));
}

TEST_F(BadInput, ChangedPinnedProblemIsRefusedUntilItIsRestored) {
  fs::path root = project("project", "02");
  std::string before = slurp(root / "problem" / "problem.yaml");
  std::string eased = before;
  std::size_t at = eased.find("rtol: ");
  ASSERT_NE(at, std::string::npos);
  eased.insert(at + 6, "9");
  spit(root / "problem" / "problem.yaml", eased);
  Outcome answer = measure(root);
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: the project's pinned copy of the problem was changed"));
  EXPECT_TRUE(says(answer.err, "--> " + (root / "problem").string()));
  EXPECT_TRUE(says(answer.err, "hint: restore problem/"));
  EXPECT_TRUE(records(root, "measurement").empty());
  EXPECT_EQ(capstone({"ledger", "--verify"}, {.cwd = root}).code, 2);
  spit(root / "problem" / "problem.yaml", before);
  expect_ledger_intact(root);
}

// A pinned problem without any dimension, in `check` and in `grade`: an answer, not a crash.
TEST_F(BadInput, APinnedProblemWithoutAnyDimensionIsAnAnswer) {
  const fs::path root = project("in/eve", "01", "vector_add"), yaml = root / "problem" / "problem.yaml";
  fs::permissions(yaml, fs::perms::owner_write, fs::perm_options::add);
  std::string text = slurp(yaml);
  for (std::size_t at = text.find("shape: ["); at != std::string::npos; at = text.find("shape: [", at + 1))
    text.replace(at, text.find(']', at) - at + 1, "shape: []");
  const std::size_t sizes = text.find("\nsizes:"), after = text.find("\ntolerance:");
  ASSERT_NE(sizes, std::string::npos);
  ASSERT_NE(after, std::string::npos);
  text.replace(sizes, after - sizes, "\nsizes: {check: [{}], vary: {}, measure: {}, emulate: {}}");
  spit(yaml, text);
  const Outcome checked = capstone({"check"}, {.cwd = root});
  EXPECT_EQ(checked.code, 2) << checked;
  EXPECT_TRUE(says(checked.err, "the signature has no size symbol"));
  EXPECT_TRUE(says(checked.err, "problem.yaml:"));
  const Outcome graded =
      capstone({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
  const std::string result = slurp(home_ / "graded" / "submissions" / "eve" / "result.json");
  EXPECT_TRUE(graded.code == 0 || graded.code == 4) << graded;
  EXPECT_TRUE(says(result, "the signature has no size symbol"));
  EXPECT_EQ(result.find("\"fault\": \"machine\""), std::string::npos) << result;
}

TEST_F(BadInput, BrokenProjectFileIsReportedByLineAndColumn) {
  fs::path root = project();
  spit(root / "capstone.yaml", slurp(root / "capstone.yaml") + "memberz: []\n");
  Outcome answer = measure(root);
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "capstone.yaml:"));
  EXPECT_TRUE(says(answer.err, "did you mean `members`?"));
}

}  // namespace
}  // namespace capstone::cli_test
