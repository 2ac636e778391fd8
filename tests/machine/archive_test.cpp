// What is stored, and what happens when it is damaged.
#include "harness/machine/archive.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"

namespace capstone::machine {
namespace {

RunInfo of_kind(const std::string& kind) {
  RunInfo info;
  info.kind = kind;
  return info;
}

class ArchiveTest : public ::testing::Test {
 protected:
  fs::path folder_ =
      fs::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
  ArchiveTest() { fs::remove_all(folder_); }
  Archive archive() { return Archive::open(folder_).value(); }
};

TEST_F(ArchiveTest, RunsGetNamesAndKeepTheirNodesInOrder) {
  Archive first = archive();
  RunInfo info;
  info.kind = "sample";
  info.settings = Json{{"k", 3}};
  const RunInfo run = first.begin(info).value();
  EXPECT_EQ(run.name, "sample-1");
  EXPECT_EQ(first.begin(info)->name, "sample-2");
  Node b, a;
  b.name = "b";
  a.name = "a";
  ASSERT_TRUE(first.plan(run, {b, a}));
  a.verdict = "WRONG";
  ASSERT_TRUE(first.save(run, a));
  const Archive again = archive();
  const Tree tree = again.tree(again.run("sample-1").value()).value();
  ASSERT_EQ(tree.size(), 2u);
  EXPECT_EQ(tree[0].name, "b");
  EXPECT_EQ(tree[1].verdict, "WRONG");
}

TEST_F(ArchiveTest, PlansAllNodesOrNone) {
  const Archive a = archive();
  const RunInfo run = a.begin(of_kind("sample")).value();
  Node node;
  node.name = "x";
  EXPECT_FALSE(a.plan(run, {node, node}));
  EXPECT_TRUE(a.tree(run)->empty());
}

TEST_F(ArchiveTest, AMistypedRunIsSuggested) {
  const Archive a = archive();
  EXPECT_NE(a.run("x").error().hint.find("capstone machine sample"), std::string::npos);
  ASSERT_TRUE(a.begin(of_kind("evolve")));
  EXPECT_EQ(a.run("evolv-1").error().hint, "the runs are evolve-1; did you mean `evolve-1`?");
}

TEST_F(ArchiveTest, ATextThatWasChangedIsNoticed) {
  const Archive a = archive();
  const std::string digest = a.keep("a prompt").value();
  EXPECT_EQ(a.text(digest).value(), "a prompt");
  ASSERT_TRUE(write_file_atomic(folder_ / "texts" / digest, "another"));
  EXPECT_EQ(a.text(digest).error().what, "a text of the machine's archive was changed");
}

TEST_F(ArchiveTest, AnArchiveOfANewerVersionIsNotTouched) {
  { archive(); }
  {
    static constexpr DatabaseKind kind{"test", "", ""};
    ASSERT_TRUE(Database::open(folder_ / "archive.sqlite", kind)->run("PRAGMA user_version = 99"));
  }
  EXPECT_EQ(Archive::open(folder_).error().what, "the machine's archive was made by a newer capstone");
}

TEST_F(ArchiveTest, AFileThatIsNoArchiveIsNamed) {
  ASSERT_TRUE(make_folders(folder_));
  ASSERT_TRUE(write_file_atomic(folder_ / "archive.sqlite", std::string(4096, 'x')));
  const auto opened = Archive::open(folder_);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().hint.find("move .capstone/machine away"), std::string::npos);
}

TEST_F(ArchiveTest, BudgetsAreReachedAndSayWhich) {
  EXPECT_EQ(exhausted({}, {1000, 1000, 1000, 1000}), "");
  EXPECT_EQ(exhausted({3, 0, 0, 0}, {3, 0, 0, 0}), "3 tries");
  EXPECT_EQ(exhausted({0, 10, 0, 0}, {3, 12, 0, 0}), "10 tokens");
  EXPECT_EQ(exhausted({0, 0, 0.5, 0}, {3, 12, 0.5, 0}), "0.5 of money");
}

}  // namespace
}  // namespace capstone::machine
