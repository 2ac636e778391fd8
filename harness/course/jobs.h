#pragma once
// Runs many child processes, a few at a time.
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
  std::size_t index = 0;  ///< position in the list of jobs
  std::string last_line;  ///< the last line that it wrote to stderr; empty at first
};

struct JobEvents {
  /// Called just before a job starts. It can change the process's environment. `place` is 0 … parallel-1; no
  /// two jobs that run at the same time have the same place.
  std::function<void(std::size_t index, int place, ProcessSpec& spec)> starting;
  std::function<void(std::size_t index, const ProcessResult& result)> finished;
  /// Called several times a second.
  std::function<void(const std::vector<RunningJob>&)> running;
};

/// Runs all jobs to their end, started in order, `parallel` at a time. A job that exceeds its timeout is
/// killed (End::kTimedOut).
/// @error a program cannot be started; interrupted (all running jobs are killed).
Result<void> run_jobs(const std::vector<Job>& jobs, int parallel, const JobEvents& events);

}  // namespace capstone
