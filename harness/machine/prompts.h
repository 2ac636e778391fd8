#pragma once
// What the model is asked at a node: the standard prompt, the conversation so far, or the prompts of an
// evolution.
#include <string>
#include <vector>

#include "harness/machine/archive.h"
#include "harness/machine/node.h"
#include "harness/machine/provider.h"
#include "harness/project/reply/prompt.h"

namespace capstone::machine {

class Prompts {
 public:
  /// @param standard  without feedback. What it points to, and the archive, must outlive this object
  /// @param ideas     that are asked for at a time
  Prompts(PromptInput standard, const Archive& archive, int ideas)
      : standard_(std::move(standard)), archive_(archive), ideas_(ideas) {}

  /// @error a template is missing; a text of the archive was changed
  Result<std::vector<Message>> conversation(const Tree& tree, const Node& node) const;

 private:
  Result<Feedback> feedback_on(const Node& node) const;
  Result<std::string> next_turn(const Node& last) const;
  Result<std::vector<Message>> turns(const Tree& tree, const Node& node) const;
  Result<std::string> one_prompt(const Tree& tree, const Node& node) const;

  PromptInput standard_;
  const Archive& archive_;
  int ideas_;
};

/// "1.25x (95 % interval 1.2 to 1.3)", or, without a GPU, "modelled: 82 % of the problem's lower bound".
std::string score_text(const Fitness& fitness);

}  // namespace capstone::machine
