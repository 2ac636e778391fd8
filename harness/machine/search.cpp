#include "harness/machine/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/model/fields.h"

namespace capstone::machine {
namespace {

bool all_done(const Tree& tree) {
  return std::all_of(tree.begin(), tree.end(), [](const Node& n) { return n.state == NodeState::kDone; });
}

Node kernel_node(std::string name, std::string parent, int round, int island) {
  Node node;
  node.name = std::move(name);
  node.parent = std::move(parent);
  node.round = round;
  node.island = island;
  return node;
}

class Sample : public Search {
 public:
  explicit Sample(const SampleSettings& settings) : settings_(settings) {}
  std::vector<Node> next(const Tree& tree) const override {
    std::vector<Node> nodes;
    for (int i = static_cast<int>(tree.size()) + 1; i <= settings_.k; ++i)
      nodes.push_back(kernel_node(fmt::format("{:04}", i), {}, 0, 0));
    return nodes;
  }

 private:
  SampleSettings settings_;
};

class Refine : public Search {
 public:
  explicit Refine(const RefineSettings& settings) : settings_(settings) {}
  std::vector<Node> next(const Tree& tree) const override {
    std::vector<Node> nodes;
    for (int chain = 1; chain <= settings_.chains; ++chain) {
      const Node* last = nullptr;
      for (const Node& node : tree)
        if (node.island == chain && (!last || node.round > last->round)) last = &node;
      if (last && (last->state != NodeState::kDone || last->round >= settings_.turns)) continue;
      const int turn = last ? last->round + 1 : 1;
      nodes.push_back(kernel_node(fmt::format("{}-{}", chain, turn), last ? last->name : "", turn, chain));
    }
    return nodes;
  }

 private:
  RefineSettings settings_;
};

// A number in [0, bound) that follows from the seed and a place in the run alone.
std::size_t draw(std::uint64_t seed, std::initializer_list<int> place, std::size_t bound) {
  std::uint64_t x = seed;
  for (const int part : place) {  // SplitMix64
    x += 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(part);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
  }
  return static_cast<std::size_t>(x % bound);
}

bool is_fitter(const Node* a, const Node* b) {
  const double left = a->fitness ? a->fitness->low() : 0, right = b->fitness ? b->fitness->low() : 0;
  return left != right ? left > right : a->name < b->name;
}

class Evolve : public Search {
 public:
  explicit Evolve(const EvolveSettings& settings) : settings_(settings) {}

  std::vector<Node> next(const Tree& tree) const override {
    if (!all_done(tree)) return {};
    const int round = round_of(tree);
    if (round == 0) return ideas_of_round(tree, 1);
    const bool has_kernels = std::any_of(tree.begin(), tree.end(), [&](const Node& n) {
      return n.kind == NodeKind::kKernel && n.round == round;
    });
    if (!has_kernels)
      if (std::vector<Node> kernels = kernels_of_round(tree, round); !kernels.empty()) return kernels;
    return round < settings_.rounds && to_confirm(tree).empty() ? ideas_of_round(tree, round + 1)
                                                                : std::vector<Node>();
  }

  // The fittest of the round until enough are proven, or none is left.
  std::vector<std::string> to_confirm(const Tree& tree) const override {
    std::vector<std::string> names;
    const int round = round_of(tree);
    for (int island = 1; island <= settings_.islands; ++island) {
      std::vector<const Node*> open;
      int proven = 0;
      for (const Node& node : tree) {
        if (node.round != round || node.island != island || !node.correct()) continue;
        proven += node.proven();
        if (!node.confirmed && !node.doubtful() && !same_code_before(tree, node)) open.push_back(&node);
      }
      std::sort(open.begin(), open.end(), is_fitter);
      for (const Node* node : open)
        if (proven++ < settings_.confirmations) names.push_back(node->name);
    }
    return names;
  }

 private:
  static int round_of(const Tree& tree) {
    int round = 0;
    for (const Node& node : tree) round = std::max(round, node.round);
    return round;
  }

  // The proven kernels of an island before a round, and the best that its neighbour had at each migration.
  std::vector<const Node*> population(const Tree& tree, int island, int round) const {
    std::vector<const Node*> members;
    for (const Node& node : tree)
      if (node.proven() && node.island == island && node.round < round) members.push_back(&node);
    if (settings_.islands == 1) return members;
    const int neighbour = island == 1 ? settings_.islands : island - 1;
    for (int at = settings_.migrate_every; at < round; at += settings_.migrate_every) {
      const Node* best = nullptr;
      for (const Node& node : tree)
        if (node.proven() && node.island == neighbour && node.round <= at &&
            (!best || is_fitter(&node, best)))
          best = &node;
      if (best && std::find(members.begin(), members.end(), best) == members.end()) members.push_back(best);
    }
    return members;
  }

  // A tournament of three by fitness; a kernel of a rare cell has an advantage of up to a tenth.
  const Node* parent_of(const Tree& tree, int island, int round) const {
    constexpr int kTournament = 3;
    constexpr double kNovelty = 0.1;
    const std::vector<const Node*> members = population(tree, island, round);
    if (members.empty()) return nullptr;
    std::map<std::string, int> alike;
    for (const Node* node : members) ++alike[node->behaviour.cell()];
    const auto merit = [&](const Node* node) {
      return (node->fitness ? node->fitness->low() : 0) * (1 + kNovelty / alike[node->behaviour.cell()]);
    };
    const Node* best = nullptr;
    for (int i = 0; i < kTournament; ++i) {
      const Node* drawn = members[draw(settings_.seed, {round, island, i}, members.size())];
      if (!best || merit(drawn) > merit(best)) best = drawn;
    }
    return best;
  }

  // The fittest kernels of other cells, from all islands.
  static std::vector<std::string> inspirations_for(const Tree& tree, const Node* parent, int round) {
    constexpr std::size_t kMost = 2;
    std::vector<const Node*> proven;
    for (const Node& node : tree)
      if (node.proven() && node.round < round) proven.push_back(&node);
    std::sort(proven.begin(), proven.end(), is_fitter);
    std::set<std::string> cells;
    if (parent) cells.insert(parent->behaviour.cell());
    std::vector<std::string> names;
    for (const Node* node : proven)
      if (names.size() < kMost && cells.insert(node->behaviour.cell()).second) names.push_back(node->name);
    return names;
  }

  std::vector<Node> ideas_of_round(const Tree& tree, int round) const {
    std::vector<Node> nodes;
    for (int island = 1; island <= settings_.islands; ++island) {
      const Node* parent = parent_of(tree, island, round);
      Node node = kernel_node(fmt::format("{}-{}", round, island), parent ? parent->name : "", round, island);
      node.kind = NodeKind::kIdeas;
      node.inspirations = inspirations_for(tree, parent, round);
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  std::vector<Node> kernels_of_round(const Tree& tree, int round) const {
    std::vector<Node> nodes;
    const auto fates = fates_of(tree);
    for (const Node& ideas : tree) {
      if (ideas.kind != NodeKind::kIdeas || ideas.round != round) continue;
      for (const IdeaFate& fate : fates.at(ideas.name)) {
        if (!fate.same_as.empty()) continue;
        for (int i = 1; i <= settings_.each; ++i) {
          nodes.push_back(kernel_node(fmt::format("{}-{}-{}", ideas.name, fate.number, i), ideas.name, round,
                                      ideas.island));
          nodes.back().idea = fate.text;
          nodes.back().inspirations = ideas.inspirations;
        }
      }
    }
    return nodes;
  }

  EvolveSettings settings_;
};

Result<void> take(const Json& json, const char* key, int& into, int low, int high) {
  try {
    read(json, key, into);
  } catch (const WrongType& wrong) {
    return fail(wrong.what());
  }
  if (into < low || into > high)
    return fail(fmt::format("`{}` is {}; it lies between {} and {}", key, into, low, high));
  return {};
}

}  // namespace

std::unique_ptr<Search> make_search(const SampleSettings& s) { return std::make_unique<Sample>(s); }
std::unique_ptr<Search> make_search(const RefineSettings& s) { return std::make_unique<Refine>(s); }
std::unique_ptr<Search> make_search(const EvolveSettings& s) { return std::make_unique<Evolve>(s); }

Json json_of(const SampleSettings& s) { return Json{{"k", s.k}}; }
Json json_of(const RefineSettings& s) { return Json{{"chains", s.chains}, {"turns", s.turns}}; }
Json json_of(const EvolveSettings& s) {
  return Json{{"rounds", s.rounds},
              {"islands", s.islands},
              {"ideas", s.ideas},
              {"each", s.each},
              {"seed", s.seed},
              {"migrate_every", s.migrate_every},
              {"confirmations", s.confirmations}};
}

Result<std::unique_ptr<Search>> search_from(const std::string& kind, const Json& json) {
  constexpr int kMany = 100'000, kFew = 100;
  if (kind == "sample") {
    SampleSettings s;
    CAPSTONE_CHECK(take(json, "k", s.k, 1, kMany));
    return make_search(s);
  }
  if (kind == "refine") {
    RefineSettings s;
    CAPSTONE_CHECK(take(json, "chains", s.chains, 1, kMany));
    CAPSTONE_CHECK(take(json, "turns", s.turns, 1, kMany));
    return make_search(s);
  }
  if (kind != "evolve") return fail(fmt::format("there is no search `{}`", kind));
  EvolveSettings s;
  CAPSTONE_CHECK(take(json, "rounds", s.rounds, 1, kMany));
  CAPSTONE_CHECK(take(json, "islands", s.islands, 1, kFew));
  CAPSTONE_CHECK(take(json, "ideas", s.ideas, 1, kFew));
  CAPSTONE_CHECK(take(json, "each", s.each, 1, kFew));
  CAPSTONE_CHECK(take(json, "migrate_every", s.migrate_every, 1, kMany));
  CAPSTONE_CHECK(take(json, "confirmations", s.confirmations, 1, kFew));
  try {
    read(json, "seed", s.seed);
  } catch (const WrongType& wrong) {
    return fail(wrong.what());
  }
  return make_search(s);
}

}  // namespace capstone::machine
