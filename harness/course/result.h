#pragma once
// The result file of a submission. rubric/result.schema.json describes it; a test checks that the two agree.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/claims.h"
#include "harness/course/submissions.h"
#include "harness/project/project.h"

namespace capstone {

inline constexpr int kResultSchema = 2;

/// The state of a submission. The first four occur in a running batch; only the last three are written to the
/// file. A submission without a result file is queued, whatever happened to the machine.
enum class GradingState { kQueued, kBuilding, kChecking, kMeasuring, kGraded, kFailed, kNeedsMentor };
std::string_view name_of(GradingState state);  ///< "queued" … "needs_mentor"

/// Why a submission has no result, or why a person must look at its result.
enum class GradingFault {
  kNone,
  kMachine,         ///< a fault of the grading machine, not of the student; the next run tries again
  kDamaged,         ///< the archive cannot be read
  kRefused,         ///< unsafe: links, paths that leave the archive, sizes over the limits
  kNotAProject,     ///< no capstone.yaml, or one that cannot be read
  kUnknownProblem,  ///< the mentor has no problem with that id
  kNothingToJudge,  ///< neither a kernel nor a model's attempt
  kAmbiguous,       ///< several archives in one place
  kLedger,          ///< the ledger's chain is broken, or a source differs from what was recorded
  kContradicted,    ///< a new measurement contradicts a claim by more than the tolerance of compare_claim()
  kNotJudgeable,    ///< this backend cannot judge it
  kUnsupported,     ///< a record does not follow from its own samples, counts or files; see recompute.h
};
std::string_view name_of(GradingFault fault);  ///< "machine", "damaged", "refused", "not_a_project", …
/// The state that a fault leads to: needs_mentor when there is a submission that a person must look at, else
/// failed.
GradingState state_of(GradingFault fault);

/// Everything that determines a result. When these are unchanged, the submission is not graded again.
struct GradingInputs {
  std::string files;  ///< SHA-256 of the submitted files
  /// SHA-256 of the mentor's definition of the problem; empty when it is unknown.
  std::string problem;
  std::string rubric, tool, device, driver;
  std::string options;  ///< the judge's options as one text
  bool operator==(const GradingInputs&) const = default;
};

struct SuggestedMark {
  std::string criterion;
  double weight = 0, points = 0;
  std::string because;
};

struct SubmissionResult {
  std::string name, path;  ///< path: relative to the folder that the mentor named
  Origin origin;
  GradingState state = GradingState::kQueued;
  GradingFault fault = GradingFault::kNone;
  std::string why, hint;  ///< empty when graded
  std::vector<Person> members;
  std::string problem;
  GradingInputs inputs;
  std::vector<Measurement> judged;
  std::vector<Claim> claims;
  std::optional<Prediction> prediction;  ///< the first one in its ledger
  /// Versions that failed or were slower, and that the worklog does not name
  std::vector<std::string> left_out;
  std::vector<std::string> notes;
  std::vector<Voucher> vouchers;  ///< who vouches for the measurements in its ledger
  /// What does not follow from the submission's own samples, counts and files, and what only the cohort shows
  std::vector<std::string> findings, cohort_findings;
  /// SHA-256 of each line of its ledger, and of each measurement without its place in a chain: cohorts are
  /// compared by them
  std::vector<std::string> lines, measurements;
  std::vector<SuggestedMark> suggested;
  std::string started, finished;                              ///< UTC, ISO 8601
  const Measurement* of(const std::string& candidate) const;  ///< null when the candidate was not judged
  double suggested_total() const;
  std::vector<std::string> all_findings() const;  ///< of the submission, then of the cohort
};

/// Writes the file atomically: completely, or not at all.
Result<void> write_result(const SubmissionResult& result, const std::filesystem::path& file);
/// @error not readable; not JSON; a schema newer than kResultSchema. Each error names the file.
Result<SubmissionResult> read_result(const std::filesystem::path& file);

void to_json(Json&, const SubmissionResult&);
void from_json(const Json&, SubmissionResult&);

}  // namespace capstone
