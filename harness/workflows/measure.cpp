#include "harness/workflows/measure.h"

#include <fmt/format.h>

#include <utility>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/runtime/build/cache.h"
#include "harness/workflows/pending_versions.h"
#include "rubric/reasons.h"

namespace capstone::workflows {
namespace {

PinnedProblem pinned(const Project& project) {
  return {project.config.problem_id, project.config.problem_digest};
}

Result<MeasureOutcome> outcome_of(const Project& project, std::vector<Measurement> measurements) {
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  return MeasureOutcome{std::move(measurements), std::move(ledger)};
}

// A task is identified by project, options and destination: the same request finds the task that it began
// before.
Result<RemoteTask> make_task(const MeasureRequest& request, const std::string& destination,
                             const Project& project, const Workspace& workspace,
                             const ProgressSink& progress) {
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  add_pending_versions(project, ledger);
  CAPSTONE_TRY(auto candidates, candidates_of(project, ledger, request, progress));
  JudgeOptions options = request.judge;
  if (options.backend == Backend::kAuto)
    options.backend = Backend::kCuda;  // the reason to go elsewhere is a GPU
  RemoteTask task;
  task.options = words_of(options);
  const fs::path all = project.root / ".capstone" / "remote", packed = all / "packed", named = all / "named";
  CAPSTONE_CHECK(make_folders(all));
  CAPSTONE_CHECK(name_versions(named, ledger, candidates));
  CAPSTONE_TRY(BundleReceipt receipt, pack_candidates(workspace, project, candidates, packed, progress));
  task.id = sha256_hex(receipt.sha256 + destination + join(task.options, " ")).substr(0, 16);
  task.folder = all / task.id;
  CAPSTONE_CHECK(make_folders(task.folder));
  std::error_code code;
  fs::rename(packed, task.folder / "bundle", code);
  if (!code) fs::rename(named, task.folder / "versions.json", code);
  if (code)
    return fail("cannot keep the bundle: " + code.message(), task.folder.string(), "is the disk full?",
                ExitCode::kEnvironment);
  return task;
}

// Imports results of Slurm jobs for earlier versions that were never fetched.
Result<int> import_unfetched(const Project& project, const fs::path& present) {
  std::error_code code;
  int added = 0;
  for (const auto& task : fs::directory_iterator(present.parent_path(), code)) {
    const fs::path result = task.path() / "result.jsonl";
    if (task.path() == present || !fs::exists(result, code)) continue;
    CAPSTONE_TRY(int records, import_records(project.ledger(), result, pinned(project)));
    added += records;
    fs::remove_all(task.path(), code);
  }
  return added;
}

Result<void> import_results(const Project& project, const RemoteTask& task, const fs::path& result,
                            const std::string& name, const ProgressSink& progress) {
  CAPSTONE_TRY(FileLock lock, FileLock::acquire(project.root / ".capstone" / "working.lock", true));
  CAPSTONE_TRY(const int earlier, import_unfetched(project, task.folder));
  if (earlier)
    report_note(progress,
                fmt::format("{} of earlier versions, never fetched until now, added to the ledger", earlier));
  CAPSTONE_TRY(const int added, import_records(project.ledger(), result, pinned(project)));
  report_note(progress, fmt::format("{} {} from {} added to the ledger", added,
                                    added == 1 ? "record" : "records", name));
  return {};
}

}  // namespace

Result<std::vector<CandidateVersion>> candidates_of(const Project& project, const LedgerView& ledger,
                                                    const MeasureRequest& request,
                                                    const ProgressSink& progress) {
  std::vector<CandidateVersion> candidates;
  std::error_code code;
  const bool human = request.who == Who::kHuman || request.who == Who::kAll;
  if (human && project.human_kernel().extension() == ".py" &&
      fs::exists(project.root / "human" / "kernel.cu", code))
    report_note(progress, "note: human/kernel.py is judged, not human/kernel.cu, which is there, too");
  if (human)
    candidates.push_back({"human", project.human_kernel(), request.reason, request.expected_speedup, {}});
  if (request.who == Who::kHuman) return candidates;
  if (request.who == Who::kTogether) {
    if (!fs::exists(project.together_kernel(), code))
      return fail("there is no kernel made together yet", project.together_kernel().string(),
                  "capstone together begin");
    candidates.push_back(
        {"together", project.together_kernel(), request.reason, request.expected_speedup, {}});
    return candidates;
  }
  if (auto attempt = latest_attempt(project, ledger)) {
    candidates.push_back(*attempt);
  } else if (request.who == Who::kLlm) {
    return fail("there is no model attempt with code yet", (project.root / "llm").string(),
                "capstone llm prompt, give the prompt to a model, then: capstone llm add REPLY --model NAME");
  } else {
    report_note(progress, "note: no model attempt yet, only the human kernel is measured");
  }
  if (request.who == Who::kAll && fs::exists(project.together_kernel(), code))
    candidates.push_back({"together", project.together_kernel(), {}, {}, {}});
  return candidates;
}

Result<MeasureOutcome> measure(const MeasureRequest& request, const Workspace& workspace,
                               const ProgressSink& progress) {
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  for (const std::string& damage : ledger.damage)
    report_note(progress, "warning: the ledger is damaged: " + damage);
  if (ledger.predictions.empty())
    report_note(progress,
                "note: no prediction yet. First guess, then measure: "
                "capstone predict memory|compute|latency --because \"…\"");
  if (names_no_cause(request.reason))
    report_note(progress,
                fmt::format("note: \"{}\" says how it went, not why. Name the cause: -m \"float4 loads: a "
                            "quarter of the requests\"",
                            printable(request.reason)));
  CAPSTONE_TRY(auto candidates, candidates_of(project, ledger, request, progress));
  CAPSTONE_TRY(auto measurements,
               judge_and_record(project, std::move(candidates), request.judge, workspace, progress));
  prune_cache(workspace.resources.cache);
  return outcome_of(project, std::move(measurements));
}

Result<BundleReceipt> pack_project(const MeasureRequest& request, const fs::path& out,
                                   const Workspace& workspace, const ProgressSink& progress) {
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(const auto candidates, candidates_of(project, ledger, request, progress));
  return pack_candidates(workspace, project, candidates, out, progress);
}

Result<MeasureOutcome> measure_remotely(const MeasureRequest& request, const Destination& destination,
                                        const std::string& name, const Workspace& workspace,
                                        const ProgressSink& progress) {
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(const RemoteTask task, make_task(request, name, project, workspace, progress));
  const bool by_ssh = destination.kind == Destination::Kind::kSsh;
  const fs::path home = task.folder / "result.jsonl";
  std::error_code code;
  if (!fs::exists(home, code)) {  // else an earlier run has fetched it already
    CAPSTONE_TRY(std::string result, by_ssh ? judge_by_ssh(workspace, destination, task, progress)
                                            : judge_by_slurm(workspace, destination, task, progress));
    CAPSTONE_CHECK(write_file_atomic(home, result));
  }
  CAPSTONE_TRY(LedgerView judged, read_ledger(home));
  CAPSTONE_CHECK(import_results(project, task, home, name, progress));
  if (by_ssh) forget_over_ssh(workspace, destination, task, progress);
  fs::remove_all(task.folder, code);
  std::vector<Measurement> measurements = std::move(judged.human);
  for (const auto* list : {&judged.llm, &judged.together})
    measurements.insert(measurements.end(), list->begin(), list->end());
  return outcome_of(project, std::move(measurements));
}

}  // namespace capstone::workflows
