#pragma once
// Gate one: run every case in a worker and compare. The same loop serves both backends.
#include <chrono>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/correctness/cases.h"
#include "harness/judge/events.h"
#include "harness/runtime/worker/arena.h"

namespace capstone {

/// A label that says which GPU libraries are among shared objects; empty when none is.
std::string label_of_libraries(const std::set<std::string>& libraries);

struct GateOneSetup {
  const Problem* problem;
  const Oracle* oracle;
  ArenaHost* arena;
  /// How each case is run, once a candidate and each time over another poison: launch orders of the emulator;
  /// a GPU has one that has no name, {"", ""}.
  std::vector<std::string> schedules;
  std::function<StartedRunner()> start_worker;
  std::chrono::milliseconds run_timeout;  ///< of one run
  std::chrono::milliseconds patience;     ///< until a worker that does not answer is given up
  Narration say;
  std::string who;         ///< for narration
  bool ask_ahead = false;  ///< of a kernel that passed: what it will want at the `measure` sizes
  bool trap = false;       ///< emulated: stop at the first operation whose result is infinite or no number
};

/// How long an emulated worker is waited for. It stops by itself what runs for too long, later on a busy
/// machine (emulator/runtime/time_limit.h), and then says where that was.
std::chrono::milliseconds patience_with_emulator(std::chrono::milliseconds run_timeout);

/// Lets a candidate's prepare() fill its region, out of sight of the inputs. `image`: the arena that launch()
/// is about to get; what prepare() made is put into it. `request`: args, schedule and seed of the run. Does
/// nothing where the problem has no `prepare`. The result is passed, or says what prepare() did wrong. @error
/// the machine's fault
Result<tl::expected<CaseResult, WorkerFailure>> run_prepare(const GateOneSetup& setup, Runner& worker,
                                                            const PreparedCase& prepared, Json request,
                                                            std::span<std::byte> image);

/// Said of a candidate whose outputs are right, but not the same bits in every run.
inline constexpr std::string_view kVaries =
    "results differ from run to run (atomics, or a race that does not show)";

/// Runs the cases and fills `into.cases`, `into.gate_one` and, where kVaries is due, `into.labels`. Stops at
/// the first crash or time-out; goes on after a wrong result, because which cases fail is half of the
/// diagnosis.
/// @return what the kernel wants at the `measure` sizes; nothing where `ask_ahead` is false or it did not
/// pass. Asking may fail like a case.
/// @error the machine's fault, or interrupted.
Result<PrivateBytes> gate_one(const GateOneSetup& setup, const std::vector<BoundCase>& cases,
                              Measurement& into);

/// The verdict that a worker's failure means.
GateOne verdict_of(const WorkerFailure& failure);

}  // namespace capstone
