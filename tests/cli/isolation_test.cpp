// Other people's code: what it runs in, what it is kept from, and that an interrupted command takes all of it
// along.
#include <signal.h>

#include <thread>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Isolation : public CliTest {
 protected:
  Json doctors_row(const std::string& isolation) const {
    Outcome machine = capstone({"doctor", "--format", "json"}, {.env = {{"CAPSTONE_ISOLATION", isolation}}});
    for (const Json& row : Json::parse(machine.out))
      if (row["what"] == "isolation") return row;
    ADD_FAILURE() << machine;
    return {};
  }
  bool works(const std::string& isolation) const { return doctors_row(isolation)["state"] == "ok"; }
};

// How many living processes have `word` on their command line.
int processes_with(const std::string& word) {
  int count = 0;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("/proc", code)) {
    const std::string name = entry.path().filename();
    count += name.find_first_not_of("0123456789") == std::string::npos &&
             slurp(entry.path() / "cmdline").find(word) != std::string::npos;
  }
  return count;
}

bool becomes(bool wanted, const std::string& word) {
  for (int i = 0; i < 2000; ++i) {
    if ((processes_with(word) > 0) == wanted) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_F(Isolation, DoctorNamesItAndHowToMendIt) {
  const Json none = doctors_row("none");
  EXPECT_EQ(none["state"], "limited");
  EXPECT_EQ(none["found"], "none: CAPSTONE_ISOLATION asks for it");
  EXPECT_TRUE(says(none["without_it"], "kernels run under limits only: "));
  const Json landlock = doctors_row("landlock");
  if (landlock["state"] == "ok") {
    EXPECT_TRUE(says(landlock["found"], "Landlock + seccomp (bubblewrap: "));
    EXPECT_TRUE(says(landlock["without_it"], "good; bubblewrap would be better: "));
  }
}

TEST_F(Isolation, AnUnknownKindIsAnErrorThatNamesTheKnownOnes) {
  Outcome answer = capstone({"doctor"}, {.env = {{"CAPSTONE_ISOLATION", "docker"}}});
  EXPECT_EQ(answer.code, 2) << answer;
  EXPECT_TRUE(says(answer.err, "error: CAPSTONE_ISOLATION is docker"));
  EXPECT_TRUE(says(answer.err, "hint: bubblewrap, landlock or none"));
}

TEST_F(Isolation, GradeRefusesToRunOthersCodeWithoutIt) {
  fs::create_directories(home_ / "cohort");
  const How none{.env = {{"CAPSTONE_ISOLATION", "none"}}};
  Outcome refused = capstone({"grade", "cohort"}, none);
  EXPECT_EQ(refused.code, 3) << refused;
  EXPECT_TRUE(says(refused.err, "error: submissions would run without isolation (none: "));
  EXPECT_TRUE(says(refused.err, "hint: `capstone doctor` says how to fix it; --allow-unisolated"));
  EXPECT_FALSE(fs::exists(home_ / "graded"));
  Outcome allowed = capstone({"grade", "cohort", "--allow-unisolated"}, none);
  EXPECT_TRUE(says(allowed.err, "error: nothing to grade")) << "it got further: " << allowed;
  if (works("landlock")) {
    Outcome landlock = capstone({"grade", "cohort"}, {.env = {{"CAPSTONE_ISOLATION", "landlock"}}});
    EXPECT_TRUE(says(landlock.err, "error: nothing to grade")) << landlock;
  }
}

TEST_F(Isolation, MeasureGoesOnWithoutItAndTheRecordSaysSo) {
  fs::path root = project_with(kernel("", ""));
  for (const char* isolation : {"none", "landlock", "bubblewrap"}) {
    if (std::string(isolation) != "none" && !works(isolation)) continue;
    Outcome measured = capstone({"measure", "--backend", "emulated", "--hidden", "0"},
                                {.cwd = root, .env = {{"CAPSTONE_ISOLATION", isolation}}});
    EXPECT_EQ(measured.code, 1) << measured;
    EXPECT_EQ(records(root, "measurement").back()["body"]["isolation"], doctors_row(isolation)["found"]);
  }
}

TEST_F(Isolation, AKernelFindsNoFilesOfTheStudentNoEnvironmentAndNoNetwork) {
  // Ends with 42 as soon as it gets hold of anything.
  fs::path root = project();
  const std::string ledger = (root / ".capstone" / "ledger.jsonl").string(),
                    oracle = (root / "problem" / "oracle.cpp").string();
  ASSERT_TRUE(fs::exists(ledger) && fs::exists(oracle));
  spit(root / "human" / "kernel.cu",
       kernel("#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n#include <sys/socket.h>\n#include "
              "<netinet/in.h>",
              "  for (const char* path : {\"" + ledger + "\", \"" + oracle +
                  "\", \"/etc/passwd\"}) if (std::fopen(path, \"r\")) _exit(42);\n"
                  "  if (std::fopen(\"/usr/capstone\", \"w\") || std::getenv(\"CAPSTONE_CACHE\") || "
                  "std::getenv(\"XDG_STATE_HOME\")) _exit(43);\n"
                  "  sockaddr_in a{}; a.sin_family = AF_INET; a.sin_port = htons(53); a.sin_addr.s_addr = "
                  "htonl(0xc0000201);\n"
                  "  int s = socket(AF_INET, SOCK_DGRAM, 0); if (s >= 0 && sendto(s, \"x\", 1, 0, "
                  "(sockaddr*)&a, sizeof a) == 1) _exit(44);"));
  for (const char* isolation : {"bubblewrap", "landlock"}) {
    if (!works(isolation)) continue;
    Outcome measured = capstone({"measure", "--backend", "emulated", "--hidden", "0"},
                                {.cwd = root, .env = {{"CAPSTONE_ISOLATION", isolation}}});
    EXPECT_EQ(measured.code, 1) << measured;
    EXPECT_TRUE(says(measured.out, "nothing written"))
        << "it ran to its end and found nothing, under " << isolation;
  }
  Outcome open = capstone({"measure", "--backend", "emulated", "--hidden", "0"},
                          {.cwd = root, .env = {{"CAPSTONE_ISOLATION", "none"}}});
  EXPECT_TRUE(says(open.out, "exit code 42")) << "the kernel does look";
}

TEST_F(Isolation, AKernelMayNotIncludeWhatLiesOutsideItsFolder) {
  fs::path root = project_with(kernel("#include \"../problem/oracle.cpp\"", ""));
  for (const char* isolation : {"bubblewrap", "landlock"}) {
    if (!works(isolation)) continue;
    Outcome measured = capstone({"measure", "--backend", "emulated", "--hidden", "0"},
                                {.cwd = root, .env = {{"CAPSTONE_ISOLATION", isolation}}});
    EXPECT_EQ(measured.code, 1) << measured;
    EXPECT_TRUE(says(measured.out, "../problem/oracle.cpp"));
    EXPECT_TRUE(says(measured.out, "DOES NOT BUILD"));
  }
}

TEST_F(Isolation, ControlCInABuildTakesTheCompilersAlong) {
  // Each of these takes the compiler seconds.
  std::string slow =
      "constexpr long turn(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i ^ s; return s; }\n";
  for (int i = 0; i < 40; ++i)
    slow += "constexpr long v" + std::to_string(i) + " = turn(4000000 + " + std::to_string(i) + ");\n";
  fs::path root = project_with(kernel(slow, ""));
  const std::string before = slurp(root / ".capstone" / "ledger.jsonl");
  const fs::path cache = home_ / "cache";  // its name is on the command line of every compiler
  fs::create_directories(cache);
  std::error_code none;
  if (fs::exists(fs::path(CAPSTONE_TEST_CACHE) / "cuda-headers", none))
    fs::create_directory_symlink(fs::path(CAPSTONE_TEST_CACHE) / "cuda-headers", cache / "cuda-headers");
  Child running =
      start({"measure", "--backend", "emulated"}, {.cwd = root, .env = {{"CAPSTONE_CACHE", cache.string()}}});
  ASSERT_TRUE(becomes(true, (cache / "emulated" / "tmp-").string())) << running.err_so_far();
  ::kill(running.pid(), SIGINT);
  ProcessResult ended = running.finish(std::chrono::seconds(120));
  EXPECT_EQ(ended.end, ProcessResult::End::kExited);
  EXPECT_EQ(ended.status, 130) << ended.err;
  EXPECT_TRUE(becomes(false, cache.string())) << "a compiler lives on";
  for (const auto& entry : fs::directory_iterator(cache / "emulated"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("tmp-"))
        << "a scratch folder was left: " << entry.path();
  EXPECT_EQ(slurp(root / ".capstone" / "ledger.jsonl"), before);
  expect_ledger_intact(root);
}

TEST_F(Isolation, ControlCInGateOneTakesDaemonsAlong) {
  const std::string marker = "capstone-daemon-" + home_.filename().string();
  fs::path root = project_with(
      kernel("#include <unistd.h>",
             "  if (fork() == 0) { setsid(); if (fork() == 0) { execl(\"/bin/sleep\", \"" + marker +
                 "\", \"600\", nullptr); } _exit(0); }\n  volatile int i = 0; while (true) i = i + 1;"));
  const std::string before = slurp(root / ".capstone" / "ledger.jsonl");
  Child running = start({"measure", "--backend", "emulated", "--timeout", "60"}, {.cwd = root});
  ASSERT_TRUE(becomes(true, marker)) << running.err_so_far();
  ::kill(running.pid(), SIGINT);
  ProcessResult ended = running.finish(std::chrono::seconds(120));
  EXPECT_EQ(ended.status, 130) << ended.err;
  EXPECT_TRUE(becomes(false, marker)) << "the daemon lives on";
  EXPECT_EQ(slurp(root / ".capstone" / "ledger.jsonl"), before);
  expect_ledger_intact(root);
}

}  // namespace
}  // namespace capstone::cli_test
