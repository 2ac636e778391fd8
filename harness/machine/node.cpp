#include "harness/machine/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/digest.h"
#include "harness/emulator/rewriter/cxx_tokens.h"
#include "harness/model/fields.h"
#include "harness/model/labels.h"

namespace capstone::machine {
namespace {

constexpr std::string_view kPlannedText = "planned", kAnsweredText = "answered", kDoneText = "done";

std::string_view text_of(NodeState state) {
  switch (state) {
    case NodeState::kPlanned:
      return kPlannedText;
    case NodeState::kAnswered:
      return kAnsweredText;
    default:
      return kDoneText;
  }
}

NodeState state_of(std::string_view text) {
  if (text == kDoneText) return NodeState::kDone;
  return text == kAnsweredText ? NodeState::kAnswered : NodeState::kPlanned;
}

Json json_of(const Behaviour& b) {
  return Json{{"bound_by", b.bound_by},    {"launches", b.launches},         {"traffic", b.traffic},
              {"threads", b.threads},      {"shared_bytes", b.shared_bytes}, {"movement", b.movement},
              {"arithmetic", b.arithmetic}};
}

Behaviour behaviour_from(const Json& json) {
  Behaviour b;
  read(json, "bound_by", b.bound_by);
  read(json, "launches", b.launches);
  read(json, "traffic", b.traffic);
  read(json, "threads", b.threads);
  read(json, "shared_bytes", b.shared_bytes);
  read(json, "movement", b.movement);
  read(json, "arithmetic", b.arithmetic);
  return b;
}

// Whether an identifier of the source, or an instruction in one of its strings, contains one of the words.
bool mentions(const std::vector<CxxToken>& tokens, std::initializer_list<std::string_view> words) {
  return std::any_of(tokens.begin(), tokens.end(), [&](const CxxToken& token) {
    if (token.kind != CxxTokenKind::kIdentifier && token.kind != CxxTokenKind::kString) return false;
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return token.text.find(word) != std::string_view::npos;
    });
  });
}

// Coarse on purpose: kernels that move nearly the same bytes are alike.
std::string_view traffic_class(double traffic) {
  if (traffic <= 0) return "traffic unknown";
  if (traffic <= 1.25) return "moves what it has to";
  return traffic <= 2.5 ? "moves up to 2.5x" : "moves more than 2.5x";
}

}  // namespace

std::string Behaviour::cell() const {
  return fmt::format("{} · {} · {} · {} · {}", movement, arithmetic,
                     launches <= 0   ? "launches unknown"
                     : launches == 1 ? "1 launch"
                     : launches == 2 ? "2 launches"
                                     : "3 launches or more",
                     bound_by.empty() ? "bound unknown" : bound_by, traffic_class(traffic));
}

bool Node::doubtful() const {
  return std::any_of(labels.begin(), labels.end(), [](const std::string& label) {
    return label.starts_with(kNeedsExplanation) || label.starts_with("source:");
  });
}

void to_json(Json& json, const Node& n) {
  json = Json{{"name", n.name},
              {"kind", n.kind == NodeKind::kIdeas ? "ideas" : "kernel"},
              {"parent", n.parent},
              {"round", n.round},
              {"island", n.island},
              {"idea", n.idea},
              {"inspirations", n.inspirations},
              {"state", text_of(n.state)},
              {"prompt_sha256", n.prompt_sha256},
              {"reply_sha256", n.reply_sha256},
              {"model", n.model},
              {"tokens_in", n.tokens_in},
              {"tokens_out", n.tokens_out},
              {"cost", n.cost},
              {"seconds", n.seconds},
              {"judge_seconds", n.judge_seconds},
              {"requests", n.requests},
              {"notes", n.notes},
              {"ideas", n.ideas},
              {"source_sha256", n.source_sha256},
              {"verdict", n.verdict},
              {"gate_two", n.gate_two},
              {"failure", n.failure},
              {"python", n.python},
              {"labels", n.labels},
              {"tokens_sha256", n.tokens_sha256},
              {"behaviour", json_of(n.behaviour)},
              {"measurement_sha256", n.measurement_sha256},
              {"explanation_sha256", n.explanation_sha256},
              {"profile_sha256", n.profile_sha256}};
  if (n.fitness)
    json["fitness"] = Json{{"point", n.fitness->value.point},
                           {"low", n.fitness->value.low},
                           {"high", n.fitness->value.high},
                           {"measured", n.fitness->measured}};
  if (n.confirmed) json["confirmed"] = *n.confirmed;
}

void from_json(const Json& json, Node& n) {
  std::string kind, state;
  read(json, "name", n.name);
  read(json, "kind", kind);
  n.kind = kind == "ideas" ? NodeKind::kIdeas : NodeKind::kKernel;
  read(json, "parent", n.parent);
  read(json, "round", n.round);
  read(json, "island", n.island);
  read(json, "idea", n.idea);
  read(json, "inspirations", n.inspirations);
  read(json, "state", state);
  n.state = state_of(state);
  read(json, "prompt_sha256", n.prompt_sha256);
  read(json, "reply_sha256", n.reply_sha256);
  read(json, "model", n.model);
  read(json, "tokens_in", n.tokens_in);
  read(json, "tokens_out", n.tokens_out);
  read(json, "cost", n.cost);
  read(json, "seconds", n.seconds);
  read(json, "judge_seconds", n.judge_seconds);
  read(json, "requests", n.requests);
  read(json, "notes", n.notes);
  read(json, "ideas", n.ideas);
  read(json, "source_sha256", n.source_sha256);
  read(json, "verdict", n.verdict);
  read(json, "gate_two", n.gate_two);
  read(json, "failure", n.failure);
  read(json, "python", n.python);
  read(json, "labels", n.labels);
  read(json, "tokens_sha256", n.tokens_sha256);
  if (const Json* behaviour = field(json, "behaviour")) n.behaviour = behaviour_from(*behaviour);
  read(json, "measurement_sha256", n.measurement_sha256);
  read(json, "explanation_sha256", n.explanation_sha256);
  read(json, "profile_sha256", n.profile_sha256);
  if (const Json* fitness = field(json, "fitness")) {
    Fitness& f = n.fitness.emplace();
    read(*fitness, "point", f.value.point);
    read(*fitness, "low", f.value.low);
    read(*fitness, "high", f.value.high);
    read(*fitness, "measured", f.measured);
  }
  if (field(json, "confirmed")) read(json, "confirmed", n.confirmed.emplace());
}

const Node* find_node(const Tree& tree, const std::string& name) {
  const auto found = std::find_if(tree.begin(), tree.end(), [&](const Node& n) { return n.name == name; });
  return found == tree.end() ? nullptr : &*found;
}

const Node* same_code_before(const Tree& tree, const Node& node) {
  if (node.tokens_sha256.empty()) return nullptr;
  const auto found = std::find_if(tree.begin(), tree.end(),
                                  [&](const Node& n) { return n.tokens_sha256 == node.tokens_sha256; });
  return found == tree.end() || found->name == node.name ? nullptr : &*found;
}

std::optional<double> modelled_share(const Explanation& e) {
  if (!e.floor || e.floor->memory_ms <= 0) return std::nullopt;
  const double traffic = e.compulsory_bytes > 0 ? std::max(1.0, e.moved_bytes() / e.compulsory_bytes) : 1;
  const double modelled =
      std::max({e.floor->memory_ms * traffic, e.floor->wavefront_ms, e.floor->compute_ms});
  return std::min(1.0, std::max(e.floor->memory_ms, e.floor->work_ms) / modelled);
}

Behaviour behaviour_of(const std::string& source, const Explanation* e) {
  Behaviour b;
  const std::vector<CxxToken> tokens = cxx_tokens(source);
  b.movement = mentions(tokens, {"cp.async.bulk", "cp_async_bulk", "memcpy_async_tx"})       ? "bulk"
               : mentions(tokens, {"cp.async", "cp_async", "memcpy_async", "cuda_pipeline"}) ? "cp.async"
                                                                                             : "plain";
  b.arithmetic = mentions(tokens, {"wgmma"})                          ? "wgmma"
                 : mentions(tokens, {"mma.sync", "wmma", "mma_sync"}) ? "mma"
                                                                      : "scalar";
  if (!e) return b;
  std::uint64_t most = 0;
  for (const KernelCounts& kernel : e->kernels) {
    b.launches += static_cast<int>(kernel.launches);
    if (kernel.launches == 0 || kernel.threads < most) continue;
    most = kernel.threads;
    b.threads = kernel.blocks ? static_cast<int>(kernel.threads / kernel.blocks) : 0;
    b.shared_bytes = static_cast<std::int64_t>(kernel.dynamic_shared);
  }
  if (e->compulsory_bytes > 0) b.traffic = e->moved_bytes() / e->compulsory_bytes;
  if (e->floor) b.bound_by = e->floor->bound_by;
  return b;
}

std::string token_digest(const std::string& source) {
  std::string text;
  for (const CxxToken& token : cxx_tokens(source)) {
    if (token.kind == CxxTokenKind::kComment) continue;
    text += token.text;
    text += '\n';
  }
  return sha256_hex(text);
}

}  // namespace capstone::machine
