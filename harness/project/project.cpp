#include "harness/project/project.h"

#include <fmt/format.h>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

// The folder that holds capstone.yaml, searched from `start` upwards.
Result<fs::path> find_root(const fs::path& start) {
  std::error_code code;
  fs::path from = fs::weakly_canonical(fs::absolute(start, code), code);
  if (code || !fs::exists(from, code)) return fail("no such folder", start.string(), "check the path");
  if (!fs::is_directory(from, code)) from = from.parent_path();
  std::vector<std::string> tried;
  for (fs::path folder = from;; folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / "capstone.yaml", code)) return folder;
    tried.push_back(folder.string());
    if (folder == folder.parent_path()) break;
  }
  return fail("this is not a capstone project: no capstone.yaml here or in a folder above", from.string(),
              fmt::format("create one with `capstone init <problem>`, or change into one (looked in {})",
                          join(tried, ", ")));
}

std::string restore_hint(const ProjectConfig& config) {
  return fmt::format("restore problem/: run `git checkout -- problem`, or copy it from a new project for {}",
                     config.problem_id);
}

// kernel.py if it exists, else kernel.cu.
fs::path kernel_in(const fs::path& folder) {
  std::error_code code;
  return folder / (fs::exists(folder / "kernel.py", code) ? "kernel.py" : "kernel.cu");
}

}  // namespace

fs::path Project::human_kernel() const { return kernel_in(root / "human"); }
fs::path Project::together_kernel() const { return kernel_in(root / "together"); }
fs::path Project::attempt_kernel(int n) const { return kernel_in(attempt(n)); }

Result<Project> open_project(const fs::path& start) {
  Project project;
  CAPSTONE_TRY(project.root, find_root(start));
  CAPSTONE_TRY(project.config, read_config(project.root / "capstone.yaml"));
  auto problem = load_problem(project.root / "problem");
  if (!problem) {
    Error error = problem.error();
    error.what = "the project's pinned problem cannot be read: " + error.what;
    error.hint = restore_hint(project.config);
    return fail(std::move(error));
  }
  project.problem = std::move(*problem);
  project.problem_changed = project.problem.digest != project.config.problem_digest ||
                            project.problem.id != project.config.problem_id;
  return project;
}

Result<void> require_pinned_problem(const Project& project) {
  if (!project.problem_changed) return {};
  return fail("the project's pinned copy of the problem was changed, so a verdict on it would not count",
              (project.root / "problem").string(), restore_hint(project.config));
}

}  // namespace capstone
