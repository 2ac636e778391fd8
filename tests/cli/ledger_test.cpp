// Accidents and how the record survives them: full disks, torn and edited lines, two commands at once,
// Ctrl-C.
#include <signal.h>

#include <algorithm>
#include <fstream>

#include "tests/cli/command.h"
#include "tests/project/mutations.h"

namespace capstone::cli_test {
namespace {

using Accident = CliTest;

fs::path ledger_of(const fs::path& root) { return root / ".capstone" / "ledger.jsonl"; }

TEST_F(Accident, DiskFullWhileAppendingLeavesTheLedgerAsItWas) {
  fs::path root = project();
  ASSERT_EQ(capstone({"predict", "memory"}, {.cwd = root}).code, 0);
  std::string before = slurp(ledger_of(root));
  // Room for a part of the line: what was written of it has to go again.
  Outcome full = capstone({"predict", "compute", "--because", std::string(2000, 'x')},
                          {.cwd = root, .max_file = before.size() + 700});
  EXPECT_EQ(full.code, 3) << full;
  EXPECT_TRUE(says(full.err, "error: cannot append to the ledger"));
  EXPECT_TRUE(says(full.err, "--> " + ledger_of(root).string()));
  EXPECT_TRUE(says(full.err, "the ledger was not changed"));
  EXPECT_EQ(slurp(ledger_of(root)), before);
  expect_ledger_intact(root);
  EXPECT_EQ(capstone({"predict", "compute"}, {.cwd = root}).code, 0);
  expect_ledger_intact(root);
}

TEST_F(Accident, AFileSystemWithoutSpaceLeavesTheLedgerAsItWas) {
  fs::path root = project();
  std::string inside =
      "set -e; mkdir small; mount -t tmpfs -o size=256k tmpfs small; cp -r project small/; cd small/project; "
      "cp .capstone/ledger.jsonl ../before; cat /dev/zero > ../filler 2>/dev/null || true; "
      "code=0; \"" CAPSTONE_BINARY
      "\" predict memory --because \"$(head -c 20000 /dev/zero | tr '\\0' x)\" || code=$?; "
      "echo code=$code; cmp .capstone/ledger.jsonl ../before; rm ../filler; \"" CAPSTONE_BINARY
      "\" ledger --verify";
  Outcome possible = program({"unshare", "-rm", "sh", "-c", "mkdir t && mount -t tmpfs tmpfs t"});
  if (possible.code != 0) GTEST_SKIP() << "no tmpfs can be mounted here: " << possible.err;
  Outcome answer = program({"unshare", "-rm", "sh", "-c", inside});
  EXPECT_EQ(answer.code, 0) << answer;
  EXPECT_TRUE(says(answer.out, "code=3"));
  EXPECT_TRUE(says(answer.err, "error: "));
}

TEST_F(Accident, AFullDiskIsTheMachinesFaultForANewProject) {
  if (program({"unshare", "-rm", "sh", "-c", "mkdir t && mount -t tmpfs tmpfs t"}).code != 0)
    GTEST_SKIP() << "no tmpfs can be mounted here";
  const Outcome full =
      program({"unshare", "-rm", "sh", "-c",
               "mkdir small; mount -t tmpfs -o size=16k tmpfs small; cd small; \"" CAPSTONE_BINARY
               "\" init softmax project --from 02; echo code=$?; ls"});
  EXPECT_EQ(full.out, "code=3\n") << full;
  EXPECT_TRUE(says(full.err, "No space left on device"));
  EXPECT_TRUE(says(full.err, "--> "));
  EXPECT_TRUE(says(full.err, "hint: "));
}

TEST_F(Accident, ALineThatIsNestedTooDeepIsDamageLikeAnyOther) {
  const fs::path root = project();
  ASSERT_EQ(capstone({"predict", "memory"}, {.cwd = root}).code, 0);
  std::string deep = "{\"seq\": ";
  for (int i = 0; i < 200000; ++i) deep += "[";
  std::ofstream(ledger_of(root), std::ios::app) << deep << std::string(200000, ']') << "}\n";
  const Outcome verified = capstone({"ledger", "--verify"}, {.cwd = root});
  EXPECT_EQ(verified.code, 2) << verified.err.substr(0, 2000);
  EXPECT_TRUE(says(verified.err, "the ledger has 1 fault"));
  const Outcome reported = capstone({"report"}, {.cwd = root});
  EXPECT_GE(reported.code, 0);
  EXPECT_LT(reported.code, 70) << reported.err.substr(0, 2000);
}

// Whichever step of a build it is that finds no room.
TEST_F(Accident, AFullCacheIsTheMachinesFaultInEveryStep) {
  if (program({"unshare", "-rm", "sh", "-c", "mkdir t && mount -t tmpfs tmpfs t"}).code != 0)
    GTEST_SKIP() << "no tmpfs can be mounted here";
  const fs::path root = project("project", "02");
  const std::string inside =
      "set -e; mkdir small; mount -t tmpfs -o size=$0,mode=700 tmpfs small; "
      "ln -s \"" CAPSTONE_TEST_CACHE
      "/cuda-headers\" small/; cd project; code=0; "
      "CAPSTONE_CACHE=$PWD/../small \"" CAPSTONE_BINARY
      "\" measure --backend emulated --quick --hidden 0 >&2 || code=$?; echo code=$code";
  for (const char* size : {"256k", "1800k", "3m"}) {
    const Outcome full = program({"unshare", "-rm", "sh", "-c", inside, size});
    EXPECT_TRUE(says(full.out, "code=3")) << size << full;
    EXPECT_TRUE(says(full.err, "No space left on device")) << size << full;
    EXPECT_TRUE(says(full.err, "CAPSTONE_CACHE")) << size << full;
    EXPECT_TRUE(says(full.err, "small/")) << "where: " << size << full;
    fs::remove(home_ / "small");
  }
  EXPECT_TRUE(records(root, "measurement").empty());
}

TEST_F(Accident, ADiskThatIsFullForTheCompilerIsNotTheKernelsFault) {
  const fs::path root = project("project", "02");
  fs::create_directories(home_ / "bin");
  // A compiler whose own write fails, as g++ says it; what it is asked for the preprocessed source it does.
  spit(home_ / "bin" / "g++",
       "#!/bin/sh\ncase \"$*\" in *c++-cpp-output*) echo 'kernel.cu:9:1: fatal error: error writing to "
       "/tmp/cc.s: No space left on device' >&2; exit 1;; esac\n"
       "exec /usr/bin/g++ \"$@\"\n");
  fs::permissions(home_ / "bin" / "g++", fs::perms::owner_all);
  const std::string mine = slurp(root / "human" / "kernel.cu");
  spit(root / "human" / "kernel.cu", mine + "// never built before " + std::to_string(::getpid()) +
                                         home_.string() + "\nstatic int capstone_" +
                                         std::to_string(::getpid()) + ";\n");
  const std::string before = slurp(ledger_of(root)),
                    path = (home_ / "bin").string() + ":" + std::getenv("PATH");
  Outcome full =
      capstone({"measure", "--backend", "emulated", "--hidden", "0"}, {.cwd = root, .env = {{"PATH", path}}});
  EXPECT_EQ(full.code, 3) << full;
  EXPECT_TRUE(says(full.err, "error: the compiler could not write what it made: "));
  EXPECT_TRUE(says(full.err, "hint: make room there"));
  EXPECT_EQ(full.both().find("DOES NOT BUILD"), std::string::npos) << full;
  EXPECT_TRUE(records(root, "measurement").empty());
  expect_ledger_intact(root);
  // What a source says of itself is its own fault.
  spit(root / "human" / "kernel.cu", "#error error writing: No space left on device\n" + mine);
  Outcome own = measure(root);
  EXPECT_EQ(own.code, 1);
  EXPECT_TRUE(says(own.both(), "No space left on device")) << own;
}

TEST_F(Accident, TornLastLineIsPutAsideAndTheNextCommandWorks) {
  fs::path root = project();
  ASSERT_EQ(capstone({"predict", "memory"}, {.cwd = root}).code, 0);
  std::string torn = "{\"schema_version\":1,\"seq\":3,\"ti";
  spit(ledger_of(root), slurp(ledger_of(root)) + torn);
  EXPECT_EQ(capstone({"ledger", "--verify"}, {.cwd = root}).code, 2) << "a torn line is not passed over";
  EXPECT_EQ(capstone({"predict", "compute"}, {.cwd = root}).code, 0);
  expect_ledger_intact(root);
  EXPECT_EQ(records(root, "prediction").size(), 2u);
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(root / ".capstone"))
    if (entry.path().filename().string().starts_with("ledger.torn-"))
      kept += slurp(entry.path()).starts_with(torn);
  EXPECT_EQ(kept, 1) << "what was torn is kept beside the ledger";
}

TEST_F(Accident, EditedLineIsNamedByVerify) {
  fs::path root = project();
  ASSERT_EQ(capstone({"predict", "memory", "--because", "guess"}, {.cwd = root}).code, 0);
  ASSERT_EQ(capstone({"predict", "compute"}, {.cwd = root}).code, 0);
  std::string text = slurp(ledger_of(root));
  std::size_t at = text.find("guess");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 5, "knew!");
  spit(ledger_of(root), text);
  Outcome verified = capstone({"ledger", "--verify"}, {.cwd = root});
  EXPECT_EQ(verified.code, 2) << verified;
  EXPECT_TRUE(
      says(verified.out,
           "line 3: broken chain: the preceding record was changed or removed (line 2, if it was changed)"));
  EXPECT_TRUE(says(verified.err, "error: the ledger has 1 fault"));
  EXPECT_TRUE(says(verified.err, "--> " + ledger_of(root).string()));
  EXPECT_TRUE(says(verified.err, "hint: the ledger is never rewritten"));
}

TEST_F(Accident, ChangedSourceSnapshotIsNamedByVerify) {
  fs::path root = project("project", "02");
  ASSERT_EQ(measure(root).code, 0);
  for (const auto& entry : fs::directory_iterator(root / ".capstone" / "sources")) {
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
    spit(entry.path(), slurp(entry.path()) + "// better\n");
  }
  Outcome verified = capstone({"ledger", "--verify"}, {.cwd = root});
  EXPECT_EQ(verified.code, 2) << verified;
  EXPECT_TRUE(says(verified.out, "line 2"));
}

TEST_F(Accident, SecondCommandAtOnceIsTurnedAway) {
  fs::path root = project_with(endless_kernel());
  Child first = start({"measure", "--backend", "emulated", "--timeout", "60"}, {.cwd = root});
  ASSERT_TRUE(wait_for(first, "gate one, case 1")) << first.err_so_far();
  Outcome second = measure(root);
  EXPECT_EQ(second.code, 3) << second;
  EXPECT_TRUE(says(second.err, "error: another capstone command is working here"));
  EXPECT_TRUE(says(second.err, "hint: "));
  ::kill(first.pid(), SIGINT);
  EXPECT_EQ(first.finish(std::chrono::seconds(120)).status, 130);
  EXPECT_TRUE(records(root, "measurement").empty());
  expect_ledger_intact(root);
}

TEST_F(Accident, ControlCEndsAtOnceAndLeavesNothingHalfWritten) {
  fs::path root = project_with(endless_kernel());
  std::string before = slurp(ledger_of(root));
  Child running = start({"measure", "--backend", "emulated", "--timeout", "60"}, {.cwd = root});
  ASSERT_TRUE(wait_for(running, "gate one, case 1")) << running.err_so_far();
  ::kill(running.pid(), SIGINT);
  ProcessResult ended = running.finish(std::chrono::seconds(120));
  EXPECT_EQ(ended.end, ProcessResult::End::kExited);
  EXPECT_EQ(ended.status, 130) << ended.err;
  EXPECT_TRUE(says(ended.err, "interrupted: no half-written file was kept"));
  EXPECT_EQ(slurp(ledger_of(root)), before);
  expect_ledger_intact(root);
}

TEST_F(Accident, KilledOutrightNoChildLivesOn) {
  fs::path root = project_with(endless_kernel());
  Child running = start({"measure", "--backend", "emulated", "--timeout", "60"}, {.cwd = root});
  ASSERT_TRUE(wait_for(running, "gate one, case 1")) << running.err_so_far();
  ::kill(running.pid(), SIGKILL);
  EXPECT_EQ(running.finish(std::chrono::seconds(120)).end, ProcessResult::End::kSignalled);
  expect_ledger_intact(root);
  EXPECT_EQ(capstone({"predict", "memory"}, {.cwd = root}).code, 0) << "a dead command's lock is no lock";
}

using Types = CliTest;

// One ledger in which every value of every record has once had every type: each command answers, names the
// lines that it cannot read, and counts the others.
TEST_F(Types, OfEveryValueInEveryRecordAreAnAnswerInEveryCommand) {
  const fs::path root = project("in/eve", "01", "vector_add");
  ASSERT_EQ(capstone({"predict", "memory", "--because", "two loads"}, {.cwd = root}).code, 0);
  ASSERT_EQ(measure(root, {"--quick"}).code, 0);
  ASSERT_EQ(capstone({"checkin", "--stuck", "nowhere"}, {.cwd = root}).code, 0);
  spit(root / "reply.md", "no code\n");
  capstone({"llm", "add", "reply.md", "--model", "m"}, {.cwd = root});
  const std::string honest = slurp(ledger_of(root));
  std::string all = honest;
  std::size_t lines = 0;
  for (std::size_t at = 0, end; (end = honest.find('\n', at)) != honest.npos; at = end + 1)
    for (const test::Mutation& mutation : test::mutations_of(Json::parse(honest.substr(at, end - at)))) {
      all += mutation.document.dump() + "\n";
      ++lines;
    }
  ASSERT_GT(lines, 500u);
  spit(ledger_of(root), all);
  const Outcome shown = capstone({"ledger"}, {.cwd = root});
  EXPECT_EQ(shown.code, 0) << shown.err.substr(0, 4000);
  EXPECT_TRUE(says(shown.out, "human v1  PASS"));
  EXPECT_GT(std::count(shown.err.begin(), shown.err.end(), '\n'), static_cast<std::ptrdiff_t>(lines / 2));
  EXPECT_TRUE(says(shown.err, "its measurement cannot be read: version must be text, not "));
  EXPECT_EQ(capstone({"ledger", "--verify"}, {.cwd = root}).code, 2);
  EXPECT_EQ(capstone({"ledger", "--format", "json"}, {.cwd = root}).code, 0);
  EXPECT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  EXPECT_EQ(capstone({"check"}, {.cwd = root}).code, 1);
  EXPECT_EQ(capstone({"checkin", "--stuck", "still"}, {.cwd = root}).code, 0);
  const Outcome graded =
      capstone({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"});
  EXPECT_EQ(graded.code, 4) << graded;
  EXPECT_TRUE(says(graded.out, "needs_mentor"));
  EXPECT_TRUE(says(slurp(home_ / "graded" / "submissions" / "eve" / "result.json"), "the ledger is damaged"));
}

using Signatures = CliTest;

TEST_F(Signatures, SayWhichMachineMeasured) {
  const fs::path root = project("in/eve", "01", "vector_add");
  const Outcome doctor = capstone({"doctor", "--format", "json"});
  std::string key;
  for (const Json& row : Json::parse(doctor.out))
    if (row["what"] == Json("judge's key")) key = row["found"];
  ASSERT_EQ(key.size(), 64u) << doctor;
  fs::permissions(home_ / "state" / "capstone" / "judge-key", fs::perms::group_read, fs::perm_options::add);
  EXPECT_TRUE(says(capstone({"doctor"}).out, "others can read it and sign with it"));
  fs::permissions(home_ / "state" / "capstone" / "judge-key", fs::perms::group_read,
                  fs::perm_options::remove);
  ASSERT_EQ(measure(root, {"--quick"}).code, 0);
  const std::vector<Json> measured = records(root, "measurement");
  ASSERT_EQ(measured.size(), 1u);
  if (measured[0]["body"]["isolation"].get<std::string>().starts_with("none")) {
    EXPECT_FALSE(measured[0].contains("signature")) << "the kernel could have read the key";
    GTEST_SKIP() << "nothing confines a kernel here: " << measured[0]["body"]["isolation"];
  }
  EXPECT_EQ(measured[0]["signature"]["key"], Json(key));
  const std::string brief = key.substr(0, 16);
  EXPECT_TRUE(says(capstone({"ledger", "--verify"}, {.cwd = root}).out,
                   "measurements: 1 signed by this machine (" + brief + ")"));
  EXPECT_TRUE(says(
      capstone({"ledger", "--verify"}, {.cwd = root, .env = {{"XDG_STATE_HOME", (home_ / "other").string()}}})
          .out,
      "measurements: 1 signed by an unknown machine (" + brief + ")"));
  const std::vector<std::string> grade{"grade",    "in",       "--out", "graded", "--backend",
                                       "emulated", "--hidden", "0",     "--quick"};
  Outcome graded = capstone(grade, {.env = {{"XDG_STATE_HOME", (home_ / "other").string()}}});
  EXPECT_EQ(graded.code, 0) << graded;
  EXPECT_TRUE(says(graded.out, "unknown " + brief));
  EXPECT_TRUE(says(capstone(grade).out, "this machine"));
  // Naming the machine changes no result and no digest: nothing is judged again.
  spit(home_ / "in" / "judges.csv", "key,name\n" + key + ",gpu-lab\n");
  graded = capstone(grade);
  EXPECT_EQ(graded.code, 0) << graded;
  EXPECT_TRUE(says(graded.out, "gpu-lab"));
  EXPECT_TRUE(says(graded.err, "1 unchanged since they were graded"));
  EXPECT_EQ(graded.out.find("judges.csv"), std::string::npos) << graded;
  const Json result = Json::parse(slurp(home_ / "graded" / "submissions" / "eve" / "result.json"));
  EXPECT_EQ(result["vouchers"], (Json::parse(R"([{"key":")" + key + R"(","measurements":1}])")));
  spit(home_ / "in" / "judges.csv", "key,name\nabc,gpu-lab\n");
  const Outcome wrong = capstone(grade);
  EXPECT_EQ(wrong.code, 2) << wrong;
  EXPECT_TRUE(says(wrong.err, "error: not the public key of a judge: abc"));
  EXPECT_TRUE(says(wrong.err, "judges.csv:2"));
}

TEST_F(Signatures, ThatDoNotFitNeedAMentorAndMissingOnesDoNot) {
  const fs::path root = project("in/eve", "01", "vector_add");
  ASSERT_EQ(measure(root, {"--quick"}).code, 0);
  Json measured = records(root, "measurement").at(0);
  if (!measured.contains("signature")) GTEST_SKIP() << "nothing confines a kernel here";
  const std::string honest = slurp(ledger_of(root)), first = honest.substr(0, honest.find('\n') + 1);
  const std::vector<std::string> grade{"grade",    "in",       "--out", "graded", "--backend",
                                       "emulated", "--hidden", "0",     "--quick"};
  Json forged = measured;
  forged["body"]["seconds"] = 0.5;
  spit(ledger_of(root), first + forged.dump() + "\n");
  const Outcome verified = capstone({"ledger", "--verify"}, {.cwd = root});
  EXPECT_EQ(verified.code, 2) << verified;
  EXPECT_TRUE(says(verified.out, "line 2: its signature (key "));
  Outcome graded = capstone(grade);
  EXPECT_EQ(graded.code, 4) << graded;
  EXPECT_TRUE(says(graded.out, "the record was changed after it was signed"));
  forged.erase("signature");
  spit(ledger_of(root), first + forged.dump() + "\n");
  expect_ledger_intact(root);
  graded = capstone(grade);
  EXPECT_EQ(graded.code, 0) << graded;
  EXPECT_TRUE(says(graded.out, "own word"));
}

}  // namespace
}  // namespace capstone::cli_test
