#include "harness/workflows/hint.h"

#include <algorithm>

#include "harness/base/digest.h"
#include "harness/project/hints.h"
#include "harness/project/lab/progress.h"

namespace capstone::workflows {
namespace {

Result<Project> project_for_hints(const Workspace& workspace) {
  auto project = project_here(workspace);
  if (!project && lab_folder(workspace.cwd))
    return fail("this is the folder of a lab, not of a project", workspace.cwd.string(),
                "the hints of a lab: capstone lab hint");
  return project;
}

Result<ProjectHints> hints_in(const Project& project, const Workspace& workspace) {
  CAPSTONE_TRY(auto texts, hints_of(project.problem, workspace.resources));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  return ProjectHints{project.problem.id, std::move(texts), std::move(ledger.hints)};
}

}  // namespace

int ProjectHints::highest() const {
  int most = 0;
  for (const TakenHint& hint : taken) most = std::max(most, hint.level);
  return most;
}

const TakenHint* ProjectHints::find(int level) const {
  const auto found =
      std::find_if(taken.begin(), taken.end(), [&](const TakenHint& hint) { return hint.level == level; });
  return found == taken.end() ? nullptr : &*found;
}

Result<ProjectHints> hints_here(const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_for_hints(workspace));
  return hints_in(project, workspace);
}

Result<ShownHint> take_hint(int asked, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_for_hints(workspace));
  CAPSTONE_TRY(const FileLock lock, lock_project(project));  // two commands at once record a hint once
  CAPSTONE_TRY(const ProjectHints hints, hints_in(project, workspace));
  const int last = static_cast<int>(hints.texts.size());
  CAPSTONE_TRY(const int number, hint_to_show(asked, hints.highest(), last));
  const std::string& text = hints.texts[static_cast<std::size_t>(number - 1)];
  const bool first = !hints.find(number);
  if (first) {  // before it is shown: a hint that was read is a hint that is in the ledger
    CAPSTONE_TRY(const std::string machine, chain_id(workspace));
    const TakenHint taken{number, last, sha256_hex(text)};
    CAPSTONE_CHECK(append_record(project.ledger(), "hint", Json(taken), machine));
  }
  return ShownHint{number, text, number == last, first};
}

}  // namespace capstone::workflows
