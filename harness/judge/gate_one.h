#pragma once
// Gate one: run every case in a worker and compare. The same loop serves both backends.
#include <span>
#include <string>
#include <vector>

#include "harness/judge/cases.h"
#include "harness/judge/judge.h"
#include "harness/worker/worker.h"

namespace capstone {

/// Memory that the trusted side owns and a worker maps.
class ArenaHost {
 public:
  virtual ~ArenaHost() = default;
  /// Makes an arena of this size; the descriptor stays ours and is handed to the worker.
  virtual Result<int> resize(std::size_t bytes) = 0;
  virtual Result<void> load(std::span<const std::byte> image) = 0;
  virtual Result<void> fetch(std::span<std::byte> image) = 0;
};

/// Host memory (memfd), for the emulated backend.
class MemfdArena : public ArenaHost {
 public:
  ~MemfdArena() override;
  Result<int> resize(std::size_t bytes) override;
  Result<void> load(std::span<const std::byte> image) override;
  Result<void> fetch(std::span<std::byte> image) override;

 private:
  void drop();
  int fd_ = -1;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A launch order of the emulator; the GPU has one unnamed order.
struct GateOneSetup {
  const Problem* problem;
  const Oracle* oracle;
  ArenaHost* arena;
  std::vector<std::string> schedules;                ///< {""} on a GPU
  std::function<StartedRunner()> start_worker;
  std::chrono::milliseconds run_timeout;
  Narration say;
  std::string who;                                   ///< for narration
};

/// Runs the cases and fills `into.cases` and `into.gate_one`. Stops at the first crash or time-out; goes on after a wrong
/// result, because which cases fail is half of the diagnosis.
/// @error the machine's fault, or interrupted.
Result<void> gate_one(const GateOneSetup& setup, const std::vector<CasePlan>& plans, Measurement& into);

/// The verdict that a worker's failure means.
GateOne verdict_of(const WorkerFailure& failure);

}  // namespace capstone
