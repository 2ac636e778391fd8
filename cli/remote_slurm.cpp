#include <fmt/format.h>

#include <thread>

#include "cli/remote.h"
#include "cli/slurm.h"
#include "harness/base/files.h"
#include "harness/base/last_line.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kTask = "judge";
constexpr std::chrono::milliseconds kLookInterval{500};
constexpr std::chrono::seconds kAskInterval{5};
constexpr std::chrono::seconds kFilesLag{20};   // a shared file system shows a node's file that much later

// Slurm's word for a job that it still has ("PENDING (Resources)"); empty: it has none of that number.
std::string state_of(const Context& context, const std::string& job) {
  auto squeue = find_program("squeue", context.resources.path_variable);
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
Result<std::string> job_of(const Context& context, const Destination& destination, const RemoteTask& task) {
  if (has_task(task.folder, kTask))
    if (auto known = read_file(task.folder / "job", 100)) {
      context.terminal.say("job " + *known + " of the same project is with Slurm already");
      return *known;
    }
  Job job;
  job.name = kTask;
  // The project is the user's own, and so is the job: its problem need not be the catalogue's.
  job.spec.argv = {context.program.string(), "measure", "--from-bundle", (task.folder / "bundle").string(), "--trust-problem", "--out", (task.folder / "result.jsonl").string()};
  job.spec.argv.insert(job.spec.argv.end(), task.options.begin(), task.options.end());
  job.spec.cwd = task.folder;
  CAPSTONE_TRY(std::string id, submit_array(task.folder, {job}, {"capstone-measure", destination.place, destination.gres, 0}, context.resources.path_variable));
  CAPSTONE_CHECK(write_file_atomic(task.folder / "job", id));
  return id;
}

}  // namespace

Result<std::string> judge_by_slurm(const Context& context, const Destination& destination, const RemoteTask& task) {
  CAPSTONE_TRY(const std::string job, job_of(context, destination, task));
  Clock::time_point asked{}, known = Clock::now();   // known: when Slurm last had the job
  std::string state;
  std::optional<ProcessResult> end;
  while (!(end = end_of_task(task.folder, kTask))) {
    if (interrupted()) {
      context.terminal.end_progress();
      context.terminal.say(fmt::format("job {} goes on; the same command takes its result, scancel {} ends it", job, job));
      return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    }
    if (Clock::now() - asked > kAskInterval) {
      asked = Clock::now();
      state = state_of(context, job);
      if (!state.empty()) known = asked;
    }
    if (Clock::now() - known > kAskInterval + kFilesLag) {
      forget_task(task.folder, kTask);
      return fail("Slurm has lost job " + job, {}, "was it cancelled, or out of time? `sacct -j " + job + "` may know; run the command again", ExitCode::kEnvironment);
    }
    const std::string line = last_line_of(task.folder / "tasks" / kTask / "err");
    context.terminal.progress(fmt::format("job {}: {}", job, line.empty() ? (state.empty() ? "submitted" : state) : line));
    std::this_thread::sleep_for(kLookInterval);
  }
  context.terminal.end_progress();
  forget_task(task.folder, kTask);
  auto result = read_file(task.folder / "result.jsonl");
  if (result) return *result;
  const std::string why = end->end == ProcessResult::End::kSignalled ? fmt::format("it was killed by signal {}", end->status) : last_words(end->err);
  return fail(fmt::format("job {}: {}", job, why), {}, {}, end->end == ProcessResult::End::kExited && end->status == static_cast<int>(ExitCode::kUsage) ? ExitCode::kUsage : ExitCode::kEnvironment);
}

}  // namespace capstone::cli
