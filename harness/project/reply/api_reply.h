#pragma once
// Reads a model's reply as the programming interface of its provider gives it: JSON around the text.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

/// What such an answer holds.
struct ApiReply {
  std::string form;                ///< "OpenAI chat completion", "Anthropic message" …
  std::string text;                ///< the model's words, all parts joined
  std::string error;               ///< what the provider says went wrong; there is no text then
  std::vector<std::string> notes;  ///< one sentence for each thing that a reader should know
};

/// Understands answers of OpenAI (chat completions and responses), Anthropic (messages) and Gemini, and the
/// errors of all of them. None: the bytes are something else. Thoughts and calls of tools are left out.
std::optional<ApiReply> read_api_reply(std::string_view bytes);

}  // namespace capstone
