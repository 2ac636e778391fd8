#pragma once
// Language models that are asked for kernels. Four kinds: over HTTP, by a program, through a folder, and from
// a recording. All of them answer a conversation with a text.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "harness/base/error.h"

namespace capstone::machine {

struct Message {
  std::string role;  ///< "user" or "assistant"
  std::string text;
};

struct Question {
  std::string name;                   ///< unique in a run, and usable as a file's name: "0007", "2-3"
  std::vector<Message> conversation;  ///< begins and ends with the user's message
};

struct Answer {
  std::string text;                            ///< the model's whole reply
  std::string model;                           ///< as the provider names it; empty: it does not
  std::int64_t tokens_in = 0, tokens_out = 0;  ///< as reported; 0: not reported
  double cost = 0;                 ///< of these tokens, by the prices in the configuration; 0: unknown
  double seconds = 0;              ///< from the question to the end of the answer, retries included
  int requests = 1;                ///< how often the question was sent
  std::vector<std::string> notes;  ///< what a reader should know: "the provider cut the reply off …"
};

class Provider {
 public:
  virtual ~Provider() = default;
  /// Which model answers and how, for the record: no key, no path, no name of a user.
  virtual std::string description() const = 0;
  /// Asks and waits. May be called by several threads at once.
  /// @error no answer; says what to do. With ExitCode::kInterrupted after Ctrl-C or a request to stop.
  virtual Result<Answer> ask(const Question& question, const std::stop_token& stop) = 0;
};

/// A conversation as one text, for providers that take no list of messages. A single message is given
/// verbatim.
std::string flat_text(const std::vector<Message>& conversation);

/// An endpoint with OpenAI's chat interface.
struct Endpoint {
  std::string url;                     ///< up to and without "/chat/completions"
  std::string model;                   ///< its name there
  std::string key;                     ///< never recorded, never shown; empty: none is sent
  double price_in = 0, price_out = 0;  ///< for a million tokens; 0: unknown
  double temperature = -1;             ///< below 0: the endpoint's own
  int max_tokens = 0;                  ///< of a reply; 0: the endpoint's own
  double timeout_seconds = 900;        ///< of one request
  double requests_per_minute = 0;      ///< at most; 0: no limit
  int most_requests = 6;  ///< for one question: after a 429, a 5xx or a cut connection it is sent again
  double first_pause_seconds = 2;  ///< before it is sent again; doubled each time; Retry-After is obeyed
};

/// Reads an endpoint from a YAML file outside of any project.
/// @param name  which one of the file's `models`; empty: the only one
/// @param env   value of an environment variable that the file names in `key_env`
/// @error no such file or model, a key that is not known; says what may be there.
using Environment = std::string (*)(const std::string& variable);
Result<Endpoint> read_endpoint(const std::filesystem::path& file, const std::string& name, Environment env);

/// @error the URL is none
Result<std::unique_ptr<Provider>> http_provider(const Endpoint& endpoint);
/// Runs `program` through /bin/sh for each question: the text on its standard input, the reply on its
/// standard output. Its standard error is shown where it fails.
std::unique_ptr<Provider> command_provider(const std::string& program, double timeout_seconds);
/// Writes NAME.prompt.md into the folder, and waits until NAME.reply.md is there and has stopped to change.
Result<std::unique_ptr<Provider>> folder_provider(const std::filesystem::path& folder);
/// Reads NAME.reply.md from the folder and never waits. @error of ask(): there is no such reply.
Result<std::unique_ptr<Provider>> recorded_provider(const std::filesystem::path& folder);

}  // namespace capstone::machine
