#include "cli/candidates.h"

#include "cli/recording.h"
#include "cli/rungs.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"

namespace capstone::cli {
namespace {

Result<Subject> candidate_of(const Context& context, const std::string& candidate) {
  CAPSTONE_TRY(Project project, project_here(context));
  CAPSTONE_CHECK(require_pinned_problem(project));
  fs::path source = project.human_kernel();
  if (candidate == "llm") {
    CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
    auto attempt = latest_attempt(project, ledger);
    if (!attempt)
      return fail("there is no model attempt with code yet", (project.root / "llm").string(),
                  "capstone llm prompt, give the prompt to a model, then: capstone llm add REPLY --model NAME");
    source = attempt->source;
  }
  if (source.extension() == ".py")
    return fail("this candidate is a Python file: only CUDA kernels are explained and profiled", source.string(),
                "put its CUDA into a kernel.cu with launch(), or use PyTorch's profiler", ExitCode::kEnvironment);
  return Subject{project.problem, source, candidate, project};
}

Result<Problem> problem_for(const Context& context, const std::string& named) {
  if (!named.empty()) return find_problem(context.resources.problems(), named);
  auto project = project_here(context);
  if (!project) return fail("which problem does this kernel solve?", {}, "say --problem ID (see: capstone problems), or call it inside a project");
  return project->problem;
}

// The version under which this very source was measured.
std::string version_of(const LedgerView& ledger, const std::string& candidate, const std::string& digest) {
  for (const Measurement* m : ledger.versions(candidate))
    if (m->source_sha256 == digest) return m->version;
  return {};
}

}  // namespace

Result<Subject> subject_of(const Context& context, const std::string& what, const std::string& problem, const char* command) {
  if (what == "human" || what == "llm") return candidate_of(context, what);
  CAPSTONE_TRY(Problem solved, problem_for(context, problem));
  std::error_code code;
  if (what.ends_with(".cu") && !fs::is_regular_file(context.cwd / what, code))
    return fail("no such source file", (context.cwd / what).string(), "human, llm, a .cu file, or a reference kernel by number or name");
  CAPSTONE_TRY(fs::path source, find_rung(context, solved.id, what, command));
  return Subject{std::move(solved), std::move(source), {}, std::nullopt};
}

Result<void> keep_findings(const Context& context, const Subject& subject, const std::string& digest, const std::function<FoundRecord(const std::string&)>& make) {
  CAPSTONE_TRY(FileLock lock, lock_project(*subject.project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(subject.project->ledger()));
  CAPSTONE_TRY(std::string text, read_file(subject.source, 16u << 20));
  if (sha256_hex(text) != digest)
    return fail("the source changed meanwhile; nothing was recorded", subject.source.string(), "run the command again", ExitCode::kUsage);
  CAPSTONE_CHECK(keep_source(subject.project->sources(), text));
  const FoundRecord found = make(version_of(ledger, subject.candidate, digest));
  CAPSTONE_TRY(std::string machine, chain_id(context));
  CAPSTONE_CHECK(append_record(subject.project->ledger(), found.kind, found.body, machine));
  return {};
}

}  // namespace capstone::cli
