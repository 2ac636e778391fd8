// Submissions from Git. Every repository is made here; nothing leaves the machine.
#include "harness/course/repositories.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/project/archive/archive.h"

namespace capstone {
namespace {

class Repositories : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "repositories-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root = fs::canonical(pattern);
    path = std::getenv("PATH");
    if (!find_program("git", path)) GTEST_SKIP() << "git is missing";
    git({"init", "--quiet", "-b", "main", "ada"});
  }
  void TearDown() override { fs::remove_all(root); }

  void git(std::vector<std::string> words, const std::string& time = "2026-11-20T10:00:00Z") {
    ProcessSpec spec;
    words.insert(words.begin(), {"git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c",
                                 "protocol.file.allow=always", "-c", "core.hooksPath=/dev/null"});
    spec.argv = words;
    spec.cwd = fs::exists(root / "ada" / ".git") ? root / "ada" : root;
    spec.env = {{"GIT_AUTHOR_DATE", time}, {"GIT_COMMITTER_DATE", time}, {"GIT_CONFIG_GLOBAL", "/dev/null"}};
    auto run = run_process(spec);
    ASSERT_TRUE(run && run->ok()) << (run ? run->err : run.error().what);
  }
  void commit(const std::string& text, const std::string& time) {
    ASSERT_TRUE(write_file_atomic(root / "ada" / "capstone.yaml", text));
    git({"add", "-A"});
    git({"commit", "--quiet", "-m", "work"}, time);
  }
  std::string taken_text() {
    fs::remove_all(root / "out");
    auto unpacked = unpack_archive(root / "ada.tar", root / "out");
    EXPECT_TRUE(unpacked) << render(unpacked.error());
    return read_file(root / "out" / "capstone.yaml").value_or("");
  }
  Result<TakenCommit> take(const std::string& from, const std::string& deadline = "") {
    std::optional<Instant> due;
    if (!deadline.empty()) due = parse_instant(deadline).value();
    return take_commit(from, due, root / "ada.tar", path);
  }

  fs::path root;
  std::string path;
};

TEST_F(Repositories, TheLastCommitBeforeTheDeadlineIsTakenWithItsTimeAndSha) {
  commit("one", "2026-11-20T10:00:00Z");
  commit("two", "2026-11-20T22:00:00+01:00");
  commit("late", "2026-11-21T09:00:00Z");
  for (const std::string& from : {(root / "ada").string(), "file://" + (root / "ada").string()}) {
    auto taken = take(from, "2026-11-20T23:59+01:00");
    ASSERT_TRUE(taken) << render(taken.error());
    EXPECT_EQ(taken->time, "2026-11-20T21:00:00Z");
    EXPECT_EQ(taken->sha.size(), 40u);
    EXPECT_EQ(taken_text(), "two");
  }
  const std::string before = read_file(root / "ada.tar").value();
  ASSERT_TRUE(take((root / "ada").string(), "2026-11-20T23:59+01:00"));
  EXPECT_EQ(read_file(root / "ada.tar").value(), before) << "the same commit, the same bytes";
  ASSERT_TRUE(take((root / "ada").string()));
  EXPECT_EQ(taken_text(), "late") << "without a deadline the last commit";
  auto none = take((root / "ada").string(), "2026-11-01T00:00Z");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().what.find("no commit before 2026-11-01"), std::string::npos) << none.error().what;
  EXPECT_EQ(taken_text(), "late") << "what was taken before stays";
}

TEST_F(Repositories, NothingInARepositoryRunsAndNoOptionIsSmuggledIn) {
  commit("one", "2026-11-20T10:00:00Z");
  const fs::path evil = root / "evil";
  for (const char* hook : {"post-checkout", "pre-auto-gc", "reference-transaction", "post-index-change"}) {
    const fs::path file = root / "ada" / ".git" / "hooks" / hook;
    ASSERT_TRUE(make_folders(file.parent_path()));
    ASSERT_TRUE(write_file_atomic(file, "#!/bin/sh\ntouch " + evil.string() + "\n"));
    fs::permissions(file, fs::perms::owner_all);
  }
  ASSERT_TRUE(write_file_atomic(root / "ada" / ".gitattributes", "* filter=evil\n"));
  git({"config", "filter.evil.smudge", "touch " + evil.string()});
  git({"config", "uploadpack.packObjectsHook", "touch " + evil.string()});
  git({"-c", "filter.evil.clean=cat", "submodule", "--quiet", "add", "--", (root / "ada").string(), "sub"});
  commit("two", "2026-11-20T11:00:00Z");
  ASSERT_TRUE(take((root / "ada").string()));
  EXPECT_EQ(taken_text(), "two");
  EXPECT_FALSE(fs::exists(root / "out" / "sub" / "capstone.yaml")) << "a submodule is not followed";
  for (const std::string& bad :
       {"--upload-pack=touch " + evil.string(), std::string("ext::sh -c touch%20") + evil.string(),
        std::string(), std::string("a\nb"), (root / "nowhere").string()})
    EXPECT_FALSE(take(bad)) << bad;
  EXPECT_FALSE(fs::exists(evil));
  int left = 0;
  for (const auto& entry : fs::directory_iterator(root))
    left += entry.path() != root / "ada" && entry.path() != root / "ada.tar" && entry.path() != root / "out";
  EXPECT_EQ(left, 0) << "no clone is left";
}

TEST_F(Repositories, ARosterNamesThemAndOneThatFailsIsToldWhileTheOthersAreTaken) {
  commit("one", "2026-11-20T10:00:00Z");
  const fs::path file = root / "roster.csv";
  ASSERT_TRUE(write_file_atomic(file,
                                "name,id,repository,deadline\nAda Lovelace,1,ada,2026-11-20T23:59Z\n"
                                "Bob,2,ada,\nCy,3,nowhere,\nDee,4,,\n"));
  auto roster = read_roster(file);
  ASSERT_TRUE(roster) << render(roster.error());
  auto all = take_repositories(*roster, file, {}, root / "repos", path, true);
  ASSERT_TRUE(all) << render(all.error());
  ASSERT_EQ(all->submissions.size(), 1u) << "Bob shares Ada's repository";
  EXPECT_EQ(all->submissions[0].name, "Ada-Lovelace");
  EXPECT_EQ(all->submissions[0].origin.submitted, "2026-11-20T10:00:00Z");
  EXPECT_EQ(all->submissions[0].origin.commit.size(), 40u);
  ASSERT_EQ(all->problems.size(), 1u);
  EXPECT_EQ(all->problems[0].find("Cy: git failed"), 0u) << all->problems[0];
  fs::remove_all(root / "ada");
  auto kept = take_repositories(*roster, file, {}, root / "repos", path, false);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->submissions.size(), 1u) << "a dry run clones nothing";
  EXPECT_TRUE(kept->problems.empty());
}

}  // namespace
}  // namespace capstone
