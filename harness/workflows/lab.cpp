#include "harness/workflows/lab.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/analysis/explain/explain.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/hints.h"
#include "harness/workflows/catalogue.h"
#include "harness/workflows/judge_and_record.h"

namespace capstone::workflows {
namespace {

Result<std::string> rung_of(const Lab& lab, const Workspace& workspace) {
  const fs::path file = workspace.resources.reference_kernels() / lab.rung;
  std::error_code code;
  if (!fs::exists(file, code))
    return fail("the reference kernel of lab " + lab.id + " is not part of this installation", file.string(),
                "packages for students leave out what solves a graded problem; choose another lab",
                ExitCode::kEnvironment);
  return read_file(file, 1u << 20);
}

std::string limit_text(const LabLimit& limit) {
  return fmt::format("{} {:g} {}", limit.at_least ? "at least" : "at most", limit.bound, limit.count->name);
}

// README.md of the exercise.
std::string readme(const Lab& lab, const Problem& problem, int todos) {
  std::string text = fmt::format(
      "# Lab {}: {}\n\n{}\n\nThe problem is **{}** (`capstone problems show {}`).\n"
      "`kernel.cu` holds a kernel for it: write what {} in it.\n\n## Read first\n\n",
      lab.id, lab.title, lab.aim, problem.title, problem.id,
      todos == 1 ? "the TODO says" : fmt::format("the {} TODOs say", todos));
  for (const std::string& what : lab.read) text += "- " + what + "\n";
  text +=
      "\n## Check it\n\nIn this folder:\n\n"
      "```console\n"
      "$ capstone lab             # is it right? runs on the CPU, no GPU is needed\n"
      "$ capstone lab hint        # the next of three hints\n"
      "$ capstone lab --give-up   # shows the solution\n"
      "```\n\nThe lab is passed when every case of gate one is right";
  if (!lab.limits.empty()) {
    text += " and the kernel stays within its limits:\n\n";
    for (const LabLimit& limit : lab.limits) text += "- " + limit_text(limit) + "\n";
    text += fmt::format("\n`capstone explain kernel.cu --problem {}` shows these counts line by line.\n",
                        problem.id);
  } else {
    text += ".\n";
  }
  return text + "\n`lab.json` keeps your progress: leave it where it is.\n";
}

// The line with the most modelled cost.
std::string dearest_line(const Explanation& e) {
  const LineCounts* most = nullptr;
  for (const KernelCounts& kernel : e.kernels)
    for (const LineCounts& line : kernel.lines)
      if (!most || line.share > most->share) most = &line;
  return most ? fmt::format("{}:{}", most->file, most->line) : std::string();
}

Result<std::vector<CountedLimit>> count_limits(const Lab& lab, const Problem& problem, const fs::path& source,
                                               const Workspace& workspace, const ProgressSink& progress) {
  if (lab.limits.empty()) return std::vector<CountedLimit>{};
  const ExplainRequest request{&problem, source, problem.emulate, {}};
  CAPSTONE_TRY(const Explanation e, explain(request, workspace.resources, narration_to(progress)));
  std::vector<CountedLimit> all;
  for (const LabLimit& limit : lab.limits) {
    const double value = limit.count->of(e);
    all.push_back({limit, value, limit.met(value) ? std::string() : dearest_line(e)});
  }
  return all;
}

}  // namespace

Result<Lab> lab_called(const std::string& id, const Workspace& workspace) {
  CAPSTONE_TRY(const auto labs, load_labs(workspace.resources.reference_kernels()));
  return find_lab(labs, id);
}

bool LabVerdict::passed() const {
  return measurement.gate_one == GateOne::kPassed &&
         std::all_of(limits.begin(), limits.end(),
                     [](const CountedLimit& one) { return one.limit.met(one.value); });
}

Result<std::vector<LabStatus>> list_labs(const Workspace& workspace) {
  CAPSTONE_TRY(auto labs, load_labs(workspace.resources.reference_kernels()));
  std::vector<LabStatus> all;
  for (Lab& lab : labs) all.push_back({std::move(lab), {}, std::nullopt});
  const auto here = lab_folder(workspace.cwd);  // inside of a lab the others lie next to it
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(here ? here->parent_path() : workspace.cwd, code)) {
    if (!fs::is_regular_file(progress_file(entry.path()), code)) continue;
    CAPSTONE_TRY(LabProgress progress, read_progress(entry.path()));
    for (LabStatus& status : all)
      if (status.lab.id == progress.lab &&
          (!status.progress || (progress.passed && !status.progress->passed))) {
        status.folder = entry.path();
        status.progress = progress;
      }
  }
  return all;
}

Result<fs::path> lab_folder_here(const Workspace& workspace, const std::string& folder) {
  const fs::path place = folder.empty() ? workspace.cwd : workspace.cwd / folder;
  if (auto found = lab_folder(place)) return *found;
  return fail(
      "this is not the folder of a lab: it has no lab.json", place.lexically_normal().string(),
      "make a lab with `capstone lab ID`, for example `capstone lab L2-1`, then run this in its folder");
}

Result<MadeLab> make_lab(const std::string& id, const std::string& folder, const Workspace& workspace) {
  CAPSTONE_TRY(Lab lab, lab_called(id, workspace));
  const fs::path place = (workspace.cwd / (folder.empty() ? lab.id : folder)).lexically_normal();
  std::error_code code;
  if (fs::exists(place, code) && !(fs::is_directory(place, code) && fs::is_empty(place, code)))
    return fail(fs::exists(progress_file(place), code) ? "a lab was begun there" : "this folder is not empty",
                place.string(),
                fs::exists(progress_file(place), code)
                    ? "go on with it: run `capstone lab` there; or give another folder: capstone lab " +
                          lab.id + " DIR"
                    : "give another folder: capstone lab " + lab.id + " DIR");
  CAPSTONE_TRY(const Problem problem, catalogue_problem(workspace, lab.problem()));
  CAPSTONE_TRY(const std::string rung, rung_of(lab, workspace));
  CAPSTONE_TRY(const std::string source, exercise(lab, rung));
  const int todos = count_todos(source);
  CAPSTONE_CHECK(make_folders(place));
  CAPSTONE_CHECK(write_file_atomic(place / "kernel.cu", source));
  CAPSTONE_CHECK(write_file_atomic(place / "README.md", readme(lab, problem, todos)));
  CAPSTONE_CHECK(write_progress(place, {lab.id, utc_now(), sha256_hex(source), 0, {}, {}}));
  return MadeLab{std::move(lab), place, todos};
}

Result<LabVerdict> judge_lab(const Lab& lab, const fs::path& source, bool quick, const Workspace& workspace,
                             const ProgressSink& progress) {
  CAPSTONE_TRY(const std::string text, read_file(source, 16u << 20));
  CAPSTONE_TRY(const Problem problem, catalogue_problem(workspace, lab.problem()));
  JudgeOptions options;
  options.backend = Backend::kEmulated;
  options.quick = quick;
  JudgeRequest request = request_of(problem, options);
  request.candidates = {{lab.id, source}};
  request.timing = false;
  CAPSTONE_TRY(auto measurements, judge(request, workspace.resources, narration_to(progress)));
  LabVerdict verdict{lab, std::move(measurements.front()), {}, count_todos(text), {}};
  if (verdict.measurement.gate_one == GateOne::kPassed) {
    CAPSTONE_TRY(verdict.limits, count_limits(lab, problem, source, workspace, progress));
  }
  return verdict;
}

Result<LabVerdict> check_lab(const fs::path& folder, const Workspace& workspace,
                             const ProgressSink& progress) {
  CAPSTONE_TRY(LabProgress kept, read_progress(folder));
  CAPSTONE_TRY(const auto labs, load_labs(workspace.resources.reference_kernels()));
  CAPSTONE_TRY(const Lab lab, find_lab(labs, kept.lab));
  const fs::path source = folder / "kernel.cu";
  CAPSTONE_TRY(const std::string digest, sha256_file(source));
  CAPSTONE_TRY(LabVerdict verdict, judge_lab(lab, source, false, workspace, progress));
  CAPSTONE_TRY(const std::string digest_now, sha256_file(source));
  if (digest != digest_now)
    return fail("kernel.cu changed while it was being judged; nothing was recorded", source.string(),
                "run the command again");
  if (verdict.passed() && !kept.passed) {
    kept.passed = LabProgress::Pass{utc_now(), digest};
    CAPSTONE_CHECK(write_progress(folder, kept));
  }
  const auto here = std::find_if(labs.begin(), labs.end(), [&](const Lab& one) { return one.id == lab.id; });
  if (here + 1 != labs.end()) verdict.next = (here + 1)->id;
  return verdict;
}

Result<ShownHint> show_hint(const fs::path& folder, int number, const Workspace& workspace) {
  CAPSTONE_TRY(LabProgress kept, read_progress(folder));
  CAPSTONE_TRY(const Lab lab, lab_called(kept.lab, workspace));
  const int last = static_cast<int>(lab.hints.size());
  const int before = std::clamp(kept.hints, 0, last);
  CAPSTONE_TRY(const int shown, hint_to_show(number, before, last));
  kept.hints = std::max(kept.hints, shown);
  CAPSTONE_CHECK(write_progress(folder, kept));
  return ShownHint{shown, lab.hints[static_cast<std::size_t>(shown - 1)], shown == last, shown > before};
}

Result<ShownSolution> give_up_lab(const fs::path& folder, const Workspace& workspace) {
  CAPSTONE_TRY(LabProgress kept, read_progress(folder));
  CAPSTONE_TRY(Lab lab, lab_called(kept.lab, workspace));
  CAPSTONE_TRY(const std::string rung, rung_of(lab, workspace));
  CAPSTONE_TRY(auto spans, taken_out(lab, rung));
  const fs::path file = folder / "solution.cu";
  CAPSTONE_CHECK(write_file_atomic(file, rung));
  if (kept.given_up.empty()) kept.given_up = utc_now();
  CAPSTONE_CHECK(write_progress(folder, kept));
  return ShownSolution{std::move(lab), std::move(spans), file};
}

}  // namespace capstone::workflows
