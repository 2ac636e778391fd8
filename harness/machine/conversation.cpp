#include <fmt/format.h>

#include "harness/machine/provider.h"

namespace capstone::machine {

std::string flat_text(const std::vector<Message>& conversation) {
  if (conversation.size() == 1) return conversation.front().text;
  std::string text =
      "This is a conversation about one task, from its beginning. Give the next reply of the assistant.\n";
  for (const Message& message : conversation)
    text += fmt::format("\n=== {} ===\n\n{}\n", message.role == "user" ? "User" : "Assistant", message.text);
  return text;
}

}  // namespace capstone::machine
