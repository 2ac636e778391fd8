#include "harness/project/reply/api_reply.h"

#include <fmt/format.h>

#include "harness/base/json.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

const Json& at(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

// The text of parts like {"type": "text", "text": "…"}. A part of another type (thoughts, tools) is left out.
std::string text_of_parts(const Json& parts, std::string_view type) {
  if (parts.is_string()) return parts.get<std::string>();
  std::string text;
  if (!parts.is_array()) return text;
  for (const Json& part : parts)
    if (text_at(part, "type") == type && at(part, "thought") != Json(true)) text += text_at(part, "text");
  return text;
}

void note_end(ApiReply& reply, const std::string& why, std::string_view cut_off) {
  if (why == cut_off)
    reply.notes.push_back(fmt::format("the provider cut the reply off (\"{}\"): ask for more tokens", why));
}

void note_choices(ApiReply& reply, std::size_t count) {
  if (count > 1) reply.notes.push_back(fmt::format("the answer has {} replies; the first is read", count));
}

ApiReply chat_completion(const Json& json) {
  ApiReply reply{"OpenAI chat completion", {}, {}, {}};
  const Json& choices = at(json, "choices");
  if (choices.empty()) return reply;
  reply.text = text_of_parts(at(at(choices[0], "message"), "content"), "text");
  if (reply.text.empty()) reply.text = text_at(at(choices[0], "message"), "refusal");
  note_end(reply, text_at(choices[0], "finish_reason"), "length");
  note_choices(reply, choices.size());
  return reply;
}

ApiReply response(const Json& json) {
  ApiReply reply{"OpenAI response", {}, {}, {}};
  for (const Json& item : at(json, "output"))
    if (text_at(item, "type") == "message") reply.text += text_of_parts(at(item, "content"), "output_text");
  note_end(reply, text_at(at(json, "incomplete_details"), "reason"), "max_output_tokens");
  return reply;
}

ApiReply message(const Json& json) {
  ApiReply reply{"Anthropic message", text_of_parts(at(json, "content"), "text"), {}, {}};
  note_end(reply, text_at(json, "stop_reason"), "max_tokens");
  return reply;
}

ApiReply gemini(const Json& json) {
  ApiReply reply{"answer of Gemini", {}, {}, {}};
  const Json& candidates = at(json, "candidates");
  if (candidates.empty()) return reply;
  for (const Json& part : at(at(candidates[0], "content"), "parts"))
    if (at(part, "thought") != Json(true)) reply.text += text_at(part, "text");
  note_end(reply, text_at(candidates[0], "finishReason"), "MAX_TOKENS");
  note_choices(reply, candidates.size());
  return reply;
}

std::optional<ApiReply> reply_in(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  if (const Json& error = at(json, "error"); error.is_object() && error.contains("message"))
    return ApiReply{"error of a provider", {}, text_at(error, "message"), {}};
  if (at(json, "choices").is_array()) return chat_completion(json);
  if (at(json, "candidates").is_array()) return gemini(json);
  if (at(json, "output").is_array()) return response(json);
  if (text_at(json, "role") == "assistant" && at(json, "content").is_array()) return message(json);
  return std::nullopt;
}

}  // namespace

std::optional<ApiReply> read_api_reply(std::string_view bytes) {
  const std::string_view body = trim(bytes);
  if (!body.starts_with('{') && !body.starts_with('[')) return std::nullopt;
  const Json json = parse_json(body);
  // Some clients save the answer as a list of one.
  auto reply = reply_in(json.is_array() && json.size() == 1 ? json[0] : json);
  if (!reply) return std::nullopt;
  if (const std::string model = text_at(json, json.contains("modelVersion") ? "modelVersion" : "model");
      !model.empty())
    reply->notes.push_back(fmt::format("the answer names the model {}", printable(model)));
  return reply;
}

}  // namespace capstone
