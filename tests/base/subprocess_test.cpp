#include "harness/base/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>

#include "harness/base/text.h"
#include "tests/base/scratch.h"

namespace capstone {
namespace {

using namespace std::chrono_literals;
using End = ProcessResult::End;

ProcessSpec shell(const std::string& script) {
  ProcessSpec spec;
  spec.argv = {"sh", "-c", script};
  spec.timeout = 10s;
  return spec;
}

bool alive(pid_t pid) {
  // A zombie that is not reaped yet counts as dead: its state follows the name in parentheses.
  const std::string stat = test::slurp("/proc/" + std::to_string(pid) + "/stat");
  std::size_t after = stat.rfind(')');
  return after != std::string::npos && after + 2 < stat.size() && stat[after + 2] != 'Z';
}

bool dies_soon(pid_t pid) {
  for (int i = 0; i < 200 && alive(pid); ++i) std::this_thread::sleep_for(10ms);
  return !alive(pid);
}

TEST(Subprocess, ReturnsExitCodeAndBothOutputs) {
  auto result = run_process(shell("echo out; echo err >&2; exit 7"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end, End::kExited);
  EXPECT_EQ(result->status, 7);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
  EXPECT_FALSE(result->ok());
}

TEST(Subprocess, ASignalIsToldApartFromAnExitCode) {
  auto result = run_process(shell("kill -SEGV $$"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end, End::kSignalled);
  EXPECT_EQ(result->status, SIGSEGV);
}

TEST(Subprocess, GivesInputThenEndOfFile) {
  ProcessSpec spec;
  spec.argv = {"cat"};
  spec.input = std::string(300000, 'i') + "end";  // more than a pipe holds
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, spec.input);
  spec.input.clear();
  EXPECT_EQ(run_process(spec)->out, "") << "without input, end of file at once";
}

TEST(Subprocess, AChildThatDoesNotReadItsInputDoesNotKillUs) {
  ProcessSpec spec;
  spec.argv = {"true"};
  spec.input = std::string(1 << 20, 'x');
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ok());
}

TEST(Subprocess, TimeOutKillsTheWholeGroup) {
  test::Scratch scratch;
  auto spec = shell("sh -c 'sleep 100 & echo $! > " + (scratch / "pid").string() + "; wait' & wait");
  spec.timeout = 300ms;
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end, End::kTimedOut);
  EXPECT_LT(result->wall, 5s);
  const std::string pid = test::slurp(scratch / "pid");
  ASSERT_FALSE(pid.empty());
  EXPECT_TRUE(dies_soon(std::stoi(pid))) << "the grandchild must not survive";
}

TEST(Subprocess, AGrandchildLeftBehindIsKilledAndNotWaitedFor) {
  auto result = run_process(shell("sleep 100 & echo $!"));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ok());
  EXPECT_LT(result->wall, 5s) << "it holds our pipe open";
  EXPECT_TRUE(dies_soon(std::stoi(result->out)));
}

TEST(Subprocess, AFloodOfOutputIsCutAndKilled) {
  for (const char* script : {"yes", "yes >&2"}) {
    auto spec = shell(script);
    spec.max_output = 10000;
    auto result = run_process(spec);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->end, End::kTooMuchOutput);
    EXPECT_EQ(std::max(result->out.size(), result->err.size()), 10000u);
    EXPECT_LT(result->wall, 5s);
  }
}

TEST(Subprocess, OutputOfExactlyTheLimitIsNoFlood) {
  auto spec = shell("printf 12345");
  spec.max_output = 5;
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ok());
  EXPECT_EQ(result->out, "12345");
}

// A gigabyte without a newline: tail keeps all of it, in a descendant of the process that we started.
constexpr const char* kHungry = "head -c 1000000000 /dev/zero | tail -n 1 > /dev/null; true";

TEST(Subprocess, MemoryOverTheLimitKillsTheGroup) {
  auto spec = shell(kHungry);
  spec.max_memory = 64u << 20;
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end, End::kTooMuchMemory);
}

TEST(Subprocess, ClosingItsOutputDoesNotHideAChildsMemory) {
  auto spec = shell(std::string("exec >&- 2>&-; ") + kHungry);
  spec.max_memory = 64u << 20;
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end, End::kTooMuchMemory);
}

TEST(Subprocess, TooManyProcessesKillTheTree) {
  auto spec = shell("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 100 & done; wait");
  spec.max_tasks = 8;
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end, End::kTooManyTasks);
  EXPECT_LT(result->wall, 5s);
  spec = shell("sleep 0.2 & sleep 0.2 & wait");
  spec.max_tasks = 8;
  EXPECT_TRUE(run_process(spec)->ok()) << "a few are no crowd";
}

TEST(Subprocess, AProcessThatLeftTheGroupIsKilledToo) {
  test::Scratch scratch;
  const std::string file = (scratch / "pid").string();
  auto spec = shell("(setsid sh -c 'echo $$ > " + file + "; exec sleep 100' &) ; sleep 100");
  spec.timeout = 500ms;
  ASSERT_TRUE(run_process(spec));
  const std::string pid = test::slurp(file);
  ASSERT_FALSE(pid.empty());
  EXPECT_TRUE(dies_soon(std::stoi(pid)));
}

TEST(Subprocess, AFileOverTheLimitStopsTheChild) {
  test::Scratch scratch;
  auto spec = shell("exec head -c 100000 /dev/zero > " + (scratch / "big").string());
  spec.max_file = 5000;
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->ok());
  EXPECT_LE(std::filesystem::file_size(scratch / "big"), 5000u);
}

TEST(Subprocess, AMissingProgramIsAnErrorThatNamesIt) {
  ProcessSpec spec;
  spec.argv = {"capstone-no-such-program"};
  auto result = run_process(spec);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("capstone-no-such-program"), std::string::npos);
  EXPECT_EQ(result.error().code, ExitCode::kEnvironment);

  spec.argv = {"/no/such/program"};
  EXPECT_FALSE(run_process(spec));
  test::Scratch scratch;
  test::put(scratch / "text", "not executable");
  spec.argv = {(scratch / "text").string()};
  EXPECT_FALSE(run_process(spec)) << "a file that may not be executed";
  EXPECT_FALSE(run_process({})) << "no program at all";
}

TEST(Subprocess, AMissingWorkingFolderIsAnError) {
  auto spec = shell("pwd");
  spec.cwd = "/no/such/folder";
  EXPECT_FALSE(run_process(spec));
  test::Scratch scratch;
  spec.cwd = scratch.path();
  EXPECT_EQ(trim(run_process(spec)->out), std::filesystem::canonical(scratch.path()).string());
}

TEST(Subprocess, EnvironmentIsAddedToOrReplaced) {
  ::setenv("CAPSTONE_TEST_OURS", "1", 1);
  auto spec = shell("echo ${CAPSTONE_TEST_OURS-none} ${CAPSTONE_TEST_NEW-none}");
  spec.env = {{"CAPSTONE_TEST_NEW", "2"}};
  EXPECT_EQ(run_process(spec)->out, "1 2\n");
  spec.env = {{"CAPSTONE_TEST_OURS", "changed"}};
  EXPECT_EQ(run_process(spec)->out, "changed none\n");
  spec.env = {{"PATH", "/usr/bin:/bin"}};
  spec.inherit_env = false;
  EXPECT_EQ(run_process(spec)->out, "none none\n");
}

TEST(Subprocess, DescriptorsArriveAtTheNumbersAskedForAndNoOthersDo) {
  test::Scratch scratch;
  test::put(scratch / "a", "A\n");
  test::put(scratch / "b", "B\n");
  int a = ::open((scratch / "a").c_str(), O_RDONLY);
  int b = ::open((scratch / "b").c_str(), O_RDONLY);
  int leaked = ::open((scratch / "a").c_str(), O_RDONLY);  // without O_CLOEXEC: must be closed all the same
  ASSERT_GE(a, 3);
  // Crossed over: a must become b's number and b must become a's number.
  auto spec = shell("cat <&" + std::to_string(b) + "; cat <&" + std::to_string(a) + "; ls /proc/$$/fd");
  spec.fds = {{a, b}, {b, a}};
  auto result = run_process(spec);
  ASSERT_TRUE(result);
  auto lines = split(trim(result->out), '\n');
  ASSERT_GE(lines.size(), 2u) << result->err;
  EXPECT_EQ(lines[0], "A");
  EXPECT_EQ(lines[1], "B");
  lines.erase(lines.begin(), lines.begin() + 2);
  std::sort(lines.begin(), lines.end());
  std::vector<std::string> expected{"0", "1", "2", std::to_string(a), std::to_string(b)};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(lines, expected);
  for (int fd : {a, b, leaked}) ::close(fd);
}

TEST(Subprocess, ABadDescriptorIsAnError) {
  auto spec = shell("true");
  spec.fds = {{-1, 3}};
  EXPECT_FALSE(run_process(spec));
}

TEST(Subprocess, WorksWithoutStandardDescriptorsOfOurOwn) {
  pid_t child = test::in_other_process([] {
    for (int fd : {0, 1, 2}) ::close(fd);
    ProcessSpec spec = shell("cat; echo err >&2");
    spec.input = "in";
    auto result = run_process(spec);
    return result && result->ok() && result->out == "in" && result->err == "err\n" ? 0 : 1;
  });
  EXPECT_EQ(test::exit_code_of(child), 0);
}

TEST(Subprocess, AnInterruptEndsEveryWait) {
  // In a separate process: the request stays set for the rest of a program's life.
  pid_t child = test::in_other_process([] {
    std::thread presser([] {
      std::this_thread::sleep_for(100ms);
      request_interrupt();
    });
    auto result = run_process(shell("sleep 100"));
    presser.join();
    if (!result || result->end != End::kInterrupted) return 1;
    return interrupted() && result->wall < 5s ? 0 : 2;
  });
  EXPECT_EQ(test::exit_code_of(child), 0);
  EXPECT_FALSE(interrupted());
}

TEST(Subprocess, TheChildDiesWithUs) {
  test::Scratch scratch;
  const std::string pid_file = (scratch / "pid").string();
  pid_t parent = test::in_other_process(
      [&] { return run_process(shell("echo $$ > " + pid_file + "; sleep 100 & wait")) ? 0 : 1; });
  for (int i = 0; i < 300 && test::slurp(pid_file).empty(); ++i) std::this_thread::sleep_for(10ms);
  const std::string pid = test::slurp(pid_file);
  ASSERT_FALSE(pid.empty());
  ::kill(parent, SIGKILL);
  test::exit_code_of(parent);
  EXPECT_TRUE(dies_soon(std::stoi(pid)));
}

TEST(Child, OutlivesTheThreadThatStartedIt) {
  std::optional<Child> child;
  std::thread starter([&] {
    auto started = Child::start(shell("sleep 0.3; echo done"));
    if (started) child.emplace(std::move(*started));
  });
  starter.join();
  ASSERT_TRUE(child);
  auto result = child->finish(10s);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.out, "done\n");
}

TEST(Child, RunsUntilFinishedAndFinishingTwiceSaysTheSame) {
  auto child = Child::start(shell("echo started >&2; sleep 100"));
  ASSERT_TRUE(child);
  EXPECT_TRUE(child->running());
  for (int i = 0; i < 300 && child->err_so_far().empty(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(child->err_so_far(), "started\n");
  auto first = child->finish(20ms);
  EXPECT_EQ(first.end, End::kTimedOut);
  EXPECT_FALSE(child->running());
  auto second = child->finish(20ms);
  EXPECT_EQ(second.end, first.end);
  EXPECT_EQ(second.wall, first.wall);
}

TEST(Child, IsKilledWhenItsHandleGoesAway) {
  pid_t pid = 0;
  {
    auto child = Child::start(shell("sleep 100"));
    ASSERT_TRUE(child);
    pid = child->pid();
    EXPECT_TRUE(alive(pid));
  }
  EXPECT_FALSE(alive(pid));
}

TEST(Child, ItsLibrariesAreSeenAndThoseOfItsChildren) {
  auto child = Child::start(shell("sleep 20"));
  ASSERT_TRUE(child);
  std::set<std::string> seen;
  for (int i = 0; i < 200 && !seen.contains("libc.so.6"); ++i) {
    std::this_thread::sleep_for(10ms);
    seen = child->libraries();
  }
  EXPECT_TRUE(seen.contains("libc.so.6"));
  EXPECT_FALSE(seen.contains("sleep")) << "programs are no libraries";
}

TEST(Child, TakesThePlaceOfAnother) {
  auto first = Child::start(shell("sleep 100"));
  auto second = Child::start(shell("echo second"));
  ASSERT_TRUE(first && second);
  pid_t replaced = first->pid();
  *first = std::move(*second);
  EXPECT_TRUE(dies_soon(replaced));
  EXPECT_EQ(first->finish(10s).out, "second\n");
}

TEST(FindProgram, LooksThroughThePathInOrder) {
  test::Scratch scratch;
  test::put(scratch / "one/tool", "#!/bin/sh\n");
  test::put(scratch / "two/tool", "#!/bin/sh\n");
  std::filesystem::create_directories(scratch / "zero/tool");  // a folder of that name is not a program
  std::filesystem::permissions(scratch / "two/tool", std::filesystem::perms::owner_all);
  const std::string path =
      (scratch / "zero").string() + "::" + (scratch / "one").string() + ":" + (scratch / "two").string();
  EXPECT_EQ(find_program("tool", path), scratch / "two/tool") << "the first that may be executed";
  EXPECT_EQ(find_program("other", path), std::nullopt);
}

}  // namespace
}  // namespace capstone
