#pragma once
// `mark`: marks from the command line, one by one or sheet by sheet.
#include <functional>
#include <string>
#include <vector>

#include "harness/workflows/cohort.h"

namespace capstone::workflows {

/// A person may be named by the submission, an id, an e-mail address or a name.
/// @return one line for each thing that the grader should know: marks of others that were replaced, sheets
/// that
///         another grader has open
/// @error as find_submission() and Gradebook::mark(); the grader has the second marking of it to do.
Result<std::vector<std::string>> give_marks(OpenCohort& cohort, std::vector<Mark> marks);

struct MarkingRound {
  std::string only;  ///< one submission or person; empty: whatever waits for marks
  std::string grader;
  bool take = false;  ///< with `only`: also if another grader has the sheet open
  /// Lets the grader edit a file; returns when they have closed it.
  std::function<Result<void>(const std::filesystem::path&)> edit;
};
struct RoundOutcome {
  int marked = 0;
  std::ptrdiff_t second = 0;  ///< second markings that this grader has to do; their sheets do not open here
  std::string stopped_at;     ///< this sheet came back without a new mark; empty: nothing waits any more
};
/// One sheet after the other, each claimed while it is open, in COHORT/marking/GRADER. A sheet that cannot be
/// read opens again with the error on top. What was typed stays until it is in the gradebook.
/// @error the editor; a sheet with a mistake came back unchanged; another grader has the sheet `only` open;
///        the grader has the second marking of `only` to do.
Result<RoundOutcome> mark_sheets(OpenCohort& cohort, const MarkingRound& round, const ProgressSink& progress);

}  // namespace capstone::workflows
