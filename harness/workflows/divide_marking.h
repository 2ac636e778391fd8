#pragma once
// `grader divide`: who marks which submissions first. `grader list`: who is how far.
#include <functional>
#include <string>
#include <vector>

#include "harness/course/gradebook/division.h"
#include "harness/workflows/cohort.h"

namespace capstone::workflows {

struct DivideRequest {
  std::vector<std::string> shares;    ///< "eva", or "tom=2" for a double share
  std::vector<std::string> sections;  ///< "A=eva"; with a roster that has a column `section`
  std::string roster;                 ///< file
  std::string seed;                   ///< empty: a random one
  bool again = false;                 ///< also submissions that are assigned already
  std::string by;                     ///< who divides
};
/// Assigns the submissions that no one was assigned yet, and keeps that in the gradebook.
/// @return the new assignments. @error no grader; an unknown grader; a person without a section.
Result<std::vector<Assignment>> divide_marking(const Workspace& workspace, OpenCohort& cohort,
                                               const DivideRequest& request);

/// How far one grader is. Counts are submissions.
struct GraderProgress {
  std::string grader;
  int assigned = 0;        ///< to this grader
  int assigned_open = 0;   ///< of these, wait for a mark
  int marked = 0;          ///< in which this grader gave a present mark
  std::string open_sheet;  ///< the sheet that they have open; empty: none
};
/// One entry for each grader who was added, was assigned something, or has marked; sorted by name.
/// @param seen  whether a submission counts; empty: all do
Result<std::vector<GraderProgress>> marking_progress(
    OpenCohort& cohort, const std::function<bool(const std::string& submission)>& seen = {});

}  // namespace capstone::workflows
