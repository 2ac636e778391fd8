// Providers without a network: a program, a folder, a recording.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/machine/provider.h"
#include "harness/project/reply/extract.h"

namespace capstone::machine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPoll = std::chrono::milliseconds(100);

tl::unexpected<Error> was_stopped() { return fail("stopped", {}, {}, ExitCode::kInterrupted); }

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

class CommandProvider : public Provider {
 public:
  CommandProvider(std::string program, double timeout_seconds)
      : program_(std::move(program)), timeout_seconds_(timeout_seconds) {}

  // The program's name alone: its arguments may hold a key or a path.
  std::string description() const override {
    const std::string first = program_.substr(0, program_.find_first_of(" \t\n"));
    return "the program " + fs::path(first).filename().string();
  }

  Result<Answer> ask(const Question& question, const std::stop_token& stop) override {
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c", program_};
    spec.env = {{"CAPSTONE_QUESTION", question.name}};
    spec.input = flat_text(question.conversation);
    spec.max_output = kMaxReplyBytes;
    const auto begun = Clock::now();
    CAPSTONE_TRY(Child child, Child::start(spec));
    while (child.running()) {
      if (stop.stop_requested() || interrupted()) return was_stopped();
      if (seconds_since(begun) > timeout_seconds_)
        return fail(
            fmt::format("the program gave no answer to {} in {:g} s", question.name, timeout_seconds_),
            program_, "give it more time: --answer-timeout SECONDS");
      std::this_thread::sleep_for(kPoll / 5);
    }
    const ProcessResult ended = child.finish(std::chrono::seconds(5));
    if (ended.end == ProcessResult::End::kInterrupted) return was_stopped();
    if (!ended.ok()) return complain(question, ended);
    if (trim(ended.out).empty())
      return fail(fmt::format("the program's answer to {} is empty", question.name), program_,
                  "it gets the prompt on its standard input and writes the reply to its standard output");
    Answer answer;
    answer.text = ended.out;
    answer.seconds = seconds_since(begun);
    return answer;
  }

 private:
  tl::unexpected<Error> complain(const Question& question, const ProcessResult& ended) const {
    constexpr std::size_t kShown = 600;
    const std::string said(trim(to_utf8(ended.err)));
    const std::string how = ended.end == ProcessResult::End::kExited
                                ? fmt::format("ended with exit code {}", ended.status)
                            : ended.end == ProcessResult::End::kTooMuchOutput
                                ? fmt::format("wrote more than {}", format_bytes(kMaxReplyBytes))
                                : std::string("was ended by a signal");
    return fail(fmt::format("the program that answers {}", how) + " for " + question.name, program_,
                said.empty() ? "it said nothing on its standard error"
                             : "it said: " + said.substr(said.size() - std::min(said.size(), kShown)));
  }

  std::string program_;
  double timeout_seconds_;
};

Result<void> require_file_name(const std::string& name) {
  const bool fits =
      !name.empty() && name.front() != '.' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
          std::string::npos;
  return fits ? Result<void>() : fail(fmt::format("`{}` cannot be a file's name", printable(name)));
}

class FolderProvider : public Provider {
 public:
  FolderProvider(fs::path folder, bool waits) : folder_(std::move(folder)), waits_(waits) {}

  std::string description() const override { return waits_ ? "replies from a folder" : "recorded replies"; }

  Result<Answer> ask(const Question& question, const std::stop_token& stop) override {
    CAPSTONE_CHECK(require_file_name(question.name));
    const fs::path reply = folder_ / (question.name + ".reply.md");
    const auto begun = Clock::now();
    if (waits_) {
      CAPSTONE_CHECK(write_prompt(question));
      while (!is_settled(reply)) {
        if (stop.stop_requested() || interrupted()) return was_stopped();
        std::this_thread::sleep_for(kPoll);
      }
    }
    std::error_code code;
    if (!fs::exists(reply, code))
      return fail("the recording has no reply to " + question.name, reply.string(),
                  "it ends here; --tries N asks no more than it holds");
    Answer answer;
    CAPSTONE_TRY(answer.text, read_file(reply, kMaxReplyBytes));
    answer.seconds = waits_ ? seconds_since(begun) : 0;
    return answer;
  }

 private:
  Result<void> write_prompt(const Question& question) const {
    const fs::path path = folder_ / (question.name + ".prompt.md");
    const std::string text = flat_text(question.conversation);
    if (const auto there = read_file(path)) {
      if (*there == text) return {};
      return fail("the folder holds another prompt of this name", path.string(),
                  "it belongs to another run: name another folder");
    }
    return write_file_atomic(path, text);
  }

  // Not empty, and not changed for a second: it may be written slowly.
  static bool is_settled(const fs::path& path) {
    std::error_code code;
    if (const auto size = fs::file_size(path, code); code || size == 0) return false;
    const auto changed = fs::last_write_time(path, code);
    return !code && fs::file_time_type::clock::now() - changed > std::chrono::seconds(1);
  }

  fs::path folder_;
  bool waits_;
};

}  // namespace

std::unique_ptr<Provider> command_provider(const std::string& program, double timeout_seconds) {
  return std::make_unique<CommandProvider>(program, timeout_seconds);
}

Result<std::unique_ptr<Provider>> folder_provider(const fs::path& folder) {
  CAPSTONE_CHECK(make_folders(folder));
  return std::make_unique<FolderProvider>(folder, true);
}

Result<std::unique_ptr<Provider>> recorded_provider(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code))
    return fail("no such recording", folder.string(), "name a folder with files like 0001.reply.md");
  return std::make_unique<FolderProvider>(folder, false);
}

}  // namespace capstone::machine
