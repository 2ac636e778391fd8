#include "harness/workflows/try_kernel.h"

#include <chrono>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/correctness/chosen_case.h"
#include "harness/project/stub.h"
#include "harness/workflows/chosen_kernel.h"
#include "harness/workflows/editor_files.h"
#include "harness/workflows/sizes.h"

namespace capstone::workflows {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Tells building from checking by the judge's own steps. The instrumented builds count as building.
class StageTimes {
 public:
  ProgressSink watching(const ProgressSink& progress) {
    return [this, &progress](const Progress& step) {
      if (step.stage) enter(step.stage->stage == Stage::kGateOne);
      if (progress) progress(step);
    };
  }
  void enter(bool checking) {
    (checking_ ? check : build) += seconds_since(since_);
    since_ = Clock::now();
    checking_ = checking;
  }
  double build = 0, check = 0;

 private:
  Clock::time_point since_ = Clock::now();
  bool checking_ = false;
};

std::string relative_to(const fs::path& source, const fs::path& root) {
  std::error_code code;
  const std::string relative = fs::relative(source, root, code).generic_string();
  return relative.empty() || relative.starts_with("..") ? source.string() : relative;
}

}  // namespace

Result<TriedKernel> kernel_to_try(const TryRequest& request, const Workspace& workspace) {
  // For the next edit; where it cannot be done (read-only, no headers) the verdict matters more.
  if (const auto project = project_here(workspace))
    (void)write_editor_files(project->root, workspace.resources);
  if (request.what == "human" || request.what.ends_with(".py")) {
    CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
    const bool human = request.what == "human";
    const fs::path source = human ? project.human_kernel() : workspace.cwd / request.what;
    std::error_code code;
    if (!fs::is_regular_file(source, code))
      return fail("no such kernel", source.string(),
                  human ? "the measured versions are kept: capstone diff shows the last one"
                        : "human, llm, together, a .cu or .py file, or a reference kernel by number or name");
    return TriedKernel{project.problem, source, project.root, human ? "human" : "kernel",
                       relative_to(source, project.root)};
  }
  CAPSTONE_TRY(ChosenKernel chosen,
               choose_kernel(workspace, request.what, request.problem, "capstone try {0} --problem {1}"));
  fs::path root = chosen.source.parent_path();
  if (auto project = project_here(workspace)) root = project->root;
  std::string shown = relative_to(chosen.source, root);
  return TriedKernel{std::move(chosen.problem), std::move(chosen.source), std::move(root),
                     chosen.candidate.empty() ? "kernel" : chosen.candidate, std::move(shown)};
}

Result<TryOutcome> try_kernel(const TryRequest& request, const TriedKernel& kernel,
                              const Workspace& workspace, const ProgressSink& progress) {
  JudgeRequest judged = request_of(kernel.problem, request.judge);
  judged.timing = false;
  judged.nvcc = false;
  judged.candidates = {{kernel.name, kernel.source}};
  if (!request.size.empty() || !request.inputs.empty()) {
    CAPSTONE_TRY(const Sizes sizes, parse_sizes(kernel.problem, kernel.problem.check.front(), request.size));
    CAPSTONE_TRY(judged.replay, chosen_case(kernel.problem, sizes, request.inputs));
  }
  StageTimes times;
  const ProgressSink sink = times.watching(progress);
  CAPSTONE_TRY(auto measurements, judge(judged, workspace.resources, narration_to(sink)));
  times.enter(false);
  TryOutcome outcome{std::move(measurements.front()), kernel.shown, times.build, times.check};
  outcome.measurement.source = kernel.shown;
  outcome.is_stub = kernel.name == "human" && read_file(kernel.source) == stub_kernel(kernel.problem);
  forget_places(outcome.measurement, kernel.root, {});
  return outcome;
}

}  // namespace capstone::workflows
