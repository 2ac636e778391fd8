#pragma once
// Waits that end early when nobody wants the answer any more.
#include <algorithm>
#include <chrono>
#include <stop_token>
#include <thread>

#include "harness/base/error.h"
#include "harness/base/subprocess.h"

namespace capstone::machine {

using Clock = std::chrono::steady_clock;

inline bool stopped(const std::stop_token& stop) { return stop.stop_requested() || interrupted(); }

inline Error interruption() { return {"interrupted", {}, {}, ExitCode::kInterrupted}; }

/// @return false: stopped before that time.
inline bool sleep_until(Clock::time_point end, const std::stop_token& stop) {
  constexpr Clock::duration kLook = std::chrono::milliseconds(50);
  while (!stopped(stop)) {
    const Clock::duration left = end - Clock::now();
    if (left <= Clock::duration::zero()) return true;
    std::this_thread::sleep_for(std::min(left, kLook));
  }
  return false;
}

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

inline Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace capstone::machine
