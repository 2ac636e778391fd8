#pragma once
// Commands as a Slurm job array, results as files. Slurm does the scheduling.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/course/jobs.h"

namespace capstone::workflows {

struct SlurmOptions {
  std::string name = "capstone-grade";  ///< as squeue shows it
  std::string partition;                ///< empty: Slurm's default
  std::string gres = "gpu:1";           ///< of each task; empty: none
  int parallel = 0;                     ///< tasks at a time; 0: Slurm decides
};

/// Writes each job below `folder`/tasks/NAME and submits one array. The compute nodes must see the folder,
/// too.
/// @return the array's job id
/// @error no sbatch here; Slurm refuses: with its own message.
Result<std::string> submit_array(const std::filesystem::path& folder, const std::vector<Job>& jobs,
                                 const SlurmOptions& options, const std::string& path_variable);

/// How a task ended; empty: it still runs, or does not exist. forget_task() removes it once its end was
/// handled.
std::optional<ProcessResult> end_of_task(const std::filesystem::path& folder, const std::string& name);
bool has_task(const std::filesystem::path& folder, const std::string& name);
void forget_task(const std::filesystem::path& folder, const std::string& name);

}  // namespace capstone::workflows
