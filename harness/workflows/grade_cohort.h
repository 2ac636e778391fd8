#pragma once
// `grade`: judges every submission of a cohort, each in a process of its own. A submission has one result
// file; one without it is queued, so a batch that was killed continues where it stopped. The gradebook takes
// the results in.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/roster.h"
#include "harness/workflows/grade_submission.h"
#include "harness/workflows/slurm.h"
#include "rubric/rubric.h"

namespace capstone::workflows {

struct GradeRequest {
  std::string folder;             ///< of submissions, or a bulk archive of a learning platform
  std::string out = "graded";     ///< the cohort's folder
  std::string repos;              ///< a roster with a column `repository`; then `folder` is not used
  std::string roster, rubric;     ///< files; empty: roster.csv next to the submissions, the course's rubric
  std::string deadline;           ///< "2026-11-20T23:59+01:00"; empty: none
  std::vector<std::string> only;  ///< these submissions; empty: all
  int parallel = 1;
  bool force = false;  ///< also unchanged submissions
  bool allow_unisolated = false;
  enum class Executor {
    kLocal,
    kSlurm,
    kCollect
  } executor = Executor::kLocal;  ///< kCollect: fetch what Slurm has done
  SlurmOptions slurm;
  JudgeOptions judge;
};

/// One submission of the batch.
struct GradeItem {
  Submission submission;
  std::optional<SubmissionResult> result;  ///< of this or an earlier run; absent: queued
  std::string because;                     ///< why it is graded now; empty: unchanged
  bool chosen = true;                      ///< false: left out by GradeRequest::only, or dropped
  std::string dropped;                     ///< "an old copy, by Grace"; empty: it counts
  std::string cleared;   ///< who cleared what a person had to look at, and why; empty: not cleared
  std::string lateness;  ///< "1.3 d late"; empty: in time, or not known
  /// graded, or needs_mentor and cleared
  bool settled() const;
};

/// What happens during a batch. Every member may be empty.
struct GradeEvents {
  ProgressSink progress;
  std::function<void(std::size_t number, std::size_t all, const GradeItem&)> started;
  std::function<void(std::size_t ended, std::size_t all, const GradeItem&, double seconds)> finished;
  struct Running {
    std::string name;
    GradingState state;
  };
  /// Several times a second. @param seconds  since the batch began
  std::function<void(std::size_t ended, std::size_t all, double seconds, const std::vector<Running>&)>
      running;
};

struct GradeOutcome {
  std::vector<GradeItem> items;
  std::vector<std::string> ignored;   ///< files that are not submissions
  std::vector<std::string> problems;  ///< repositories that could not be taken
  bool has_roster = false;
  std::vector<RosterRow> roster;
  RosterMatch match;
  std::map<std::string, std::string> judges;  ///< the machines that the class trusts: names by public key
  std::filesystem::path csv;                  ///< grades.csv
  std::vector<std::string> gone;              ///< in the gradebook, but no longer among the submissions
  bool complete() const;                      ///< every submission that counts is settled
  /// How long the submissions that wait would take [s], by the time that earlier ones took; 0: not known.
  double estimate() const;
};

/// What grade_cohort() would do: items with `because`. Writes nothing.
Result<GradeOutcome> plan_grading(const GradeRequest& request, const Workspace& workspace);

/// @error no isolation here (unless allowed); another batch works on the cohort; an unknown name in `only`; a
/// damaged
///        roster or rubric; interrupted. What is wrong with a submission is its result.
Result<GradeOutcome> grade_cohort(const GradeRequest& request, const Workspace& workspace,
                                  const GradeEvents& events);

/// Records that a person has looked at what made submissions `needs_mentor`: they count as graded until
/// something else is found, or a new version is handed in.
/// @error no such cohort or submission; nothing to clear; no reason; no grader.
Result<void> clear_submissions(const Workspace& workspace, const std::string& cohort,
                               const std::vector<std::string>& names, const std::string& reason,
                               const std::string& grader);

/// grades.csv: a line for each submission.
std::string grades_csv(const std::vector<GradeItem>& items, const Rubric& rubric);

}  // namespace capstone::workflows
