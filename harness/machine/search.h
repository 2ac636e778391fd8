#pragma once
// What to ask next. A search is a function of the tree so far and of its settings alone: it keeps nothing, so
// that a run that was killed goes on as if nothing had happened, and the same replies give the same tree.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/machine/node.h"

namespace capstone::machine {

class Search {
 public:
  virtual ~Search() = default;
  /// Nodes to add; empty: the run has ended, or waits for answers or judgements.
  virtual std::vector<Node> next(const Tree& tree) const = 0;
  /// Correct nodes that have to be judged again, with fresh seeds, before one of them may be continued. Asked
  /// when every node is done.
  virtual std::vector<std::string> to_confirm(const Tree&) const { return {}; }
};

/// Independent answers to one prompt: "0001" … @source Brown et al., "Large Language Monkeys", 2024
struct SampleSettings {
  int k = 10;
};
/// Chains of turns that remember: "1-1", "1-2" … for chain and turn.
struct RefineSettings {
  int chains = 1, turns = 8;
};
/// Ideas in English, implementations of each, an archive of what is correct, rounds: on islands that rarely
/// exchange what they found. The ideas of round r on island i are "r-i", their kernels "r-i-IDEA-TRY".
/// @source Ouyang et al., "Surprisingly fast AI-generated kernels we didn't mean to publish (yet)", 2025, for
/// ideas
///   and rounds; Novikov et al., "AlphaEvolve", 2025, for the archive and its islands
struct EvolveSettings {
  int rounds = 5, islands = 2, ideas = 4, each = 2;
  int migrate_every = 2;  ///< rounds
  int confirmations = 2;  ///< kernels of a round and an island that may become parents
  std::uint64_t seed = 1;
};
std::unique_ptr<Search> make_search(const SampleSettings& settings);
std::unique_ptr<Search> make_search(const RefineSettings& settings);
std::unique_ptr<Search> make_search(const EvolveSettings& settings);

/// The settings of a run as JSON, and back. @error a kind or a value that is none; says the range
Json json_of(const SampleSettings& settings);
Json json_of(const RefineSettings& settings);
Json json_of(const EvolveSettings& settings);
Result<std::unique_ptr<Search>> search_from(const std::string& kind, const Json& settings);

/// The numbered (or bulleted) ideas of a reply, without their numbers, at most `most`.
std::vector<std::string> ideas_in(const std::string& reply, int most);
/// How alike two ideas are, in [0, 1]: the share of their longer words that they have in common.
double likeness(const std::string& a, const std::string& b);
inline constexpr double kSameIdea = 0.5;

/// What became of an idea: taken, or merged with an earlier one.
struct IdeaFate {
  int number = 0;  ///< in its reply, counted from 1
  std::string text;
  std::string same_as;  ///< the earlier idea's place, "1-2, idea 3"; empty: it was taken
};
/// The ideas of every node that asked for some, by its name, in the light of all that come before them in the
/// tree.
std::map<std::string, std::vector<IdeaFate>> fates_of(const Tree& tree);

}  // namespace capstone::machine
