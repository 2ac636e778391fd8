#pragma once
// Many child processes, some at a time.
#include <functional>
#include <string>
#include <vector>

#include "harness/base/subprocess.h"

namespace capstone {

struct Job {
  std::string name;
  ProcessSpec spec;
};

struct RunningJob {
  std::size_t index = 0;     ///< of the list
  std::string last_line;     ///< of what it wrote to stderr; empty at first
};

struct JobEvents {
  /// Just before a start; may change the process's environment. `place`: 0 … parallel-1, of no other job that runs now.
  std::function<void(std::size_t index, int place, ProcessSpec& spec)> starting;
  std::function<void(std::size_t index, const ProcessResult& result)> finished;
  /// Several times a second.
  std::function<void(const std::vector<RunningJob>&)> running;
};

/// Runs each to its end, `parallel` at a time, in order. A job past its timeout is killed (End::kTimedOut).
/// @error a program cannot be started; interrupted (all are killed).
Result<void> run_jobs(const std::vector<Job>& jobs, int parallel, const JobEvents& events);

}  // namespace capstone
