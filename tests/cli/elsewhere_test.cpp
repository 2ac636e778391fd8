// `measure --on`: judged where the GPU is, recorded at home. `ssh` and `sbatch` are programs of the test's
// own; scripts/test_ssh.sh and scripts/test_slurm.sh ask the real ones.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Elsewhere : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    fs::create_directories(home_ / "bin");
    fs::create_directories(home_ / "there");
    // Another home is another machine. Its login greets on stdout, as some do; a file `cut` loses the end of
    // what it says.
    program_file("bin/ssh",
                 "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\n"
                 "[ \"$1\" = nowhere ] && { echo 'ssh: Could not resolve hostname nowhere' >&2; exit 255; }\n"
                 "unset XDG_CACHE_HOME XDG_STATE_HOME\nexport HOME='" +
                     (home_ / "there").string() +
                     "'\necho Welcome to $1\n"
                     "if [ -f \"$HOME/cut\" ]; then sh | head -c 3000; else exec sh; fi\n");
    program_file("bin/sbatch",
                 "#!/bin/sh\nfor word; do case $word in --chdir=*) echo \"${word#--chdir=}\" > '" +
                     (home_ / "job.part").string() +
                     "' ;; esac; done\n"
                     "mv '" +
                     (home_ / "job.part").string() + "' '" + (home_ / "job").string() + "'\necho 42\n");
    program_file("bin/squeue", "#!/bin/sh\necho 'RUNNING (None)'\n");
    program_file("counted", "#!/bin/sh\necho called >> '" + (home_ / "calls").string() +
                                "'\nexec " CAPSTONE_BINARY " \"$@\"\n");
  }
  void program_file(const std::string& name, const std::string& text) const {
    spit(home_ / name, text);
    fs::permissions(home_ / name, fs::perms::owner_all);
  }
  // Runs what sbatch was given, as a node does: no descendant of whoever submitted it.
  Child start_node() const {
    ProcessSpec node = spec({});
    node.argv = {"bash", "-c",
                 "while sleep 0.1; do [ -f job ] && mv job taken && (cd \"$(cat taken)\" && "
                 "SLURM_ARRAY_TASK_ID=0 bash task.sh); done"};
    auto child = Child::start(node);
    if (!child) throw std::runtime_error(render(child.error()));
    return std::move(*child);
  }
  How how(const fs::path& root) const {
    return {.cwd = root, .env = {{"PATH", (home_ / "bin").string() + ":" + std::getenv("PATH")}}};
  }
  std::vector<std::string> words(const std::string& place, std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"measure",  "--on", place,     "--backend", "emulated",
                                 "--hidden", "0",    "--quick", "-m",        "over there"};
    if (place.starts_with("ssh")) all.insert(all.end(), {"--program", (home_ / "counted").string()});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  long calls() const {
    const std::string text = slurp(home_ / "calls");
    return std::count(text.begin(), text.end(), '\n');
  }
  // One record of another machine's chain, and nothing left to bring.
  void expect_home(const fs::path& root, const std::string& reason = "over there") const {
    auto found = records(root, "measurement");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["body"]["version"], "v1");
    EXPECT_EQ(found[0]["body"]["reason"], reason);
    EXPECT_EQ(found[0]["body"]["gate_one"], "passed");
    expect_ledger_intact(root);
    EXPECT_TRUE(fs::is_empty(root / ".capstone" / "remote"));
  }
  // The one record has the signature of the machine that judged it; none where kernels are not confined.
  void expect_signed_by(const fs::path& root, const std::string& machine) const {
    const Json record = records(root, "measurement").at(0);
    if (record["body"]["isolation"].get<std::string>().starts_with("none")) return;
    EXPECT_TRUE(says(capstone({"ledger", "--verify"}, {.cwd = root}).out,
                     "measurements: 1 signed by " + machine + " (" +
                         record["signature"]["key"].get<std::string>().substr(0, 16) + ")"));
  }
};

TEST_F(Elsewhere, SshJudgesThereAndTheRecordComesHome) {
  const fs::path root = project("p", "01", "vector_add");
  Outcome there = capstone(words("ssh:lab"), how(root));
  EXPECT_EQ(there.code, 0) << there;
  EXPECT_TRUE(says(there.err, "lab: "));
  EXPECT_TRUE(says(there.err, "1 record from ssh:lab added to the ledger"));
  EXPECT_TRUE(says(there.out, "PASS"));
  expect_home(root);
  EXPECT_NE(records(root, "measurement")[0]["machine"], records(root, "init")[0]["machine"]);
  EXPECT_TRUE(fs::is_empty(home_ / "there" / ".cache" / "capstone" / "remote"))
      << "nothing is left over there";
  expect_signed_by(root, "an unknown machine");
  Outcome again = capstone(words("ssh:lab"), how(root));
  EXPECT_EQ(again.code, 0) << again;
  EXPECT_EQ(calls(), 2) << "asked anew, it is measured anew";
}

TEST_F(Elsewhere, AProblemOfOnesOwnIsTrustedThere) {
  const fs::path root = project_of_own_problem("mine", "p");
  Outcome by_ssh = capstone(words("ssh:lab"), how(root));
  EXPECT_EQ(by_ssh.code, 0) << by_ssh;
  expect_home(root);
  EXPECT_TRUE(says(records(root, "measurement")[0]["body"]["labels"].dump(),
                   "not the catalogue's definition: mine is not in the catalogue here"));
  Child node = start_node();
  Outcome by_slurm = capstone(words("slurm:gpus"), how(root));
  EXPECT_EQ(by_slurm.code, 0) << by_slurm;
  EXPECT_EQ(records(root, "measurement").size(), 2u);
}

TEST_F(Elsewhere, AWrongKernelIsAVerdictAndNoFaultOfTheWay) {
  const fs::path root = project("p", {}, "vector_add");
  spit(root / "human" / "kernel.cu", slurp(root / "human" / "kernel.cu") + "// nothing is written yet\n");
  Outcome there = capstone(words("ssh:lab"), how(root));
  EXPECT_EQ(there.code, 1) << there;
  EXPECT_EQ(records(root, "measurement").size(), 1u);
}

TEST_F(Elsewhere, KilledHalfWayItIsTakenUpAgain) {
  const fs::path root = project("p", "01", "vector_add");
  Child first = start(words("ssh:lab"), how(root));
  ASSERT_TRUE(wait_for(first, "lab: ")) << first.err_so_far();
  for (int i = 0; i < 1000 && calls() == 0; ++i) ::usleep(10'000);
  ::kill(first.pid(), SIGKILL);
  first.finish(std::chrono::seconds(5));
  EXPECT_TRUE(records(root, "measurement").empty());
  Outcome second = capstone(words("ssh:lab"), how(root));
  EXPECT_EQ(second.code, 0) << second;
  EXPECT_EQ(calls(), 1) << "what was begun there went on";
  expect_home(root);
}

TEST_F(Elsewhere, AResultThatIsCutOffIsFetchedAgain) {
  const fs::path root = project("p", "01", "vector_add");
  spit(home_ / "there" / "cut", "");
  Outcome cut = capstone(words("ssh:lab"), how(root));
  EXPECT_EQ(cut.code, 3) << cut;
  EXPECT_TRUE(says(cut.err, "error: the result from lab is incomplete"));
  EXPECT_TRUE(records(root, "measurement").empty());
  fs::remove(home_ / "there" / "cut");
  Outcome whole = capstone(words("ssh:lab"), how(root));
  EXPECT_EQ(whole.code, 0) << whole;
  EXPECT_EQ(calls(), 1) << "it is judged once";
  expect_home(root);
}

TEST_F(Elsewhere, WhatIsMissingThereIsNamed) {
  const fs::path root = project("p", "01", "vector_add");
  Outcome lost = capstone(words("ssh:nowhere"), how(root));
  EXPECT_EQ(lost.code, 3) << lost;
  EXPECT_TRUE(says(lost.err, "error: no connection to nowhere: ssh: Could not resolve hostname nowhere"));
  EXPECT_TRUE(says(lost.err, "`ssh nowhere true` must succeed non-interactively"));
  Outcome none = capstone({"measure", "--on", "ssh:lab", "--program", "~/no/capstone"}, how(root));
  EXPECT_EQ(none.code, 3) << none;
  EXPECT_TRUE(says(none.err, "error: no capstone on lab: ~/no/capstone was not found"));
  Outcome gpu = capstone({"measure", "--on", "ssh:lab", "--program", CAPSTONE_BINARY}, how(root));
  if (gpu.code != 0) {  // the machine that runs this test may have one
    EXPECT_EQ(gpu.code, 3) << gpu;
    EXPECT_TRUE(says(gpu.err, "error: lab: no NVIDIA GPU here"));
    EXPECT_TRUE(records(root, "measurement").empty());
  }
  for (const char* place : {"telnet:lab", "ssh:", "ssh:-oProxyCommand=id", "ssh:lab -v", "lab"}) {
    Outcome bad = capstone({"measure", "--on", place}, how(root));
    EXPECT_EQ(bad.code, 2) << place << bad;
    EXPECT_TRUE(
        says(bad.err, "--on ssh:HOST, --on ssh://USER@HOST:PORT, --on slurm or --on slurm:PARTITION"));
  }
  Outcome no_ssh = capstone(words("ssh:lab"), {.cwd = root, .env = {{"PATH", "/nonexistent"}}});
  EXPECT_EQ(no_ssh.code, 3) << no_ssh;
  EXPECT_TRUE(says(no_ssh.err, "error: ssh is not installed"));
}

TEST_F(Elsewhere, SlurmJudgesOnANodeAndTheRecordComesHome) {
  const fs::path root = project("p", "01", "vector_add");
  Child node = start_node();
  Outcome there = capstone(words("slurm:gpus"), how(root));
  EXPECT_EQ(there.code, 0) << there;
  EXPECT_TRUE(says(there.err, "job 42: "));
  expect_home(root);
  expect_signed_by(root, "this machine");  // the node has the home of the login node, and its key
}

TEST_F(Elsewhere, ASlurmJobOfTheSameProjectIsNotSubmittedTwice) {
  const fs::path root = project("p", "01", "vector_add");
  Child node = start_node();
  Child first = start(words("slurm"), how(root));
  ASSERT_TRUE(wait_for(first, "job 42: ")) << first.err_so_far();
  ::kill(first.pid(), SIGKILL);
  first.finish(std::chrono::seconds(5));
  Outcome second = capstone(words("slurm"), how(root));
  EXPECT_EQ(second.code, 0) << second;
  EXPECT_TRUE(says(second.err, "job 42 of this project is already in Slurm's queue"));
  expect_home(root);
}

TEST_F(Elsewhere, WhatNobodyWaitedForComesHomeWithTheNext) {
  const fs::path root = project("p", "01", "vector_add");
  Child node = start_node();
  Child first = start(words("slurm"), how(root));
  ASSERT_TRUE(wait_for(first, "job 42: ")) << first.err_so_far();
  ::kill(first.pid(), SIGKILL);
  first.finish(std::chrono::seconds(5));
  for (int i = 0; i < 3000 && slurp(home_ / "taken").empty(); ++i) ::usleep(10'000);
  spit(root / "human" / "kernel.cu", slurp(root / "human" / "kernel.cu") + "// v2\n");
  Outcome second = capstone(words("slurm"), how(root));
  EXPECT_EQ(second.code, 0) << second;
  EXPECT_TRUE(says(second.err, "1 of earlier versions, never fetched until now, added to the ledger"));
  const auto found = records(root, "measurement");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["body"]["version"], "v1");
  EXPECT_EQ(found[1]["body"]["version"], "v2") << "v1 was on its way";
  expect_ledger_intact(root);
  EXPECT_TRUE(fs::is_empty(root / ".capstone" / "remote"));
}

TEST_F(Elsewhere, AVersionMeasuredHereMeanwhileHasAnotherName) {
  const fs::path root = project("p", "01", "vector_add");
  spit(home_ / "there" / "cut", "");
  ASSERT_EQ(capstone(words("ssh:lab"), how(root)).code, 3);
  const std::string first = slurp(root / "human" / "kernel.cu");
  spit(root / "human" / "kernel.cu", first + "// v2\n");
  ASSERT_EQ(measure(root, {"--quick"}).code, 0);
  EXPECT_EQ(records(root, "measurement")[0]["body"]["version"], "v2");
  spit(root / "human" / "kernel.cu", first);
  fs::remove(home_ / "there" / "cut");
  Outcome whole = capstone(words("ssh:lab"), how(root));
  EXPECT_EQ(whole.code, 0) << whole;
  EXPECT_EQ(records(root, "measurement")[1]["body"]["version"], "v1");
  expect_ledger_intact(root);
}

TEST_F(Elsewhere, SlurmsOwnWordsAreShownWhereItRefuses) {
  program_file("bin/sbatch",
               "#!/bin/sh\necho 'sbatch: error: invalid partition specified: gpus' >&2\nexit 1\n");
  const fs::path root = project("p", "01", "vector_add");
  Outcome refused = capstone(words("slurm:gpus"), how(root));
  EXPECT_EQ(refused.code, 3) << refused;
  EXPECT_TRUE(says(refused.err, "invalid partition specified: gpus"));
}

}  // namespace
}  // namespace capstone::cli_test
