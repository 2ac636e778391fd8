#pragma once
// Asks, judges and records until a search has ended or a budget is spent.
#include <functional>
#include <string>

#include "harness/machine/archive.h"
#include "harness/machine/prompts.h"
#include "harness/machine/provider.h"
#include "harness/machine/search.h"

namespace capstone::machine {

/// What is learnt about a kernel.
struct Judged {
  Measurement measurement;
  std::optional<Explanation> counts;  ///< of a correct one
  Json profile = nullptr;             ///< of a correct one, on a GPU; null: none
};

/// The speedup that gate two measured, else what the counts let expect; nothing: it is not correct, or
/// neither is known.
std::optional<Fitness> fitness_of(const Judged& judged);

/// What went wrong, in one line.
std::string failure_line(const Measurement& measurement);

/// Judges one kernel with seeds that are drawn anew. Called by several threads at once.
/// @param again  it is a confirmation
/// @error the machine's fault; a kernel's own failure is in its measurement
using Judging =
    std::function<Result<Judged>(const Node& node, const std::filesystem::path& source, bool again)>;

struct RunParts {
  const Archive* archive = nullptr;
  const Search* search = nullptr;
  const Prompts* prompts = nullptr;
  Provider* provider = nullptr;
  Judging judge;
  Budget budget;
  int ideas = 0;   ///< that are taken from one reply
  int askers = 4;  ///< questions at a time
  int judges = 1;  ///< judgements at a time
  /// After every change; from the thread that called run(). May be empty.
  std::function<void(const Tree& tree, const Node& changed)> changed;
};

/// Continues a run from whatever is in the archive.
/// @return why it ended: "the search is complete", or the budget that is spent
/// @error no answer or no judgement is to be had; Ctrl-C. Everything until then is in the archive, and the
/// same
///   call goes on.
Result<std::string> run(const RunInfo& info, const RunParts& parts);

}  // namespace capstone::machine
