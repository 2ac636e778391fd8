// Models that are asked by a program, through a folder, and from a recording.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "harness/base/scratch_folder.h"
#include "harness/base/subprocess.h"
#include "harness/machine/provider.h"

namespace capstone::machine {
namespace {

const Question kQuestion{"0001", {{"user", "Write a kernel.\n"}}};

std::string text_of(const Result<Answer>& answer) { return answer ? answer->text : render(answer.error()); }

// An answer that a thread waits for, and that the test may stop.
class Asked {
 public:
  Asked(Provider& provider, Question question)
      : thread_([this, &provider, question = std::move(question)] {
          answer_ = provider.ask(question, source_.get_token());
        }) {}
  Result<Answer> wait() {
    thread_.join();
    return answer_;
  }
  Result<Answer> stop() {
    source_.request_stop();
    return wait();
  }

 private:
  std::stop_source source_;
  Result<Answer> answer_;
  std::thread thread_;
};

void wait_for(const fs::path& file) {
  while (!fs::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(FlatText, OneMessageIsGivenVerbatim) { EXPECT_EQ(flat_text({{"user", "a\r\n b"}}), "a\r\n b"); }

TEST(FlatText, SeveralMessagesHaveTheirRoles) {
  EXPECT_EQ(flat_text({{"user", "Write."}, {"assistant", "code\n"}, {"user", "Faster."}}),
            "This is a conversation. Answer its last message.\n"
            "\n----- user -----\n\nWrite.\n\n----- assistant -----\n\ncode\n\n----- user -----\n\nFaster.\n");
}

TEST(CommandProvider, ReadsTheQuestionAndPrintsTheReply) {
  const auto provider = command_provider("sed s/Write/Wrote/", 60);
  const auto answer = provider->ask(kQuestion, {});
  EXPECT_EQ(text_of(answer), "Wrote a kernel.\n");
  EXPECT_EQ(answer->requests, 1);
}

TEST(CommandProvider, ItsStandardErrorIsShownWhereItFails) {
  const auto answer = command_provider("echo loading >&2; echo no model >&2; exit 3", 60)->ask(kQuestion, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "the program ended with exit code 3");
  EXPECT_NE(answer.error().hint.find("loading\n    no model"), std::string::npos) << answer.error().hint;
}

TEST(CommandProvider, AProgramThatIsNotThereIsNamed) {
  const auto answer = command_provider("no-such-program-here", 60)->ask(kQuestion, {});
  ASSERT_FALSE(answer);
  EXPECT_NE(render(answer.error()).find("no-such-program-here"), std::string::npos);
  EXPECT_NE(answer.error().hint.find("not found"), std::string::npos) << answer.error().hint;
}

TEST(CommandProvider, SilenceIsNoReply) {
  EXPECT_NE(text_of(command_provider("true", 60)->ask(kQuestion, {})).find("printed no reply"),
            std::string::npos);
}

TEST(CommandProvider, TimeAndOutputAreLimited) {
  EXPECT_NE(text_of(command_provider("sleep 600", 0.1)->ask(kQuestion, {})).find("within 0.1 s"),
            std::string::npos);
  EXPECT_NE(text_of(command_provider("yes", 600)->ask(kQuestion, {})).find("more than 4.00 MiB"),
            std::string::npos);
}

TEST(CommandProvider, IsStopped) {
  const ScratchFolder folder(fs::temp_directory_path() / "capstone-command");
  fs::create_directories(folder.path());
  const auto provider =
      command_provider("touch '" + (folder.path() / "begun").string() + "'; sleep 600", 600);
  Asked asked(*provider, kQuestion);
  wait_for(folder.path() / "begun");
  const auto answer = asked.stop();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::kInterrupted);
}

TEST(CommandProvider, ItsDescriptionTellsNoPathAndNoKey) {
  EXPECT_EQ(command_provider("/home/ada/ask.py --key sk-1", 1)->description(), "the program ask.py");
  EXPECT_EQ(command_provider("KEY=sk-1 ask.py", 1)->description(), "a program");
  EXPECT_EQ(command_provider("'/home/ada/my models/ask'", 1)->description(), "a program");
  EXPECT_EQ(command_provider("", 1)->description(), "a program");
}

class FolderOfReplies : public testing::Test {
 protected:
  FolderOfReplies() { fs::create_directories(folder_.path()); }
  const fs::path& folder() const { return folder_.path(); }
  fs::path prompt() const { return folder() / "0001.prompt.md"; }
  fs::path reply() const { return folder() / "0001.reply.md"; }
  static void write(const fs::path& file, const std::string& text) {
    ASSERT_TRUE(write_file_atomic(file, text));
  }
  static void make_old(const fs::path& file) {
    fs::last_write_time(file, fs::last_write_time(file) - std::chrono::minutes(1));
  }
  std::unique_ptr<Provider> provider() const { return std::move(*folder_provider(folder())); }

 private:
  ScratchFolder folder_{fs::temp_directory_path() / "capstone-replies"};
};

TEST_F(FolderOfReplies, ThePromptIsLeftThereAndTheReplyIsAwaited) {
  const auto asked_of = provider();
  Asked asked(*asked_of, kQuestion);
  wait_for(prompt());
  EXPECT_EQ(*read_file(prompt()), "Write a kernel.\n");
  write(reply(), "the reply");
  EXPECT_EQ(text_of(asked.wait()), "the reply");
}

TEST_F(FolderOfReplies, AReplyIsNotTakenWhileItGrows) {
  const auto asked_of = provider();
  Asked asked(*asked_of, kQuestion);
  wait_for(prompt());
  std::ofstream file(reply());
  std::string whole;
  auto longest = std::chrono::steady_clock::duration::zero();
  for (auto last = std::chrono::steady_clock::now(); whole.size() < 24;) {
    file << 'x' << std::flush;
    whole += 'x';
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    const auto now = std::chrono::steady_clock::now();
    longest = std::max(longest, now - last);
    last = now;
  }
  const std::string text = text_of(asked.wait());
  if (longest > std::chrono::milliseconds(500))
    GTEST_SKIP() << "this machine stood still while it was written";
  EXPECT_EQ(text, whole);
}

TEST_F(FolderOfReplies, AnOldReplyIsTaken) {
  write(reply(), "there already");
  make_old(reply());
  EXPECT_EQ(text_of(provider()->ask(kQuestion, {})), "there already");
  EXPECT_TRUE(fs::exists(prompt()));
}

TEST_F(FolderOfReplies, AnEmptyReplyIsNone) {
  write(reply(), "");
  make_old(reply());
  const auto asked_of = provider();
  Asked asked(*asked_of, kQuestion);
  wait_for(prompt());
  const auto answer = asked.stop();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::kInterrupted);
}

TEST_F(FolderOfReplies, APromptIsNeverReplaced) {
  write(prompt(), "another question");
  write(reply(), "its reply");
  make_old(reply());
  const auto answer = provider()->ask(kQuestion, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().where, prompt().string());
  EXPECT_EQ(*read_file(prompt()), "another question");
  EXPECT_EQ(*read_file(reply()), "its reply");
}

TEST_F(FolderOfReplies, ThePromptOfAnEarlierRunServes) {
  write(prompt(), "Write a kernel.\n");
  write(reply(), "its reply");
  make_old(reply());
  EXPECT_EQ(text_of(provider()->ask(kQuestion, {})), "its reply");
}

TEST_F(FolderOfReplies, AnInterruptEndsTheWait) {
  EXPECT_EXIT(
      {
        std::thread([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          request_interrupt();
        }).detach();
        const auto answer = provider()->ask(kQuestion, {});
        std::_Exit(answer ? 0 : static_cast<int>(answer.error().code));
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::kInterrupted)), "");
}

TEST_F(FolderOfReplies, NamesStayInTheFolder) {
  for (const char* name : {"", ".", "..", ".hidden", "../0001", "a/b", "a b", "a\n", "ä"}) {
    const auto answer = provider()->ask({name, kQuestion.conversation}, {});
    ASSERT_FALSE(answer) << name;
    EXPECT_NE(answer.error().what.find("name"), std::string::npos) << answer.error().what;
    EXPECT_FALSE((*recorded_provider(folder()))->ask({name, kQuestion.conversation}, {})) << name;
  }
  EXPECT_TRUE(fs::is_empty(folder()));
}

TEST_F(FolderOfReplies, ARecordingNeverWaits) {
  const auto recorded = std::move(*recorded_provider(folder()));
  const auto missing = recorded->ask(kQuestion, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().where, reply().string());
  write(reply(), "as it was");
  EXPECT_EQ(text_of(recorded->ask(kQuestion, {})), "as it was");
  EXPECT_FALSE(fs::exists(prompt()));
  EXPECT_FALSE(recorded_provider(folder() / "none"));
}

}  // namespace
}  // namespace capstone::machine
