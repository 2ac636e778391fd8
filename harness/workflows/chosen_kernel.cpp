#include "harness/workflows/chosen_kernel.h"

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/workflows/judge_and_record.h"
#include "harness/workflows/lab.h"
#include "harness/workflows/rungs.h"

namespace capstone::workflows {
namespace {

Result<ChosenKernel> candidate_of(const Workspace& workspace, const std::string& candidate) {
  CAPSTONE_TRY(Project project, pinned_project_here(workspace));
  fs::path source = project.human_kernel();
  std::error_code code;
  if (candidate == "together") {
    source = project.together_kernel();
    if (!fs::exists(source, code))
      return fail("there is no kernel made together yet", source.string(), "capstone together begin");
  }
  if (candidate == "llm") {
    CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
    auto attempt = latest_attempt(project, ledger);
    if (!attempt)
      return fail(
          "there is no model attempt with code yet", (project.root / "llm").string(),
          "capstone llm prompt, give the prompt to a model, then: capstone llm add REPLY --model NAME");
    source = attempt->source;
  }
  if (source.extension() == ".py")
    return fail("this candidate is a Python file: only CUDA kernels are explained and profiled",
                source.string(), "put its CUDA into a kernel.cu with launch(), or use PyTorch's profiler",
                ExitCode::kEnvironment);
  return ChosenKernel{project.problem, source, candidate, project};
}

// The version under which this very source was measured.
std::string version_of(const LedgerView& ledger, const std::string& candidate, const std::string& digest) {
  for (const Measurement* m : ledger.versions(candidate))
    if (m->source_sha256 == digest) return m->version;
  return {};
}

}  // namespace

Result<Problem> problem_of_file(const Workspace& workspace, const std::string& named) {
  if (!named.empty()) return find_problem(workspace.resources.problems(), named);
  if (auto project = project_here(workspace)) return project->problem;
  const auto folder = lab_folder(workspace.cwd);
  if (!folder)
    return fail("which problem does this kernel solve?", {},
                "give --problem ID (see: capstone problems), or run it inside a project");
  CAPSTONE_TRY(const LabProgress progress, read_progress(*folder));
  CAPSTONE_TRY(const Lab lab, lab_called(progress.lab, workspace));
  return find_problem(workspace.resources.problems(), lab.problem());
}

std::string ChosenKernel::shown() const {
  std::error_code code;
  return project ? fs::relative(source, project->root, code).string() : source.filename().string();
}

Result<ChosenKernel> choose_kernel(const Workspace& workspace, const std::string& what,
                                   const std::string& problem, const char* command) {
  if (what == "human" || what == "llm" || what == "together") return candidate_of(workspace, what);
  std::error_code code;
  if (what.ends_with(".cu") && !fs::is_regular_file(workspace.cwd / what, code))
    return fail("no such source file", (workspace.cwd / what).string(),
                "human, llm, together, a .cu file, or a reference kernel by number or name");
  CAPSTONE_TRY(Problem solved, problem_of_file(workspace, problem));
  CAPSTONE_TRY(fs::path source, find_rung(workspace, solved.id, what, command));
  return ChosenKernel{std::move(solved), std::move(source), {}, std::nullopt};
}

Result<void> keep_findings(const Workspace& workspace, const ChosenKernel& kernel, const std::string& digest,
                           const std::function<FoundRecord(const std::string&)>& make) {
  CAPSTONE_TRY(FileLock lock, lock_project(*kernel.project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(kernel.project->ledger()));
  CAPSTONE_TRY(std::string text, read_file(kernel.source, 16u << 20));
  if (sha256_hex(text) != digest)
    return fail("the source changed in the meantime; nothing was recorded", kernel.source.string(),
                "run the command again", ExitCode::kUsage);
  CAPSTONE_CHECK(keep_source(kernel.project->sources(), text));
  const FoundRecord found = make(version_of(ledger, kernel.candidate, digest));
  CAPSTONE_TRY(std::string machine, chain_id(workspace));
  CAPSTONE_CHECK(append_record(kernel.project->ledger(), found.kind, found.body, machine));
  return {};
}

}  // namespace capstone::workflows
