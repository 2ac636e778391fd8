// What a confined process can reach, and what it cannot.
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "harness/base/text.h"
#include "harness/runtime/sandbox/orphans.h"
#include "tests/runtime/sandbox/places.h"

namespace capstone::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class Confined : public InPlace {
 protected:
  ProcessResult shell(const std::string& script, const Access& access = {}) const {
    ProcessSpec spec;
    spec.argv = {"/bin/bash", "-c", script};
    spec.timeout = 20s;
    auto result = run_process(sandbox_.confine(spec, access));
    EXPECT_TRUE(result) << render(result.error());
    return result ? *result : ProcessResult{};
  }
  Scratch scratch_;
};
INSTANTIATE_TEST_SUITE_P(Sandbox, Confined, ::testing::Values("bubblewrap", "landlock"), name_of_place);

TEST_P(Confined, SaysWhichItIs) {
  const std::string kind = GetParam();
  EXPECT_TRUE(sandbox_.description().starts_with(kind == "landlock" ? "Landlock + seccomp (bubblewrap: "
                                                                    : "bubblewrap"))
      << sandbox_.description();
  EXPECT_EQ(isolation_advice(sandbox_, resources_).empty(), kind == "bubblewrap");
}

TEST_P(Confined, RunsAndHandsOnTheExitCode) {
  EXPECT_EQ(shell("exit 7").status, 7);
  EXPECT_EQ(shell("echo hello").out, "hello\n");
}

TEST_P(Confined, ReadsTheSystemAndWhatItWasGivenAndNothingElse) {
  put(scratch_ / "given/file", "given");
  put(scratch_ / "secret", "secret");
  fs::create_symlink(scratch_ / "secret", scratch_ / "given/link");
  const Access access{{scratch_ / "given"}, {}, false};
  EXPECT_EQ(shell("cat " + (scratch_ / "given/file").string(), access).out, "given");
  for (const std::string& path : {(scratch_ / "secret").string(), (scratch_ / "given/link").string(),
                                  (scratch_ / "given/../secret").string(), std::string("/etc/passwd"),
                                  std::string("/etc/shadow"), fs::absolute(__FILE__).string()}) {
    ProcessResult result = shell("cat < " + path, access);
    EXPECT_NE(result.status, 0) << path;
    EXPECT_EQ(result.out, "") << path;
  }
  EXPECT_EQ(shell("ls /root /home " + scratch_.path().string() + " 2>/dev/null", access).out.find("secret"),
            std::string::npos);
}

// As below /usr/local: a folder above our own files is open to every process, and they are not.
TEST_P(Confined, OurOwnFilesAreHiddenWhereverTheyLie) {
  const fs::path prefix = scratch_ / "prefix", share = prefix / "share/capstone",
                 libexec = prefix / "libexec/capstone";
  for (const char* file :
       {"share/capstone/problems/p/oracle.cpp", "share/capstone/reference_kernels/best.cu",
        "share/capstone/harness/emulator/shim.h", "share/capstone/harness/emulator/secret",
        "share/other/file", "libexec/capstone/oracles/p.so", "libexec/capstone/worker", "lib/library"})
    put(prefix / file, "found");
  fs::create_symlink(share, prefix / "link");
  resources_.share = share;
  fs::copy(resources_.libexec, libexec, fs::copy_options::recursive | fs::copy_options::skip_existing);
  resources_.libexec = libexec;
  sandbox_ = Sandbox::detect(resources_);
  ASSERT_TRUE(sandbox_.isolated()) << sandbox_.description();
  sandbox_.allow_reading(prefix);
  const Access access{{share / "harness/emulator/shim.h", libexec / "worker"}, {}, false};
  for (const char* open : {"share/capstone/harness/emulator/shim.h", "share/other/file",
                           "libexec/capstone/worker", "lib/library"})
    EXPECT_EQ(shell("cat " + (prefix / open).string(), access).out, "found") << open;
  for (const char* closed :
       {"share/capstone/problems/p/oracle.cpp", "share/capstone/reference_kernels/best.cu",
        "share/capstone/harness/emulator/secret", "libexec/capstone/oracles/p.so",
        "link/problems/p/oracle.cpp"})
    EXPECT_EQ(shell("cat " + (prefix / closed).string(), access).out, "") << closed;
  EXPECT_NE(shell("echo x > " + (share / "new").string(), access).status, 0)
      << "what covers them is no place to write to";
  EXPECT_EQ(shell("cat " + (share / "problems/p/oracle.cpp").string(), {{share}, {}, false}).out, "found")
      << "named itself";
}

TEST_P(Confined, WritesOnlyToItsOwnFolder) {
  fs::create_directories(scratch_ / "own");
  put(scratch_ / "given/file", "given");
  const Access access{{scratch_ / "given"}, {scratch_ / "own"}, false};
  EXPECT_EQ(shell("mkdir " + (scratch_ / "own/deep").string() + " && echo x > " +
                      (scratch_ / "own/deep/file").string(),
                  access)
                .status,
            0);
  EXPECT_EQ(slurp(scratch_ / "own/deep/file"), "x\n");
  for (const std::string& path : {(scratch_ / "given/file").string(), (scratch_ / "given/new").string(),
                                  std::string("/usr/capstone-test"), std::string("/capstone-test"),
                                  std::string("/dev/capstone-test")}) {
    EXPECT_NE(shell("echo x > " + path, access).status, 0) << path;
    EXPECT_TRUE(path.ends_with("/file") || !fs::exists(path)) << path;
  }
  EXPECT_EQ(slurp(scratch_ / "given/file"), "given");
  // A private /tmp and /dev/shm may be there; what is written to them must not be seen outside.
  for (const std::string& path :
       {std::string("/tmp/capstone-test-outside"), std::string("/dev/shm/capstone-test-outside"),
        (scratch_ / "beside").string()}) {
    shell("echo x > " + path);
    EXPECT_FALSE(fs::exists(path)) << path;
  }
}

TEST_P(Confined, MemoryFileSystemsHaveALimit) {
  for (const char* folder : {"/tmp", "/dev/shm"})
    EXPECT_NE(shell(std::string("exec head -c 300M /dev/zero > ") + folder + "/fill").status, 0) << folder;
}

TEST_P(Confined, HasNoEnvironmentButAFixedOne) {
  ::setenv("CAPSTONE_TEST_SECRET", "secret", 1);
  ProcessSpec spec;
  spec.argv = {"/usr/bin/env"};
  spec.env = {{"ADDED", "1"}, {"HOME", "/elsewhere"}};
  auto result = run_process(sandbox_.confine(spec, {}));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out.find("SECRET"), std::string::npos) << result->out;
  EXPECT_NE(result->out.find("ADDED=1\n"), std::string::npos);
  EXPECT_NE(result->out.find("HOME=/elsewhere\n"), std::string::npos);
  EXPECT_EQ(result->out.find("HOME=/tmp"), std::string::npos);
}

// The sandbox's own process is the first one there, and what it was told names folders of ours.
TEST_P(Confined, SeesNoPathsOfTheJudgeInProcesses) {
  put(scratch_ / "given/file", "given");
  const Access access{{scratch_ / "given"}, {}, false};
  const ProcessResult seen = shell("cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null", access);
  EXPECT_EQ(seen.out.find(scratch_.path().string()), std::string::npos) << seen.out;
  EXPECT_EQ(seen.out.find(resources_.share.string()), std::string::npos) << seen.out;
  EXPECT_EQ(shell("ls /proc/self/fd").out.find('9'), std::string::npos) << "nor reads what it was told";
}

TEST_P(Confined, HasNoNetwork) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string script =
      "exec 5<>/dev/tcp/127.0.0.1/" + std::to_string(ntohs(address.sin_port)) + " && echo connected";
  ProcessSpec open;
  open.argv = {"/bin/bash", "-c", script};
  EXPECT_EQ(run_process(open)->out, "connected\n") << "the test itself is sound";
  EXPECT_EQ(shell(script).out, "");
  ::close(listener);
}

TEST_P(Confined, CannotReachTheJudge) {
  const std::string pid = std::to_string(::getpid());
  EXPECT_NE(shell("kill -0 " + pid).status, 0);
  EXPECT_EQ(shell("cat /proc/" + pid + "/environ").out, "");
  EXPECT_EQ(shell("cat /proc/" + pid + "/environ", {{}, {}, true}).out, "")
      << "with /proc at hand, for the GPU's driver";
}

TEST_P(Confined, KeepsNoCapabilities) {
  // Root's right to read what others may not: without it the mode of a file counts.
  put(scratch_ / "given/closed", "closed");
  fs::permissions(scratch_ / "given/closed", fs::perms::none);
  EXPECT_EQ(shell("cat " + (scratch_ / "given/closed").string(), {{scratch_ / "given"}, {}, false}).out, "");
}

TEST_P(Confined, RefusesTheSystemCallsThatLeadOut) {
  ProcessSpec spec;
  spec.argv = {CAPSTONE_FORBIDDEN_CALLS};
  auto result = run_process(sandbox_.confine(spec, {}));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 0) << result->err;
  EXPECT_EQ(result->out, "") << "wrongly allowed or refused";
}

// The CUDA driver names its threads through /proc, and does not start where that is refused.
TEST(Landlock, AGpuWorkerMayNameItsThreads) {
  const Sandbox sandbox = Sandbox::detect(sandbox_resources("landlock"));
  if (!sandbox.isolated()) GTEST_SKIP() << sandbox.description();
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c",
               "echo named > /proc/self/task/$$/comm && read name < /proc/self/task/$$/comm && echo $name"};
  spec.timeout = std::chrono::seconds(20);
  const auto with = run_process(sandbox.confine(spec, {{}, {}, true}));
  ASSERT_TRUE(with);
  EXPECT_EQ(with->out, "named\n") << with->err;
  const auto without = run_process(sandbox.confine(spec, {}));
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->ok()) << "nobody else needs /proc";
}

TEST(Isolation, NoneSaysWhy) {
  const Resources resources = sandbox_resources("none");
  const Sandbox sandbox = Sandbox::detect(resources);
  EXPECT_FALSE(sandbox.isolated());
  EXPECT_EQ(sandbox.description(), "none: CAPSTONE_ISOLATION asks for it");
  EXPECT_TRUE(isolation_advice(sandbox, resources).starts_with("kernels run under limits only: "));
}

TEST(Isolation, WithoutBwrapLandlockIsTakenAndSaysWhatIsMissing) {
  Resources resources = sandbox_resources("");
  resources.path_variable = "/nonexistent";
  const Sandbox sandbox = Sandbox::detect(resources);
  if (!sandbox.isolated()) GTEST_SKIP() << sandbox.description();
  EXPECT_EQ(sandbox.description(), "Landlock + seccomp (bubblewrap: bwrap is not installed)");
  EXPECT_EQ(isolation_advice(sandbox, resources), "good; bubblewrap would be better: apt install bubblewrap");
}

TEST(Isolation, ABwrapThatFailsIsNotTakenAndItsReasonIsKept) {
  Scratch scratch;
  put(scratch / "bin/bwrap", "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n");
  fs::permissions(scratch / "bin/bwrap", fs::perms::owner_all);
  Resources resources = sandbox_resources("");
  resources.path_variable = (scratch / "bin").string();
  resources.libexec = scratch / "no confine here";
  const Sandbox sandbox = Sandbox::detect(resources);
  EXPECT_FALSE(sandbox.isolated());
  EXPECT_TRUE(sandbox.description().starts_with(
      "none: bubblewrap: setting up uid map: Permission denied; Landlock: cannot start"))
      << sandbox.description();
}

// bubblewrap is held where its outer half has not yet told the inner one to go on, and the outer half is
// killed there.
TEST(Orphans, AnInnerHalfWithoutAnOuterOneIsEndedAndLivingSandboxesAreNot) {
  if (!find_program("bwrap", std::getenv("PATH"))) GTEST_SKIP() << "no bubblewrap";
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  auto bubblewrap = [](std::vector<std::string> more) {
    ProcessSpec spec;
    spec.argv = {"bwrap"};
    spec.argv.insert(spec.argv.end(), kSandboxOpening.begin(), kSandboxOpening.end());
    spec.argv.insert(spec.argv.end(), {"--ro-bind", "/", "/"});
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    return spec;
  };
  int ready[2], info[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(info), 0);
  ProcessSpec held =
      bubblewrap({"--unshare-user", "--userns-block-fd", "10", "--info-fd", "11", "--", "true"});
  const pid_t outer = ::fork();  // without our own handle, which would end the inner half as well
  ASSERT_GE(outer, 0);
  if (outer == 0) {
    ::dup2(ready[0], 10);
    ::dup2(info[1], 11);
    std::vector<char*> words;
    for (std::string& word : held.argv) words.push_back(word.data());
    words.push_back(nullptr);
    ::execvp("bwrap", words.data());
    ::_exit(127);
  }
  ::close(info[1]);  // so that a bubblewrap which does not start ends the wait
  char answer[512] = {};
  ASSERT_GT(::read(info[0], answer, sizeof answer - 1), 0);
  const std::string text = answer;
  const std::size_t colon = text.find(':');
  ASSERT_NE(colon, std::string::npos) << text;
  const pid_t inner = std::atoi(text.c_str() + colon + 1);
  ASSERT_GT(inner, 0) << text;

  auto living = Child::start(bubblewrap({"--", "sleep", "20"}));
  ASSERT_TRUE(living) << render(living.error());
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(end_orphaned_sandboxes(), 0) << "nothing is orphaned yet";
  ::kill(outer, SIGKILL);
  ASSERT_EQ(::waitpid(outer, nullptr, 0), outer);
  EXPECT_EQ(::kill(inner, 0), 0) << "the inner half still waits";
  EXPECT_EQ(end_orphaned_sandboxes(), 1);
  EXPECT_EQ(::waitpid(inner, nullptr, 0), inner);
  EXPECT_TRUE(living->running());
  for (int fd : {ready[0], ready[1], info[0]}) ::close(fd);
}

}  // namespace
}  // namespace capstone::test
