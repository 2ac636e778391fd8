#pragma once
// What the judge is doing, step by step, for progress displays and logs.
#include <functional>
#include <string>

namespace capstone {

enum class Stage {
  kNote,     ///< `detail` is the whole line
  kWait,     ///< for `detail`
  kBuild,    ///< of `detail`: kernels, baselines, capstone's own programs
  kLoad,     ///< a candidate in Python, or PyTorch itself (`candidate` is empty)
  kGateOne,  ///< case `number` of `total`; `detail`: its sizes and inputs
  kEmulatedTimes,
  kBuildInstrumented,
  kGateTwo,  ///< restart `number` of at least `total`; `seconds` of about `expected_seconds`
  kSustained,
  kExtraChecks,
};

struct StageEvent {
  Stage stage = Stage::kNote;
  std::string candidate;  ///< whom it is about; empty: all of them
  std::string detail;
  int number = 0, total = 0;
  double seconds = 0, expected_seconds = 0;
  std::string build;  ///< kGateOne of an instrumented build: "asan build: accesses out of bounds"

  StageEvent() = default;
  StageEvent(Stage of, std::string about, std::string what = {})
      : stage(of), candidate(std::move(about)), detail(std::move(what)) {}
  /// A note.
  StageEvent(std::string line) : detail(std::move(line)) {}
  StageEvent(const char* line) : detail(line) {}

  /// The progress line: "human: gate one, case 2 of 9 (rows=64, cols=128)".
  std::string line() const;
  /// Callbacks that show lines take a text.
  operator std::string() const { return line(); }
};

/// Called from the judging thread. A callable that takes a text is given the event's line.
using Narration = std::function<void(const StageEvent&)>;

}  // namespace capstone
