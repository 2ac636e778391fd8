#pragma once
// An endless loop ends as a Failure that says where it was.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace capstone_emu {

/// What the signal of an expired limit stops. The signal is sent repeatedly, because a kernel is left only
/// while the candidate's own code runs. Functions of the emulator or of the C library may hold a lock or be
/// halfway through a change.
enum class TimeOutPhase { kNone, kKernels, kHost };
std::atomic<TimeOutPhase>& time_out_phase();
/// The limit that expired, in words: "10 s".
std::string time_limit_text();
inline constexpr int kTimeOutSignal = 26;  // SIGVTALRM, which nothing else here uses

/// A run on a busy machine, or one that sleeps, may last so many times its limit.
inline constexpr int kMostWaits = 4;

/// While it lives, no thread of the process may take more than `limit` of processor time, and the run no more
/// than kMostWaits times as long by the clock. Then every running kernel is interrupted and left, with a
/// Failure of kind kTimedOut that names kernel, block, thread and line. Host code that does not return is
/// reported to report_host_failure(). A limit of 0 is none.
class TimeLimit {
 public:
  explicit TimeLimit(std::chrono::milliseconds limit);
  ~TimeLimit();

 private:
  struct Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace capstone_emu
