#include <fmt/format.h>

#include <thread>

#include "harness/base/files.h"
#include "harness/base/last_line.h"
#include "harness/base/text.h"
#include "harness/workflows/remote.h"
#include "harness/workflows/slurm.h"

namespace capstone::workflows {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kTask = "judge";
constexpr std::chrono::milliseconds kLookInterval{500};
constexpr std::chrono::seconds kAskInterval{5};
constexpr std::chrono::seconds kFilesLag{20};  // a shared file system may show a file of a node this late

// The state of a job in Slurm's queue ("PENDING (Resources)"); empty: no such job there.
std::string state_of(const Workspace& workspace, const std::string& job) {
  auto squeue = find_program("squeue", workspace.resources.path_variable);
  if (!squeue) return {};
  ProcessSpec spec;
  spec.argv = {squeue->string(), "--noheader", "--jobs=" + job, "--format=%T (%r)"};
  auto run = run_process(spec);
  return run && run->ok() ? replace_all(std::string(trim(to_utf8(run->out))), " (None)", "") : std::string();
}

std::string last_line_of(const fs::path& file) {
  auto text = read_file(file, 16u << 20);
  return text ? last_line(to_utf8(*text)) : std::string();
}

// The job that was submitted by an earlier run of this very task, or a new one.
Result<std::string> job_of(const Workspace& workspace, const Destination& destination, const RemoteTask& task,
                           const ProgressSink& progress) {
  if (has_task(task.folder, kTask))
    if (auto known = read_file(task.folder / "job", 100)) {
      report_note(progress, "job " + *known + " of this project is already in Slurm's queue");
      return *known;
    }
  Job job;
  job.name = kTask;
  // The user's own project, so its problem definition is trusted even where it is not in the catalogue.
  job.spec.argv = {workspace.program.string(),
                   "measure",
                   "--from-bundle",
                   (task.folder / "bundle").string(),
                   "--trust-problem",
                   "--out",
                   (task.folder / "result.jsonl").string()};
  job.spec.argv.insert(job.spec.argv.end(), task.options.begin(), task.options.end());
  job.spec.cwd = task.folder;
  CAPSTONE_TRY(std::string id,
               submit_array(task.folder, {job}, {"capstone-measure", destination.place, destination.gres, 0},
                            workspace.resources.path_variable));
  CAPSTONE_CHECK(write_file_atomic(task.folder / "job", id));
  return id;
}

}  // namespace

Result<std::string> judge_by_slurm(const Workspace& workspace, const Destination& destination,
                                   const RemoteTask& task, const ProgressSink& progress) {
  CAPSTONE_TRY(const std::string job, job_of(workspace, destination, task, progress));
  Clock::time_point asked{}, known = Clock::now();  // known: when Slurm last had the job
  std::string state;
  std::optional<ProcessResult> end;
  while (!(end = end_of_task(task.folder, kTask))) {
    if (interrupted()) {
      report_note(
          progress,
          fmt::format("job {} continues; rerun the command to get its result, or end it with scancel {}", job,
                      job));
      return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    }
    if (Clock::now() - asked > kAskInterval) {
      asked = Clock::now();
      state = state_of(workspace, job);
      if (!state.empty()) known = asked;
    }
    if (Clock::now() - known > kAskInterval + kFilesLag) {
      forget_task(task.folder, kTask);
      return fail("Slurm no longer knows job " + job, {},
                  "it was cancelled or ran out of time: `sacct -j " + job + "` may say; rerun the command",
                  ExitCode::kEnvironment);
    }
    const std::string line = last_line_of(task.folder / "tasks" / kTask / "err");
    report_step(progress,
                fmt::format("job {}: {}", job, line.empty() ? (state.empty() ? "submitted" : state) : line));
    std::this_thread::sleep_for(kLookInterval);
  }
  forget_task(task.folder, kTask);
  auto result = read_file(task.folder / "result.jsonl");
  if (result) return *result;
  const std::string why = end->end == ProcessResult::End::kSignalled
                              ? fmt::format("killed by signal {}", end->status)
                              : last_words(end->err);
  return fail(fmt::format("job {}: {}", job, why), {}, {},
              end->end == ProcessResult::End::kExited && end->status == static_cast<int>(ExitCode::kUsage)
                  ? ExitCode::kUsage
                  : ExitCode::kEnvironment);
}

}  // namespace capstone::workflows
