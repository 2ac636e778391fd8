// Providers without a network.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "harness/base/files.h"
#include "harness/machine/provider.h"

namespace capstone::machine {
namespace {

class LocalProviders : public ::testing::Test {
 protected:
  LocalProviders() {
    fs::remove_all(folder_);
    EXPECT_TRUE(make_folders(folder_));
  }
  static Question question(const std::string& text = "the prompt\n") { return {"0001", {{"user", text}}}; }
  fs::path folder_ =
      fs::path(::testing::TempDir()) /
      ("providers_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  std::stop_source stop_;
};

TEST_F(LocalProviders, AProgramGetsThePromptAndItsOutputIsTheReply) {
  auto program = command_provider("tr a-z A-Z; echo \"$CAPSTONE_QUESTION\"", 60);
  EXPECT_EQ(program->ask(question(), stop_.get_token())->text, "THE PROMPT\n0001\n");
  EXPECT_EQ(program->description(), "the program tr");
}

TEST_F(LocalProviders, AFailingProgramIsQuoted) {
  const auto failed = command_provider("echo no quota >&2; exit 3", 60)->ask(question(), stop_.get_token());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "the program that answers ended with exit code 3 for 0001");
  EXPECT_EQ(failed.error().hint, "it said: no quota");
  EXPECT_FALSE(command_provider("cat > /dev/null", 60)->ask(question(), stop_.get_token()));
}

TEST_F(LocalProviders, AProgramThatWritesWithoutEndIsStopped) {
  const auto failed = command_provider("yes", 60)->ask(question(), stop_.get_token());
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().what.find("wrote more than"), std::string::npos) << failed.error().what;
}

TEST_F(LocalProviders, AProgramThatHangsMeetsItsTimeLimit) {
  EXPECT_NE(
      command_provider("sleep 600", 0.2)->ask(question(), stop_.get_token()).error().what.find("in 0.2 s"),
      std::string::npos);
}

TEST_F(LocalProviders, AConversationIsOneTextInWhichEverySpeakerIsNamed) {
  EXPECT_EQ(flat_text({{"user", "alone"}}), "alone");
  const std::string text = flat_text({{"user", "a"}, {"assistant", "b"}, {"user", "c"}});
  EXPECT_LT(text.find("=== User ===\n\na"), text.find("=== Assistant ===\n\nb"));
  EXPECT_TRUE(text.ends_with("=== User ===\n\nc\n"));
}

TEST_F(LocalProviders, AFolderGetsThePromptAndWaitsForTheReply) {
  auto provider = folder_provider(folder_).value();
  auto answer = std::async(std::launch::async, [&] { return provider->ask(question(), stop_.get_token()); });
  while (!fs::exists(folder_ / "0001.prompt.md")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(read_file(folder_ / "0001.prompt.md").value(), "the prompt\n");
  ASSERT_TRUE(write_file_atomic(folder_ / "0001.reply.md", "the reply"));
  EXPECT_EQ(answer.get()->text, "the reply");
}

TEST_F(LocalProviders, WaitingForAFolderCanBeStopped) {
  auto provider = folder_provider(folder_).value();
  auto answer = std::async(std::launch::async, [&] { return provider->ask(question(), stop_.get_token()); });
  stop_.request_stop();
  EXPECT_EQ(answer.get().error().code, ExitCode::kInterrupted);
}

TEST_F(LocalProviders, AnotherRunsPromptIsNeverOverwritten) {
  ASSERT_TRUE(write_file_atomic(folder_ / "0001.prompt.md", "another"));
  ASSERT_TRUE(write_file_atomic(folder_ / "0001.reply.md", "its reply"));
  const auto refused = folder_provider(folder_).value()->ask(question(), stop_.get_token());
  EXPECT_EQ(refused.error().what, "the folder holds another prompt of this name");
  EXPECT_EQ(read_file(folder_ / "0001.prompt.md").value(), "another");
}

TEST_F(LocalProviders, ARecordingNeverWaits) {
  ASSERT_TRUE(write_file_atomic(folder_ / "0001.reply.md", "the reply"));
  auto provider = recorded_provider(folder_).value();
  EXPECT_EQ(provider->ask(question(), stop_.get_token())->text, "the reply");
  Question next = question();
  next.name = "0002";
  EXPECT_EQ(provider->ask(next, stop_.get_token()).error().what, "the recording has no reply to 0002");
  next.name = "../0001";
  EXPECT_FALSE(provider->ask(next, stop_.get_token()));
  EXPECT_FALSE(recorded_provider(folder_ / "nowhere"));
}

}  // namespace
}  // namespace capstone::machine
