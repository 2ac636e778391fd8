// A submission that is a folder must not make a mentor's `grade` read other files.
#include "harness/project/archive/symlink_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/base/scratch.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Unlinked : public ::testing::Test {
 protected:
  void SetUp() override {
    test::put(place_ / "secret.txt", "not yours");
    test::put(root_ / "human/kernel.cu", "int x;");
    test::put(root_ / ".capstone/ledger.jsonl", "{}");
  }
  std::string refusal() const {
    auto checked = check_unlinked(root_);
    return checked ? "" : checked.error().what;
  }
  test::Scratch place_;
  fs::path root_ = place_ / "submission";
};

TEST_F(Unlinked, FilesFoldersAndLinksInsideAreFine) {
  fs::create_symlink("human/kernel.cu", root_ / "latest.cu");
  fs::create_directory_symlink(root_ / "human", root_ / "mine");
  EXPECT_EQ(refusal(), "");
}

TEST_F(Unlinked, ALinkThatLeadsOutIsNamed) {
  fs::remove(root_ / "human/kernel.cu");
  fs::create_symlink("../../secret.txt", root_ / "human/kernel.cu");
  EXPECT_EQ(refusal(), "human/kernel.cu is a link to a place outside of the submission");
}

TEST_F(Unlinked, SoIsOneThatLeadsOutInSteps) {
  fs::create_symlink(place_ / "secret.txt", root_ / "b");
  fs::create_symlink("b", root_ / "a");
  EXPECT_THAT(refusal(), HasSubstr("a link to a place outside of the submission"));
}

TEST_F(Unlinked, FoldersAndTheLedgersToo) {
  fs::create_directory_symlink("/etc", root_ / "llm");
  EXPECT_EQ(refusal(), "llm is a link to a place outside of the submission");
  fs::remove(root_ / "llm");
  fs::create_symlink("/etc/passwd", root_ / ".capstone/sources");
  EXPECT_EQ(refusal(), ".capstone/sources is a link to a place outside of the submission");
}

TEST_F(Unlinked, APipeThatWouldBlockTheReaderIsNamed) {
  ASSERT_EQ(::mkfifo((root_ / "worklog.md").c_str(), 0600), 0);
  EXPECT_EQ(refusal(), "worklog.md is neither a file nor a folder");
}

TEST_F(Unlinked, APythonEnvironmentIsNoOffence) {
  fs::create_directories(root_ / ".venv/bin");
  fs::create_symlink("/usr/bin/python3", root_ / ".venv/bin/python");
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace capstone
