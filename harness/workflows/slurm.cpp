#include "harness/workflows/slurm.h"

#include <fmt/format.h>

#include <cstdlib>

#include "harness/base/text.h"

namespace capstone::workflows {
namespace {

// Each task reads its words from files, so nothing needs shell quoting.
constexpr const char* kScript = R"sh(#!/bin/bash
set -u
name=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" index)
cd "tasks/$name" || exit 1
mapfile -d '' -t words < argv
here=$PWD
cd "$(cat cwd)" || exit 1
"${words[@]}" < "$here/input" > "$here/out" 2> "$here/err"
echo $? > "$here/exit.part" && mv "$here/exit.part" "$here/exit"
)sh";

fs::path place_of(const fs::path& folder, const std::string& name) { return folder / "tasks" / name; }

}  // namespace

Result<std::string> submit_array(const fs::path& folder, const std::vector<Job>& jobs,
                                 const SlurmOptions& options, const std::string& path_variable) {
  auto sbatch = find_program("sbatch", path_variable);
  if (!sbatch)
    return fail("sbatch is not installed", {},
                "run it on a machine that can submit to Slurm, or without --executor",
                ExitCode::kEnvironment);
  std::string index;
  for (const Job& job : jobs) {
    const fs::path place = place_of(folder, job.name);
    std::error_code code;
    fs::remove_all(place, code);
    CAPSTONE_CHECK(make_folders(place));
    std::string words;
    for (const std::string& word : job.spec.argv) words += word + '\0';
    CAPSTONE_CHECK(write_file_atomic(place / "argv", words));
    CAPSTONE_CHECK(write_file_atomic(place / "input", job.spec.input));
    CAPSTONE_CHECK(write_file_atomic(place / "cwd", job.spec.cwd.string()));
    index += job.name + "\n";
  }
  CAPSTONE_CHECK(write_file_atomic(folder / "index", index));
  CAPSTONE_CHECK(write_file_atomic(folder / "task.sh", kScript, 0755));
  ProcessSpec spec;
  spec.argv = {sbatch->string(),
               "--parsable",
               "--job-name=" + options.name,
               "--output=/dev/null",
               "--chdir=" + folder.string(),
               fmt::format("--array=0-{}{}", jobs.size() - 1,
                           options.parallel > 0 ? fmt::format("%{}", options.parallel) : "")};
  if (!options.partition.empty()) spec.argv.push_back("--partition=" + options.partition);
  if (!options.gres.empty()) spec.argv.push_back("--gres=" + options.gres);
  spec.argv.push_back((folder / "task.sh").string());
  spec.timeout = std::chrono::minutes(2);
  CAPSTONE_TRY(ProcessResult run, run_process(spec));
  if (!run.ok())
    return fail("Slurm refused the job array: " + to_utf8(trim(run.err)), folder.string(),
                "sinfo shows partitions, scontrol show node what they have; --partition and --gres choose",
                ExitCode::kEnvironment);
  return std::string(trim(split(std::string(trim(run.out)), ';').front()));
}

bool has_task(const fs::path& folder, const std::string& name) {
  std::error_code code;
  return fs::exists(place_of(folder, name), code);
}

std::optional<ProcessResult> end_of_task(const fs::path& folder, const std::string& name) {
  auto code = read_file(place_of(folder, name) / "exit", 64);
  if (!code) return std::nullopt;
  ProcessResult result{ProcessResult::End::kExited, std::atoi(code->c_str()), {}, {}, {}};
  if (result.status > 128)
    result = {ProcessResult::End::kSignalled, result.status - 128, {}, {}, {}};  // as a shell reports it
  if (auto err = read_file(place_of(folder, name) / "err", 16u << 20)) result.err = std::move(*err);
  return result;
}

void forget_task(const fs::path& folder, const std::string& name) {
  std::error_code code;
  fs::remove_all(place_of(folder, name), code);
}

}  // namespace capstone::workflows
