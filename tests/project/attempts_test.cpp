#include "harness/project/attempts.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;
namespace fs = std::filesystem;

class FileAttempt : public ::testing::Test {
 protected:
  Scratch scratch;
  Project project;
  LedgerView ledger;

  void SetUp() override { project.root = scratch.path(); }
  Result<Attempt> file(const AttemptFiles& files = {"prompt", "reply", "kernel"}) {
    Attempt attempt;
    attempt.model = "model-1";
    attempt.extracted = "one fenced block";
    return file_attempt(project, ledger, attempt, files);
  }
};

TEST_F(FileAttempt, KeepsEveryByteAndFillsInTheRecord) {
  const std::string reply("```cuda\r\n\0\xFF```", 15);
  auto attempt = file({"the prompt", reply, "the kernel"});
  ASSERT_TRUE(attempt) << render(attempt.error());
  EXPECT_EQ(attempt->number, 1);
  EXPECT_EQ(attempt->reply_sha256, sha256_hex(reply));
  EXPECT_EQ(attempt->prompt_sha256, sha256_hex("the prompt"));
  const auto files = tree(project.attempt(1));
  EXPECT_EQ(files.at("prompt.md"), "the prompt");
  EXPECT_EQ(files.at("reply.md"), reply);
  EXPECT_EQ(files.at("kernel.cu"), "the kernel");
  const Json meta = Json::parse(files.at("meta.json"));
  EXPECT_EQ(meta["model"], "model-1");
  EXPECT_EQ(meta.get<Attempt>().reply_sha256, attempt->reply_sha256);
  EXPECT_EQ(files.size(), 4u);
}

TEST_F(FileAttempt, AReplyWithoutCodeIsFiledToo) {
  auto attempt = file({"prompt", "I cannot help with that.", std::nullopt});
  ASSERT_TRUE(attempt);
  EXPECT_FALSE(fs::exists(project.attempt(1) / "kernel.cu"));
}

TEST_F(FileAttempt, NumbersAreNeverReused) {
  ASSERT_EQ(file()->number, 1);
  ASSERT_EQ(file()->number, 2);
  fs::remove_all(project.attempt(1));
  EXPECT_EQ(file()->number, 3) << "a hole is not filled";
  ledger.attempts.emplace_back().number = 7;
  EXPECT_EQ(file()->number, 8) << "the ledger remembers folders that were deleted";
  fs::create_directories(scratch / "llm/attempt-x");
  fs::create_directories(scratch / "llm/attempt-99999999999999999999");
  EXPECT_EQ(file()->number, 9);
}

TEST_F(FileAttempt, ManyAtOnceGetANumberEach) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(in_other_process([&, i] {
      auto attempt = file({"prompt", "reply " + std::to_string(i), std::nullopt});
      return attempt ? attempt->number : 99;
    }));
  std::set<int> numbers;
  for (pid_t child : children) numbers.insert(exit_code_of(child));
  EXPECT_EQ(numbers, (std::set<int>{1, 2, 3, 4, 5, 6, 7, 8}));
  std::set<std::string> replies;
  for (int number : numbers) replies.insert(slurp(project.attempt(number) / "reply.md"));
  EXPECT_EQ(replies.size(), 8u) << "none was overwritten";
}

TEST_F(FileAttempt, AFullDiskLeavesNoHalfAttempt) {
  pid_t child = in_other_process([&] {
    limit_file_size(1000);
    return file({"prompt", std::string(5000, 'r'), "kernel"}) ? 1 : 0;
  });
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(entries_in(scratch / "llm"), 0u);
}

TEST_F(FileAttempt, AProjectThatCannotBeWrittenIsAnError) {
  put(scratch / "llm", "a file");
  EXPECT_FALSE(file());
}

}  // namespace
}  // namespace capstone
