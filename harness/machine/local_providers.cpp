// Models that are asked without a network of ours: by a program, through a folder, from a recording.
#include <fmt/format.h>

#include "harness/base/files.h"
#include "harness/base/last_line.h"
#include "harness/machine/provider.h"
#include "harness/machine/waiting.h"
#include "harness/project/reply/extract.h"

namespace capstone::machine {
namespace {

bool is_plain(std::string_view text, std::string_view signs) {
  for (const char c : text)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
        signs.find(c) == signs.npos)
      return false;
  return !text.empty();
}

Result<void> check_name(const std::string& name) {
  constexpr std::size_t kLongest = 200;  // [B] a file system takes 255, its extension included
  if (is_plain(name, "-_.") && name[0] != '.' && name.size() <= kLongest) return {};
  return fail("a question's name cannot be a file's: " + printable(to_utf8(name)).substr(0, kLongest), {},
              "it has letters, digits, `-`, `_` and `.`, and does not begin with `.`", ExitCode::kInternal);
}

// The last lines of what a program printed, indented for an error.
std::string last_lines(const std::string& text) {
  constexpr std::size_t kLines = 5, kLineBytes = 300;
  std::vector<std::string> lines = split(trim(printable(to_utf8(text))), '\n');
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  std::string end;
  for (const std::string& line : lines) end += "\n    " + to_utf8(line.substr(0, kLineBytes));
  return end;
}

class CommandProvider : public Provider {
 public:
  CommandProvider(std::string program, double timeout_seconds)
      : program_(std::move(program)), timeout_seconds_(timeout_seconds) {}

  // Its arguments may hold a key or a path.
  std::string description() const override {
    const std::string_view word = std::string_view(program_).substr(0, program_.find(' '));
    if (!is_plain(word, "-_./")) return "a program";
    return fmt::format("the program {}", word.substr(word.rfind('/') + 1));
  }

  Result<Answer> ask(const Question& question, const std::stop_token& stop) override {
    const Clock::time_point begin = Clock::now();
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c", program_};
    spec.input = flat_text(question.conversation);
    spec.max_output = kMaxReplyBytes;
    CAPSTONE_TRY(Child child, Child::start(spec));
    const Clock::time_point end = begin + to_duration(timeout_seconds_);
    while (child.running() && !stopped(stop) && Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const ProcessResult ran = child.finish(std::chrono::milliseconds(0));
    if (stopped(stop)) return fail(interruption());
    if (!ran.ok()) return fail(failure(ran));
    if (trim(ran.out).empty()) return fail(error("the program printed no reply", ran));
    Answer answer;
    answer.text = ran.out;
    answer.seconds = seconds_since(begin);
    return answer;
  }

 private:
  Error failure(const ProcessResult& ran) const {
    using End = ProcessResult::End;
    if (ran.end == End::kTimedOut)
      return error(fmt::format("the program did not end within {:g} s", timeout_seconds_), ran);
    if (ran.end == End::kTooMuchOutput)
      return error(
          fmt::format("the program printed more than {}", format_bytes(static_cast<double>(kMaxReplyBytes))),
          ran);
    if (ran.end == End::kSignalled)
      return error(fmt::format("the program was ended by signal {}", ran.status), ran);
    return error(fmt::format("the program ended with exit code {}", ran.status), ran);
  }

  Error error(const std::string& what, const ProcessResult& ran) const {
    return {what, program_,
            trim(ran.err).empty() ? "it reads the question on its standard input and prints the reply"
                                  : "its standard error ends with:" + last_lines(ran.err),
            ExitCode::kEnvironment};
  }

  std::string program_;
  double timeout_seconds_;
};

fs::path prompt_path(const fs::path& folder, const std::string& name) {
  return folder / (name + ".prompt.md");
}
fs::path reply_path(const fs::path& folder, const std::string& name) { return folder / (name + ".reply.md"); }

// A file's size and time: whether it still changes.
struct Look {
  std::uintmax_t size = 0;
  fs::file_time_type time;
  bool operator==(const Look&) const = default;
};

Look look_at(const fs::path& path) {
  std::error_code code;
  Look look;
  if (!fs::is_regular_file(path, code)) return {};
  look.size = fs::file_size(path, code);
  if (code) return {};
  look.time = fs::last_write_time(path, code);
  return code ? Look{} : look;
}

class FolderProvider : public Provider {
 public:
  explicit FolderProvider(fs::path folder) : folder_(std::move(folder)) {}
  std::string description() const override { return "through a folder"; }

  Result<Answer> ask(const Question& question, const std::stop_token& stop) override {
    const Clock::time_point begin = Clock::now();
    CAPSTONE_CHECK(check_name(question.name));
    CAPSTONE_CHECK(leave_prompt(prompt_path(folder_, question.name), flat_text(question.conversation)));
    const fs::path reply = reply_path(folder_, question.name);
    if (!wait_for(reply, stop)) return fail(interruption());
    Answer answer;
    CAPSTONE_TRY(answer.text, read_file(reply, kMaxReplyBytes));
    answer.seconds = seconds_since(begin);
    return answer;
  }

 private:
  // A prompt that is there already may have an answer: it is never replaced by another one.
  static Result<void> leave_prompt(const fs::path& path, const std::string& text) {
    std::error_code code;
    if (!fs::exists(path, code)) return write_new_file(path, text);
    CAPSTONE_TRY(const std::string there, read_file(path));
    if (there == text) return {};
    return fail("this prompt exists already, with other text", path.string(),
                "it belongs to another run: use a new folder, or move its files away");
  }

  // Until the reply is there and whoever writes it has finished.
  static bool wait_for(const fs::path& reply, const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kPoll{200};
    constexpr std::chrono::seconds kQuiet{1};
    Look last = look_at(reply);
    Clock::time_point since = Clock::now();
    if (last.size > 0 && fs::file_time_type::clock::now() - last.time >= kQuiet) return !stopped(stop);
    while (last.size == 0 || Clock::now() - since < kQuiet) {
      if (!sleep_until(Clock::now() + kPoll, stop)) return false;
      const Look now = look_at(reply);
      if (now == last) continue;
      last = now;
      since = Clock::now();
    }
    return true;
  }

  fs::path folder_;
};

class RecordedProvider : public Provider {
 public:
  explicit RecordedProvider(fs::path folder) : folder_(std::move(folder)) {}
  std::string description() const override { return "recorded replies"; }

  Result<Answer> ask(const Question& question, const std::stop_token& stop) override {
    const Clock::time_point begin = Clock::now();
    if (stopped(stop)) return fail(interruption());
    CAPSTONE_CHECK(check_name(question.name));
    const fs::path reply = reply_path(folder_, question.name);
    std::error_code code;
    if (!fs::exists(reply, code))
      return fail("the recording has no reply to question " + question.name, reply.string(),
                  "put the reply there, or ask a model");
    Answer answer;
    CAPSTONE_TRY(answer.text, read_file(reply, kMaxReplyBytes));
    answer.seconds = seconds_since(begin);
    return answer;
  }

 private:
  fs::path folder_;
};

}  // namespace

std::string flat_text(const std::vector<Message>& conversation) {
  if (conversation.size() == 1) return conversation[0].text;
  std::string text = "This is a conversation. Answer its last message.\n";
  for (const Message& message : conversation)
    text += fmt::format("\n----- {} -----\n\n{}{}", message.role, message.text,
                        message.text.ends_with('\n') ? "" : "\n");
  return text;
}

std::unique_ptr<Provider> command_provider(const std::string& program, double timeout_seconds) {
  return std::make_unique<CommandProvider>(program, timeout_seconds);
}

Result<std::unique_ptr<Provider>> folder_provider(const fs::path& folder) {
  CAPSTONE_CHECK(make_folders(folder));
  return std::make_unique<FolderProvider>(folder);
}

Result<std::unique_ptr<Provider>> recorded_provider(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return fail("no such folder", folder.string(), "check the path");
  return std::make_unique<RecordedProvider>(folder);
}

}  // namespace capstone::machine
