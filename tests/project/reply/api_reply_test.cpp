#include "harness/project/reply/api_reply.h"

#include <gtest/gtest.h>

#include "harness/project/reply/extract.h"

namespace capstone {
namespace {

TEST(ApiReply, FourFormsAreRead) {
  struct {
    const char *json, *form;
  } const forms[] = {
      {R"({"id": "c", "model": "gpt", "choices": [{"message": {"role": "assistant", "content": "words"},
           "finish_reason": "stop"}]})",
       "OpenAI chat completion"},
      {R"({"object": "response", "model": "gpt", "output": [{"type": "reasoning", "summary": []},
           {"type": "message", "content": [{"type": "output_text", "text": "wor"},
           {"type": "output_text", "text": "ds"}]}]})",
       "OpenAI response"},
      {R"({"type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
           "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "words"}]})",
       "Anthropic message"},
      {R"([{"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": "words"}]},
           "finishReason": "STOP"}], "modelVersion": "gemini"}])",
       "answer of Gemini"}};
  for (const auto& each : forms) {
    auto reply = read_api_reply(each.json);
    ASSERT_TRUE(reply) << each.form;
    EXPECT_EQ(reply->form, each.form);
    EXPECT_EQ(reply->text, "words") << each.form;
    EXPECT_EQ(reply->error, "");
  }
}

TEST(ApiReply, OtherTextIsLeftAlone) {
  for (const char* text : {"", "words", "{", "{}", "[]", "[1, 2]", R"({"choices": 1})", R"({"content": "x"})",
                           R"({"error": "x"})", "{ int x; }"})
    EXPECT_FALSE(read_api_reply(text)) << text;
}

TEST(ApiReply, StrangeShapesDoNoHarm) {
  for (const char* text : {R"({"choices": []})", R"({"choices": [1]})", R"({"choices": [{"message": 3}]})",
                           R"({"candidates": [{"content": []}]})", R"({"output": [1, {"type": "message"}]})",
                           R"({"role": "assistant", "content": [1]})"}) {
    auto reply = read_api_reply(text);
    ASSERT_TRUE(reply) << text;
    EXPECT_EQ(reply->text, "") << text;
  }
}

TEST(ApiReply, ErrorsAndCutRepliesAreNamed) {
  EXPECT_EQ(read_api_reply(R"({"type": "error", "error": {"message": "overloaded"}})")->error, "overloaded");
  const Extraction refused = extract_code(R"({"error": {"message": "no such model"}})");
  EXPECT_NE(refused.why_not.find("no such model"), std::string::npos);
  auto cut = read_api_reply(R"({"choices": [{"message": {"content": "w"}, "finish_reason": "length"}]})");
  ASSERT_EQ(cut->notes.size(), 1u);
  EXPECT_NE(cut->notes[0].find("cut the reply off"), std::string::npos);
}

TEST(ApiReply, TheKernelIsTakenOutOfTheText) {
  const Extraction out = extract_code(
      R"({"role": "assistant", "content": [{"type": "text",
          "text": "Here:\n```cuda\nextern \"C\" void launch() {}\n```\n"}]})");
  EXPECT_EQ(out.code, "extern \"C\" void launch() {}\n") << out.why_not;
  EXPECT_NE(out.how.find("in an Anthropic message: one fenced block"), std::string::npos) << out.how;
}

}  // namespace
}  // namespace capstone
