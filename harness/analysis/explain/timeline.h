#pragma once
// When the copy engine and the tensor cores of one block are busy: who waits for whom is recorded by the
// emulator, how long a copy and a product take is given.
#include "harness/analysis/explain/explain.h"

namespace capstone {

/// One use of an engine.
struct EngineUse {
  int number = 0;  ///< of the tile that it copies or multiplies, from 1 on
  double begin = 0, end = 0;
};

struct Timeline {
  std::vector<EngineUse> copies, products;
  double end() const;       ///< of the last use
  int overlapping() const;  ///< products that run while a tile is copied
};

/// [any unit] what one tile takes.
struct EngineTimes {
  double copy = 1, product = 1;
};

/// Runs a program of build_observed() once and returns the report of the run
/// (harness/runtime/worker/protocol.md).
/// @param waits  also who waits for whom. @error as for explain().
Result<Json> observe_run(const std::filesystem::path& program, const ExplainRequest& request,
                         const Sandbox& sandbox, bool waits);

/// Plays the recorded waits of a run: a copy begins when its thread asks and the engine is free, and all that
/// reports to one phase of a barrier is one copy; a group of products begins when the first warp of its group
/// commits it. All else takes no time.
/// @error a report without waits
Result<Timeline> replay_waits(const Json& report, const EngineTimes& times);

/// Runs the source once on the emulator and replays its waits. @error as for explain()
Result<Timeline> timeline(const ExplainRequest& request, const EngineTimes& times, const Resources& resources,
                          const Narration& say);

}  // namespace capstone
