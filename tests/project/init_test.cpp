#include "harness/project/init.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <set>

#include "harness/project/ledger/machine.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;
namespace fs = std::filesystem;

class Init : public ::testing::Test {
 protected:
  Scratch scratch;
  InitOptions options;

  void SetUp() override {
    put_problem(scratch / "catalogue/twice");
    options.problem = load_problem(scratch / "catalogue/twice").value();
    options.directory = scratch / "home/mine";
    options.members = {{"Ada", "7", "ada@example.org"}};
    options.worklog_text = "# Worklog\n";
    options.created = "2026-03-01T09:30:00Z";
    fs::create_directories(scratch / "home");
  }
  Result<InitReport> init() { return init_project(options, resources_in(scratch)); }

  void expect_failure_leaves(const std::map<std::string, std::string>& before) {
    auto result = init();
    ASSERT_FALSE(result);
    EXPECT_EQ(tree(scratch / "home"), before) << result.error().what;
  }
};

TEST_F(Init, MakesAProjectThatOpens) {
  auto report = init();
  ASSERT_TRUE(report) << render(report.error());
  auto project = open_project(options.directory);
  ASSERT_TRUE(project) << render(project.error());
  EXPECT_EQ(report->root, project->root);
  EXPECT_FALSE(project->problem_changed);
  EXPECT_EQ(project->config.members.at(0).email, "ada@example.org");
  EXPECT_EQ(project->config.problem_digest, options.problem.digest);
  EXPECT_EQ(project->config.created, options.created);
  EXPECT_EQ(project->config.started_from, "");
  EXPECT_EQ(slurp(project->worklog()), "# Worklog\n");
  EXPECT_NE(slurp(project->human_kernel()).find("extern \"C\" void launch("), std::string::npos);
}

TEST_F(Init, PinsTheDefinitionByteForByteWithoutLeftovers) {
  ASSERT_TRUE(init());
  const auto pinned = tree(options.directory / "problem");
  for (const char* name : {"problem.yaml", "statement.md", "oracle.cpp", "reference.py", "baseline.cu"})
    EXPECT_EQ(pinned.at(name), slurp(scratch / "catalogue/twice" / name)) << name;
  EXPECT_EQ(pinned.at("launch.h"), launch_header(options.problem));
  EXPECT_EQ(pinned.size(), 6u) << "no editor backup";
}

TEST_F(Init, ReportsEveryFileItMadeWithItsPurpose) {
  auto report = init();
  ASSERT_TRUE(report);
  std::set<std::string> reported;
  for (const CreatedFile& file : report->files) {
    reported.insert(file.path);
    EXPECT_FALSE(file.purpose.empty()) << file.path;
    EXPECT_EQ(file.purpose.find('\n'), std::string::npos);
  }
  std::set<std::string> made;
  for (const auto& [path, bytes] : tree(options.directory))
    if (fs::is_regular_file(options.directory / path)) made.insert(path);
  EXPECT_EQ(reported, made);
}

TEST_F(Init, TheLedgerBeginsWithOneInitRecord) {
  ASSERT_TRUE(init());
  auto view = read_ledger(options.directory / ".capstone/ledger.jsonl");
  ASSERT_TRUE(view);
  ASSERT_EQ(view->records.size(), 1u);
  EXPECT_EQ(view->records[0].kind, "init");
  EXPECT_EQ(view->records[0].seq, 1);
  EXPECT_EQ(view->records[0].body["problem_digest"], options.problem.digest);
  EXPECT_TRUE(view->damage.empty());
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  EXPECT_NE(view->records[0].machine, host);
}

TEST_F(Init, TheChainIsThatOfTheMachineWhoseStateWasNamed) {
  options.state = scratch / "state";
  ASSERT_TRUE(init());
  auto view = read_ledger(options.directory / ".capstone/ledger.jsonl");
  EXPECT_EQ(view->records.at(0).machine, machine_id(scratch / "state").value());
}

TEST_F(Init, AnEmptyFolderIsFineAndStaysTheSameFolder) {
  fs::create_directories(options.directory / ".git");  // a new clone
  const fs::path inside = options.directory;
  struct stat before {
  }, after{};
  ::stat(inside.c_str(), &before);
  ASSERT_TRUE(init());
  ::stat(inside.c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino) << "a shell may stand in it";
  EXPECT_TRUE(open_project(inside));
  for (const auto& [path, bytes] : tree(inside))
    EXPECT_EQ(path.find("capstone-init"), std::string::npos) << path;
}

TEST_F(Init, ATrailingSlashAndMissingParentsAreFine) {
  options.directory = (scratch / "home/a/b/mine").string() + "/";
  auto report = init();
  ASSERT_TRUE(report) << render(report.error());
  EXPECT_TRUE(open_project(scratch / "home/a/b/mine"));
}

TEST_F(Init, WhatIsInTheWayIsNamedAndNotTouched) {
  put(options.directory / "notes.txt", "mine");
  put(options.directory / "capstone.yaml", "older project");
  const auto before = tree(scratch / "home");
  auto result = init();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().hint.find("capstone.yaml, notes.txt"), std::string::npos) << result.error().hint;
  EXPECT_EQ(result.error().where, options.directory.string());
  EXPECT_EQ(tree(scratch / "home"), before);
}

TEST_F(Init, AFileOfThatNameIsInTheWay) {
  put(options.directory, "a file");
  expect_failure_leaves(tree(scratch / "home"));
}

TEST_F(Init, ARungIsTheBeginningAndRecorded) {
  const fs::path rung = scratch / "share/reference_kernels/L1/twice/2_float4.cu";
  put(rung, "extern \"C\" void launch(const float* x) {}\n");
  options.from_rung = rung;
  ASSERT_TRUE(init());
  EXPECT_EQ(slurp(options.directory / "human/kernel.cu"), slurp(rung));
  EXPECT_EQ(open_project(options.directory)->config.started_from, "L1/twice/2_float4.cu");
}

TEST_F(Init, AFileOfOnesOwnIsRecordedByItsNameOnly) {
  put(scratch / "private/kernel_9.cu", "extern \"C\" void launch(const float* x) {}\n");
  options.from_rung = scratch / "private/kernel_9.cu";
  ASSERT_TRUE(init());
  EXPECT_EQ(open_project(options.directory)->config.started_from, "kernel_9.cu");
}

TEST_F(Init, ABadRungLeavesNothing) {
  options.from_rung = scratch / "none.cu";
  expect_failure_leaves({});
  put(scratch / "main.cu", "int main() {}\n");
  options.from_rung = scratch / "main.cu";
  expect_failure_leaves({});
}

TEST_F(Init, AProblemThatChangedUnderneathLeavesNothing) {
  put(scratch / "catalogue/twice/reference.py", "changed after loading\n");
  expect_failure_leaves({});
  options.directory = scratch / "home/new/parents/mine";
  expect_failure_leaves({});
  fs::create_directories(options.directory);
  expect_failure_leaves(tree(scratch / "home"));
}

TEST_F(Init, AFullDiskLeavesNothing) {
  put(scratch / "catalogue/twice/statement.md", std::string(50000, 's'));
  options.problem = load_problem(scratch / "catalogue/twice").value();
  pid_t child = in_other_process([&] {
    limit_file_size(20000);
    return init() ? 1 : 0;
  });
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_TRUE(tree(scratch / "home").empty());
}

TEST_F(Init, OfTwoAtOnceOneWinsWhole) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(in_other_process([&, i] {
      options.members[0].name = "Ada " + std::to_string(i);
      return init() ? 0 : 1;
    }));
  int won = 0;
  for (pid_t child : children) won += exit_code_of(child) == 0;
  EXPECT_EQ(won, 1);
  EXPECT_TRUE(open_project(options.directory));
  EXPECT_EQ(entries_in(scratch / "home"), 1u) << "the losers left nothing";
}

TEST_F(Init, ANewFolderObeysTheUmask) {
  ASSERT_TRUE(init());
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(static_cast<unsigned>(fs::status(options.directory).permissions()), 0777u & ~mask);
}

}  // namespace
}  // namespace capstone
