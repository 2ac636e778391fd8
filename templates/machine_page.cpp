#include "templates/machine_page.h"

#include <ctemplate/template_dictionary.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/machine/prompts.h"
#include "harness/machine/search.h"
#include "harness/machine/summary.h"
#include "harness/project/archive/gzip.h"
#include "harness/project/reply/difference.h"
#include "harness/project/reply/feedback.h"
#include "templates/encode.h"
#include "templates/page.h"

namespace capstone {
namespace {

using ctemplate::TemplateDictionary;
using machine::Node;
using machine::NodeKind;
using machine::NodeState;

constexpr std::size_t kMostText = 200'000;  // [B] of one text on the page

// The texts of a page, each once: nodes name them by their place.
class Texts {
 public:
  explicit Texts(const MachinePage& page) : page_(page) {}

  int place_of(const std::string& text) {
    if (text.empty()) return -1;
    const auto [at, added] = places_.emplace(text, static_cast<int>(texts_.size()));
    if (added)
      texts_.push_back(text.size() > kMostText ? to_utf8(text.substr(0, kMostText)) + "\n…" : to_utf8(text));
    return at->second;
  }
  Result<std::string> read(const std::string& sha256) const {
    if (sha256.empty()) return std::string();
    return page_.archive->text(sha256);
  }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  const MachinePage& page_;
  std::map<std::string, int> places_;
  std::vector<std::string> texts_;
};

// Of a conversation the last message; the standard task, which is the same everywhere, becomes one line.
std::string new_in(const std::string& prompt, const std::string& standard) {
  constexpr std::string_view kUser = "\n----- user -----\n\n";
  const std::size_t last = prompt.rfind(kUser);
  std::string text = last == std::string::npos
                         ? prompt
                         : "[the conversation so far]\n\n" + prompt.substr(last + kUser.size());
  const std::string task = standard.substr(0, standard.find("## How to answer"));
  return text == standard || task.empty()
             ? text
             : replace_all(text, task, "[the standard prompt, without how to answer]\n\n");
}

// The kernel that a node continues: its parent, or, below ideas, theirs.
const Node* kernel_before(const machine::Tree& tree, const Node& node) {
  const Node* parent = machine::find_node(tree, node.parent);
  return parent && parent->kind == NodeKind::kIdeas ? machine::find_node(tree, parent->parent) : parent;
}

Result<Json> details_of(const MachinePage& page, const Node& node, const std::string& standard,
                        Texts& texts) {
  CAPSTONE_TRY(const std::string prompt, texts.read(node.prompt_sha256));
  CAPSTONE_TRY(const std::string reply, texts.read(node.reply_sha256));
  CAPSTONE_TRY(const std::string code, texts.read(node.source_sha256));
  CAPSTONE_TRY(const std::string measurement, texts.read(node.measurement_sha256));
  Json json{{"prompt", texts.place_of(new_in(prompt, standard))},
            {"reply", texts.place_of(reply)},
            {"code", texts.place_of(code)}};
  if (!measurement.empty())
    json["judge"] = texts.place_of(describe_verdict(Json::parse(measurement).get<Measurement>()));
  const Node* before = kernel_before(*page.tree, node);
  if (!before || before->source_sha256.empty() || code.empty()) return json;
  CAPSTONE_TRY(const std::string old, texts.read(before->source_sha256));
  json["diff"] = texts.place_of(unified_diff(old, code, {before->name, node.name}));
  return json;
}

std::string verdict_of(const Node& node) {
  if (node.kind == NodeKind::kIdeas)
    return node.state == NodeState::kDone ? fmt::format("{} ideas", node.ideas.size()) : "asked for ideas";
  if (node.state != NodeState::kDone) return node.state == NodeState::kPlanned ? "asked" : "answered";
  return node.gate_two.empty() ? node.verdict : node.verdict + " · " + node.gate_two;
}

std::string tone_of(const Node& node) {
  if (node.kind == NodeKind::kIdeas) return "ideas";
  if (node.state != NodeState::kDone) return "muted";
  if (!node.correct()) return "bad";
  return node.doubtful() ? "doubt" : node.faster() || node.proven() ? "good" : "plain";
}

void fill_row(TemplateDictionary& row, const Node& node, std::size_t place,
              const std::vector<machine::IdeaFate>& fates) {
  row.SetIntValue("PLACE", static_cast<long>(place));
  row.SetValue("NAME", node.name);
  row.SetValue("VERDICT", verdict_of(node));
  row.SetValue("TONE", tone_of(node));
  if (node.fitness) row.SetValueAndShowSection("TEXT", machine::score_text(*node.fitness), "SCORE");
  if (node.confirmed)
    row.SetValueAndShowSection("TEXT", *node.confirmed ? "confirmed" : "not confirmed", "CONFIRMED");
  if (!node.failure.empty()) row.SetValueAndShowSection("TEXT", to_utf8(node.failure), "FAILURE");
  if (!node.idea.empty()) row.SetValueAndShowSection("TEXT", to_utf8(node.idea), "IDEA");
  for (const std::string& label : node.labels)
    row.AddSectionDictionary("LABEL")->SetValue("TEXT", to_utf8(label));
  for (const machine::IdeaFate& fate : fates) {
    TemplateDictionary* idea = row.AddSectionDictionary("FATE");
    idea->SetValue("TEXT", to_utf8(fate.text));
    if (!fate.same_as.empty()) idea->SetValueAndShowSection("PLACE", fate.same_as, "MERGED");
  }
  if (node.correct()) row.SetValueAndShowSection("TEXT", node.behaviour.cell(), "CELL");
}

// Rows of one level of the tree: template sections cannot nest themselves, so each row says how deep it is.
void add_rows(TemplateDictionary& dict, const MachinePage& page) {
  auto fates = machine::fates_of(*page.tree);
  std::map<std::string, std::vector<std::size_t>> below;
  for (std::size_t i = 0; i < page.tree->size(); ++i) {
    const Node& node = (*page.tree)[i];
    below[machine::find_node(*page.tree, node.parent) ? node.parent : std::string()].push_back(i);
  }
  const auto add = [&](const auto& self, const std::string& parent, int depth) -> void {
    for (const std::size_t i : below[parent]) {
      TemplateDictionary* row = dict.AddSectionDictionary("NODE");
      row->SetIntValue("DEPTH", depth);
      fill_row(*row, (*page.tree)[i], i, fates[(*page.tree)[i].name]);
      self(self, (*page.tree)[i].name, depth + 1);
    }
  };
  add(add, "", 0);
}

std::string share_text(double share) { return fmt::format("{:.1f} %", share * 100); }

void add_card(TemplateDictionary& dict, const char* who, const std::string& big, const std::string& small) {
  TemplateDictionary* card = dict.AddSectionDictionary("CARD");
  card->SetValue("WHO", who);
  card->SetValue("BIG", big);
  card->SetValue("SMALL", small);
}

void fill_summary(TemplateDictionary& dict, const MachinePage& page) {
  const machine::Summary s = machine::summarise(*page.tree, *page.run);
  add_card(dict, "Judged", std::to_string(s.judged),
           fmt::format("of {} kernels that were asked for", s.kernels));
  add_card(dict, "Correct", s.judged ? fmt::format("{:.0f} %", 100.0 * s.correct / s.judged) : "–",
           fmt::format("{} kernels passed gate one", s.correct));
  if (s.timed)
    add_card(dict, "Faster", fmt::format("{:.0f} %", 100.0 * s.faster / s.judged),
             fmt::format("{} kernels passed gate two", s.faster));
  if (const Node* best = machine::find_node(*page.tree, s.best))
    add_card(dict, "Best", best->name, best->fitness ? machine::score_text(*best->fitness) : "correct");
  std::string cost = fmt::format("{:.1f} minutes", s.spent.minutes);
  if (s.spent.tokens) cost += fmt::format(" · {} tokens", s.spent.tokens);
  if (s.spent.money > 0) cost += fmt::format(" · {:.4g} of money", s.spent.money);
  dict.SetValue("COST", cost);
  if (!s.timed) dict.ShowSection("MODELLED");
  if (s.timed) dict.ShowSection("TIMED");
  for (const machine::KLine& line : s.table) {
    TemplateDictionary* row = dict.AddSectionDictionary("K");
    row->SetIntValue("K", line.k);
    row->SetValue("CORRECT", share_text(line.correct));
    row->SetValue("BOARD", share_text(line.board));
    if (s.timed) row->SetValueAndShowSection("FASTER", share_text(line.faster), "TIMED");
  }
  if (!s.failures.empty()) dict.ShowSection("FAILED");
  for (const machine::FailureClass& f : s.failures) {
    TemplateDictionary* row = dict.AddSectionDictionary("CLASS");
    row->SetValue("VERDICT", f.verdict);
    row->SetIntValue("COUNT", f.count);
    row->SetValue("FIRST", f.first);
    row->SetValue("LINE", to_utf8(f.line));
  }
}

}  // namespace

Result<std::string> machine_page(const MachinePage& page, const std::filesystem::path& templates) {
  const PageTemplates pages(templates / "html");
  TemplateDictionary dict("machine");
  CAPSTONE_TRY(const std::string css, pages.style());
  CAPSTONE_TRY(const std::string script, read_file(templates / "html" / "machine.js", std::size_t{1} << 20));
  dict.SetValue("CSS", css);
  dict.SetValue("SCRIPT", script);
  dict.SetValue("SCRIPT_HASH", base64(sha256(script)));
  dict.SetValue("TITLE", to_utf8(page.title));
  dict.SetValue("RUN", page.run->name);
  dict.SetValue("PROVIDER", to_utf8(page.run->provider));
  dict.SetValue("STARTED", page.run->started);
  dict.SetValue("TOOL", page.tool);
  if (page.run->with_statement) dict.ShowSection("WITH_STATEMENT");
  fill_summary(dict, page);
  add_rows(dict, page);

  Texts texts(page);
  CAPSTONE_TRY(const std::string standard, texts.read(page.run->prompt_sha256));
  Json nodes = Json::array();
  for (const Node& node : *page.tree) {
    CAPSTONE_TRY(Json details, details_of(page, node, standard, texts));
    nodes.push_back(std::move(details));
  }
  CAPSTONE_TRY(const std::string packed, gzip(Json{{"nodes", nodes}, {"texts", texts.all()}}.dump()));
  dict.SetValue("DATA", base64(packed));
  return pages.expand("machine.tpl", dict);
}

}  // namespace capstone
