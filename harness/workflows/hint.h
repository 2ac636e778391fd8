#pragma once
// `hint`: the hints of a project's problem, one after the other. Each first use goes into the ledger.
#include <string>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// A hint of a project's problem or of a lab.
struct ShownHint {
  int number = 0;  ///< from 1
  std::string text;
  bool last = false;
  bool first_time = false;
};

/// The hints of the project here.
struct ProjectHints {
  std::string problem;
  std::vector<std::string> texts;  ///< kHintLevels
  std::vector<TakenHint> taken;    ///< as in the LedgerView
  /// The highest that was taken; 0: none.
  int highest() const;
  /// When and where a hint was taken; null: not yet.
  const TakenHint* find(int level) const;
};

/// @error no project here; hints_of(); the ledger cannot be read.
Result<ProjectHints> hints_here(const Workspace& workspace);

/// Records that a hint is taken, and then gives it; one that was taken before is given again.
/// @param asked  from 1; 0: the next one
/// @error as hints_here(); hint_to_show(); another command works in the project; the ledger cannot be
/// written.
Result<ShownHint> take_hint(int asked, const Workspace& workspace);

}  // namespace capstone::workflows
