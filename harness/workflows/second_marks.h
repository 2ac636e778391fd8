#pragma once
// Second marks: blind copies for a second mentor, and how far two mentors agree.
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/agreement.h"
#include "harness/course/gradebook/blind.h"
#include "harness/workflows/cohort.h"

namespace capstone::workflows {

/// What must not be seen where a submission is marked without its authors' names: names, ids and addresses of
/// its people.
NameMask mask_of(const std::string& submission, const std::vector<GradebookRow>& rows,
                 const std::map<std::string, ResultSummary>& summaries);

struct BlindCopies {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> sheets;  ///< the marks.yaml of each copy
  std::size_t assigned = 0;                   ///< may be fewer than requested: the mentor has seen the others
};
/// Assigns submissions to a second mentor, and writes blind copies of them below `out` (empty:
/// COHORT/blind/GRADER). The mentor can also mark them in `serve`.
/// @error graders were added, and `grader` is none of them.
Result<BlindCopies> assign_blind_copies(const Workspace& workspace, OpenCohort& cohort, int count,
                                        const std::string& grader, const std::string& out);

/// Takes in every filled sheet below `folder`, all or nothing. The first marks stay; so do second marks that
/// were given before: each that differs is reported.
Result<MergedMarks> merge_blind_copies(const Workspace& workspace, OpenCohort& cohort,
                                       const std::string& folder, const ProgressSink& progress);

struct SecondMarks {
  std::size_t pairs = 0;  ///< marks that two mentors gave for the same criterion
  AgreementReport report;
};
Result<SecondMarks> agreement_in(const OpenCohort& cohort);

}  // namespace capstone::workflows
