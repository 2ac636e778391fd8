#include "harness/project/archive/submission.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "harness/base/digest.h"
#include "harness/project/archive/archive.h"
#include "harness/project/archive/collect.h"
#include "tests/project/reply/scratch_project.h"

namespace capstone {
namespace {

class Submission : public ScratchProject {
 protected:
  SubmissionPlan plan() {
    auto planned = plan_submission(project, options);
    EXPECT_TRUE(planned) << (planned ? "" : render(planned.error()));
    return planned.value_or(SubmissionPlan{});
  }
  static const SubmissionFile* find(const SubmissionPlan& plan, const std::string& path) {
    auto it =
        std::find_if(plan.files.begin(), plan.files.end(), [&](const auto& f) { return f.path == path; });
    return it == plan.files.end() ? nullptr : &*it;
  }
  static std::string reason(const SubmissionPlan& plan, const std::string& path) {
    for (const SkippedFile& skipped : plan.skipped)
      if (skipped.path == path) return skipped.reason;
    return find(plan, path) ? "(handed in)" : "(not seen)";
  }
  static const SubmissionFinding* finding(const SubmissionPlan& plan, SubmissionFinding::Kind kind) {
    for (const SubmissionFinding& f : plan.findings)
      if (f.kind == kind) return &f;
    return nullptr;
  }
  SubmissionOptions options{{"jdoe42", "/home/jdoe42", "lab7.example.org"}};
};

TEST_F(Submission, HoldsEveryPartOfACapstone) {
  SubmissionPlan planned = plan();
  std::set<std::string> paths, expected;
  for (const SubmissionFile& file : planned.files) paths.insert(file.path);
  for (const auto& [path, text] : kFiles) expected.insert(path);
  EXPECT_EQ(paths, expected);
  EXPECT_TRUE(planned.skipped.empty());
  EXPECT_TRUE(planned.findings.empty());
  EXPECT_EQ(planned.prefix, "s1234567-scale-rows");
  EXPECT_EQ(planned.mtime, 1772357400);  // 2026-03-01T09:30:00Z
}

TEST_F(Submission, IsTheSameBytesASecondTime) {
  auto first = write_submission(plan(), base / "a.tar.gz");
  ASSERT_TRUE(first) << render(first.error());
  for (const auto& [path, text] : kFiles) {
    ::chmod((project.root / path).c_str(), 0600);
    fs::last_write_time(project.root / path, fs::file_time_type::clock::now() + std::chrono::hours(5));
  }
  auto second = write_submission(plan(), base / "b.tar.gz");
  ASSERT_TRUE(second);
  EXPECT_EQ(read_file(base / "a.tar.gz").value(), read_file(base / "b.tar.gz").value());
  EXPECT_EQ(first->sha256, sha256_file(base / "b.tar.gz").value());
  EXPECT_EQ(first->bytes, fs::file_size(base / "b.tar.gz"));
}

TEST_F(Submission, UnpacksToWhatWasPlanned) {
  put("human/größe.md", "Notizen\n");
  auto receipt = write_submission(plan(), base / "a.tar.gz");
  ASSERT_TRUE(receipt);
  auto unpacked = unpack_archive(receipt->file, base / "out");
  ASSERT_TRUE(unpacked) << render(unpacked.error());
  EXPECT_EQ(unpacked->files.size(), kFiles.size() + 1);
  for (const auto& [path, text] : kFiles)
    EXPECT_EQ(read_file(base / "out" / "s1234567-scale-rows" / path).value_or("?"), text) << path;
  EXPECT_EQ(read_file(base / "out" / "s1234567-scale-rows" / "human" / "größe.md").value_or("?"),
            "Notizen\n");
}

TEST_F(Submission, LeavesOutWithAReason) {
  put("build/x.md", "a");
  put("human/kernel.o", "a");
  put("human/kernel.cu~", "a");
  put("human/.env", "a");
  put(".git/config", "a");
  put("human/run", std::string("\x7f"
                               "ELF\2\1\1",
                               7));
  put("thesis.pdf", "a");
  put(".capstone/ledger.jsonl.lock", "");
  put("report/__pycache__/x.py", "a");
  SubmissionPlan planned = plan();
  EXPECT_EQ(reason(planned, "build/"), "a build folder");
  EXPECT_EQ(reason(planned, "human/kernel.o"), "a build product");
  EXPECT_EQ(reason(planned, "human/kernel.cu~"), "an editor's leftover");
  EXPECT_EQ(reason(planned, "human/.env"), "a hidden file");
  EXPECT_EQ(reason(planned, ".git/"), "a hidden file");
  EXPECT_EQ(reason(planned, "human/run"), "a compiled program");
  EXPECT_EQ(reason(planned, "thesis.pdf"), "not part of a capstone");
  EXPECT_EQ(reason(planned, ".capstone/ledger.jsonl.lock"), "a working file of capstone");
  EXPECT_EQ(reason(planned, "report/__pycache__/"), "a build folder");
  EXPECT_EQ(planned.files.size(), kFiles.size());
}

TEST_F(Submission, LinksAreFollowedOnlyToWhatIsHandedInAnyway) {
  auto outside = base / "outside.md";
  ASSERT_TRUE(write_file_atomic(outside, "secret"));
  put(".env", "secret");
  fs::create_symlink(outside, project.root / "human/out.md");
  fs::create_symlink("../../outside.md", project.root / "human/out2.md");
  fs::create_symlink("/etc", project.root / "human/etc");
  fs::create_symlink("../.env", project.root / "human/env.md");
  fs::create_symlink("../worklog.md", project.root / "human/inside.md");
  fs::create_symlink("../llm", project.root / "human/llm");
  fs::create_symlink("nowhere", project.root / "human/dangling");
  fs::create_symlink("loop", project.root / "human/loop");
  SubmissionPlan planned = plan();
  for (const char* path : {"human/out.md", "human/out2.md", "human/etc"})
    EXPECT_EQ(reason(planned, path), "a link that leaves the project") << path;
  EXPECT_EQ(reason(planned, "human/env.md"), "a link to a file that is not handed in");
  EXPECT_EQ(reason(planned, "human/llm"), "a link to a folder; the folder is handed in under its own name");
  EXPECT_EQ(reason(planned, "human/dangling"), "a link whose target does not exist");
  EXPECT_EQ(reason(planned, "human/loop"), "a link whose target does not exist");
  ASSERT_TRUE(find(planned, "human/inside.md"));
  EXPECT_EQ(find(planned, "human/inside.md")->content, kFiles.at("worklog.md"));
}

TEST_F(Submission, AFifoDoesNotHang) {
  ASSERT_EQ(::mkfifo((project.root / "human/pipe").c_str(), 0600), 0);
  EXPECT_EQ(reason(plan(), "human/pipe"), "neither a file nor a folder");
}

TEST_F(Submission, NamesAreMaskedInCopiesOnly) {
  put("worklog.md", "Built in /home/jdoe42/capstone on lab7 by jdoe42.\n");
  SubmissionPlan planned = plan();
  EXPECT_EQ(find(planned, "worklog.md")->content, "Built in ~/capstone on [host] by [user].\n");
  EXPECT_EQ(find(planned, "worklog.md")->masked, 3);
  EXPECT_EQ(read_file(project.root / "worklog.md").value(),
            "Built in /home/jdoe42/capstone on lab7 by jdoe42.\n");
}

TEST_F(Submission, WhatADigestBindsIsReportedNotChanged) {
  std::string kernel = "// jdoe42\nextern \"C\" void launch() {}\n";
  std::string reply = "See /home/jdoe42/kernel.cu\n";
  std::string ledger = "{\"seq\":0,\"time\":\"2026-03-01T09:30:00Z\",\"body\":\"/home/jdoe42\"}\n";
  put("human/kernel.cu", kernel);
  put("llm/attempt-1/reply.md", reply);
  put(".capstone/ledger.jsonl", ledger);
  SubmissionPlan planned = plan();
  EXPECT_EQ(find(planned, "human/kernel.cu")->content, kernel);
  EXPECT_EQ(find(planned, "llm/attempt-1/reply.md")->content, reply);
  EXPECT_EQ(find(planned, ".capstone/ledger.jsonl")->content, ledger);
  ASSERT_EQ(planned.findings.size(), 3u);
  const SubmissionFinding* in_ledger = finding(planned, SubmissionFinding::Kind::kLedger);
  ASSERT_TRUE(in_ledger);
  EXPECT_EQ(in_ledger->where, ".capstone/ledger.jsonl:1");
  const SubmissionFinding* in_source = finding(planned, SubmissionFinding::Kind::kIdentity);
  ASSERT_TRUE(in_source);
  EXPECT_EQ(in_source->where, "human/kernel.cu:1");
  EXPECT_TRUE(write_submission(planned, base / "a.tar.gz"));
}

TEST_F(Submission, ASecretStopsItUnlessAllowed) {
  const std::string secret =
      "sk-"
      "a8Zq0Lw93kXv5Rt7Yb2Nc6Md1Pf4GhJ";
  put("llm/attempt-1/meta.json", "{\n \"note\": \"" + secret + "\"}\n");
  SubmissionPlan planned = plan();
  auto written = write_submission(planned, base / "a.tar.gz");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().where, "llm/attempt-1/meta.json:2");
  EXPECT_EQ(render(written.error()).find(secret), std::string::npos);
  EXPECT_FALSE(fs::exists(base / "a.tar.gz"));
  options.allow_secrets = true;
  EXPECT_TRUE(write_submission(plan(), base / "a.tar.gz"));
}

TEST_F(Submission, FilesThatAreNotUtf8AreHandedInAsTheyAre) {
  std::string latin =
                  "Gr\xfc\xdf"
                  "e von /home/jdoe42\n",
              binary("\x89PNG\0/home/jdoe42", 17);
  put("human/notes.md", latin);
  put("report/plot.png", binary);
  SubmissionPlan planned = plan();
  EXPECT_EQ(find(planned, "human/notes.md")->content,
            "Gr\xfc\xdf"
            "e von ~\n");
  EXPECT_EQ(find(planned, "report/plot.png")->content, binary);
}

TEST_F(Submission, TooLargeIsAnErrorThatNamesTheFile) {
  options.max_file = 100;
  put("report/big.html", std::string(101, 'a'));
  auto planned = plan_submission(project, options);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().where, "report/big.html");
  options.max_file = 1000;
  options.max_total = 300;
  EXPECT_FALSE(plan_submission(project, options));
  options.max_total = 1 << 20;
  options.max_files = 5;
  EXPECT_FALSE(plan_submission(project, options));
}

// Root can read everything, so the test runs as user nobody.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::seteuid(65534) != 0) std::abort();
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool was_root_;
};

TEST_F(Submission, AnUnreadableFileIsAnErrorNotAGap) {
  fs::permissions(base, fs::perms::all);
  ::chmod((project.root / "human/kernel.cu").c_str(), 0);
  Unprivileged nobody;
  auto planned = plan_submission(project, options);
  ASSERT_FALSE(planned);
  EXPECT_NE(planned.error().where.find("human/kernel.cu"), std::string::npos);
}

TEST_F(Submission, MissingPartsAreNamed) {
  fs::remove(project.root / "worklog.md");
  SubmissionPlan planned = plan();
  const SubmissionFinding* missing = finding(planned, SubmissionFinding::Kind::kMissing);
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->where, "worklog.md");
}

TEST_F(Submission, AFolderThatIsNotThereIsAnError) {
  project.root = base / "nowhere";
  EXPECT_FALSE(plan_submission(project, options));
}

}  // namespace
}  // namespace capstone
