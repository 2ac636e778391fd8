#include "harness/machine/prompts.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/project/reply/feedback.h"
#include "harness/project/reply/prompt_template.h"

namespace capstone::machine {
namespace {

// Ideas that did not help, with what came of them: of the nodes before this one, the last ones first.
std::string tried_before(const Tree& tree, const Node& node) {
  constexpr std::size_t kMost = 24, kIdeaBytes = 300;
  std::vector<std::string> lines;
  for (auto other = tree.rbegin(); other != tree.rend() && lines.size() < kMost; ++other) {
    if (other->idea.empty() || other->round >= node.round || other->island != node.island) continue;
    const std::string came = other->correct()
                                 ? (other->fitness ? score_text(*other->fitness) : "correct")
                                 : other->verdict + (other->failure.empty() ? "" : ": ") + other->failure;
    const std::string idea =
        other->idea.size() > kIdeaBytes ? to_utf8(other->idea.substr(0, kIdeaBytes)) + "…" : other->idea;
    lines.push_back(fmt::format("- {} Result: {}.\n", idea, replace_all(came, "\n", " ")));
  }
  return join(lines, "");
}

}  // namespace

std::string score_text(const Fitness& fitness) {
  if (!fitness.measured)
    return fmt::format("modelled: {:.0f} % of the problem's lower bound", fitness.value.point * 100);
  return fmt::format("{} (95 % interval {} to {})", format_speedup(fitness.value.point),
                     format_speedup(fitness.value.low), format_speedup(fitness.value.high));
}

Result<Feedback> Prompts::feedback_on(const Node& node) const {
  Feedback feedback;
  CAPSTONE_TRY(feedback.code, archive_.text(node.source_sha256));
  CAPSTONE_TRY(const std::string measurement, archive_.text(node.measurement_sha256));
  feedback.measurement = Json::parse(measurement).get<Measurement>();
  if (!node.explanation_sha256.empty()) {
    CAPSTONE_TRY(const std::string counts, archive_.text(node.explanation_sha256));
    feedback.counts = Json::parse(counts).get<Explanation>();
  }
  if (!node.profile_sha256.empty()) {
    CAPSTONE_TRY(const std::string profile, archive_.text(node.profile_sha256));
    feedback.profile = describe_profile(Json::parse(profile));
  }
  return feedback;
}

Result<std::string> Prompts::next_turn(const Node& last) const {
  PromptValues values;
  CAPSTONE_TRY(values.values["ANSWER"], how_to_answer(*standard_.resources));
  if (last.source_sha256.empty()) {
    values.sections["NO_CODE"].push_back({{{"WHY", last.failure}}, {}});
  } else {
    CAPSTONE_TRY(const Feedback feedback, feedback_on(last));
    values.sections["JUDGED"].push_back({{{"VERDICT", describe(feedback)}}, {}});
    values.sections[last.correct() ? "CORRECT" : "WRONG"].push_back({});
  }
  return expand_prompt(*standard_.resources, "next_turn.md", values);
}

// The standard prompt; then each reply with what the judge said about it.
Result<std::vector<Message>> Prompts::turns(const Tree& tree, const Node& node) const {
  std::vector<const Node*> before;
  for (const Node* each = find_node(tree, node.parent); each; each = find_node(tree, each->parent))
    before.push_back(each);
  std::reverse(before.begin(), before.end());
  CAPSTONE_TRY(const std::string first, render_prompt(standard_));
  std::vector<Message> conversation{{"user", first}};
  for (const Node* each : before) {
    CAPSTONE_TRY(std::string reply, archive_.text(each->reply_sha256));
    CAPSTONE_TRY(std::string said, next_turn(*each));
    conversation.push_back({"assistant", std::move(reply)});
    conversation.push_back({"user", std::move(said)});
  }
  return conversation;
}

// The prompt for ideas, or for a kernel that implements one.
Result<std::string> Prompts::one_prompt(const Tree& tree, const Node& node) const {
  const bool for_ideas = node.kind == NodeKind::kIdeas;
  PromptInput task = standard_;
  task.how_to_answer = false;
  PromptValues values;
  CAPSTONE_TRY(values.values["TASK"], render_prompt(task));
  const Node* ideas = for_ideas ? &node : find_node(tree, node.parent);
  if (const Node* parent = ideas ? find_node(tree, ideas->parent) : nullptr) {
    CAPSTONE_TRY(const Feedback feedback, feedback_on(*parent));
    values.sections["PARENT"].push_back(
        {{{"CODE", fenced("cuda", feedback.code)}, {"VERDICT", describe(feedback)}}, {}});
  }
  PromptValues others;
  for (const std::string& name : node.inspirations) {
    const Node* other = find_node(tree, name);
    if (!other) continue;
    CAPSTONE_TRY(const std::string code, archive_.text(other->source_sha256));
    others.sections["INSPIRATION"].push_back(
        {{{"NAME", other->name},
          {"IDEA", other->idea.empty() ? "no idea recorded" : other->idea},
          {"SCORE", other->fitness ? score_text(*other->fitness) : "correct"},
          {"CODE", fenced("cuda", code)}},
         {}});
  }
  if (!others.sections.empty()) values.sections["INSPIRATIONS"].push_back(others);
  if (!for_ideas) {
    values.values["IDEA"] = node.idea;
    CAPSTONE_TRY(values.values["ANSWER"], how_to_answer(*standard_.resources));
    return expand_prompt(*standard_.resources, "implement.md", values);
  }
  values.values["COUNT"] = std::to_string(ideas_);
  if (const std::string tried = tried_before(tree, node); !tried.empty())
    values.sections["TRIED"].push_back({{{"LIST", tried}}, {}});
  return expand_prompt(*standard_.resources, "ideas.md", values);
}

Result<std::vector<Message>> Prompts::conversation(const Tree& tree, const Node& node) const {
  if (node.kind == NodeKind::kKernel && node.idea.empty()) return turns(tree, node);
  CAPSTONE_TRY(std::string prompt, one_prompt(tree, node));
  return std::vector<Message>{{"user", std::move(prompt)}};
}

}  // namespace capstone::machine
