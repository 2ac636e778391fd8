#pragma once
// Commands as a Slurm job array, results as files. Slurm schedules; nothing of ours does.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/course/jobs.h"

namespace capstone::cli {

struct SlurmOptions {
  std::string name = "capstone-grade";  ///< as squeue shows it
  std::string partition;            ///< empty: Slurm's default
  std::string gres = "gpu:1";       ///< of each task; empty: none
  int parallel = 0;                 ///< tasks at a time; 0: as many as Slurm likes
};

/// Writes each job below `folder`/tasks/NAME and submits one array. The folder has to be where the nodes see it, too.
/// @return the array's job id
/// @error no sbatch here; Slurm's own words where it refuses.
Result<std::string> submit_array(const std::filesystem::path& folder, const std::vector<Job>& jobs, const SlurmOptions& options, const std::string& path_variable);

/// How a task ended; nothing: it has not, or there is none. forget_task() takes it away once its end was seen.
std::optional<ProcessResult> end_of_task(const std::filesystem::path& folder, const std::string& name);
bool has_task(const std::filesystem::path& folder, const std::string& name);
void forget_task(const std::filesystem::path& folder, const std::string& name);

}  // namespace capstone::cli
