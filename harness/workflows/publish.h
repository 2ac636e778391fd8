#pragma once
// Publishing marks: what each student will see, what to look at before, and the files for the students.
#include <string>
#include <vector>

#include "harness/workflows/cohort.h"

namespace capstone::workflows {

struct PublicationRequest {
  std::vector<std::string> names;  ///< these submissions; empty: all
  /// Also people with criteria that are not marked, or with marks for an earlier version.
  bool incomplete = false;
};

/// One person's publication.
struct PublicationItem {
  GradebookRow row;        ///< the marks that the person would see
  bool news = false;       ///< they differ from what the person sees now
  bool held_back = false;  ///< not published, because of a warning
  std::vector<std::string>
      warnings;  ///< "not marked: depth, honesty", "marks for an earlier version: depth" …
};

/// What publish_marks() would do, for everyone who has marks. Writes nothing.
/// @error an unknown name (the hint names the nearest).
Result<std::vector<PublicationItem>> plan_publication(const OpenCohort& cohort,
                                                      const PublicationRequest& request);

struct Publication {
  std::vector<PublicationItem> items;
  int people = 0;                            ///< whose marks were published
  std::vector<std::filesystem::path> files;  ///< for the students: submissions/NAME/feedback/marks.html …
};

/// Publishes the marks of the plan's people that are not held back. Writes marks.md and marks.html into each
/// submission's feedback; members with other marks than their team have files of their own (marks-ID.html).
/// @error as plan_publication(); nothing to publish; no `by`.
Result<Publication> publish_marks(const Workspace& workspace, OpenCohort& cohort,
                                  const PublicationRequest& request, const std::string& by);

/// Lets one of a person's submissions count: the others of the same people are dropped.
/// @param archive  of several archives in the submission's folder, this one counts; empty: no choice. Grading
///                 it again uses the choice.
/// @return the submissions that were dropped
/// @error unknown submission; there is nothing to choose; no reason; no grader.
Result<std::vector<std::string>> choose_submission(OpenCohort& cohort, const std::string& name,
                                                   const std::string& archive, const std::string& reason,
                                                   const std::string& grader);

}  // namespace capstone::workflows
