#pragma once
// The one result file of a submission. rubric/result.schema.json describes it; a test holds the two together.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/claims.h"
#include "harness/course/submissions.h"
#include "harness/project/project.h"

namespace capstone {

inline constexpr int kResultSchema = 2;

/// Where a submission stands. The first four are a running batch's; only the last three are written down: what has no result
/// is queued, whatever happened to the machine.
enum class GradingState { kQueued, kBuilding, kChecking, kMeasuring, kGraded, kFailed, kNeedsMentor };
std::string_view name_of(GradingState state);   ///< "queued" … "needs_mentor"

/// Why a submission has no result, or a result that a person must look at.
enum class GradingFault {
  kNone,
  kMachine,          ///< ours: never a student's zero; tried again by the next run
  kDamaged,          ///< the archive cannot be read
  kRefused,          ///< unsafe: links, climbing paths, over the limits
  kNotAProject,      ///< no capstone.yaml, or one that cannot be read
  kUnknownProblem,   ///< the mentor has no problem of that id
  kNothingToJudge,   ///< neither a kernel nor an attempt of a model
  kAmbiguous,        ///< several archives in one place
  kLedger,           ///< the ledger's chain is broken, or a source is not what was recorded
  kContradicted,     ///< a claim does not stand, beyond the rubric's allowance
  kNotJudgeable,     ///< not on this backend
};
std::string_view name_of(GradingFault fault);   ///< "machine", "damaged", "refused", "not_a_project", …
/// Whether a fault leaves a judged submission that waits for a person (needs_mentor), or none at all (failed).
GradingState state_of(GradingFault fault);

/// What a result is a function of. The same inputs: nothing to do again.
struct GradingInputs {
  std::string files;            ///< SHA-256 of what was handed in
  std::string problem;          ///< SHA-256 of the mentor's definition; empty where none is known
  std::string rubric, tool, device, driver;
  std::string options;          ///< of the judge, as one text
  bool operator==(const GradingInputs&) const = default;
};

struct SuggestedMark {
  std::string criterion;
  double weight = 0, points = 0;
  std::string because;
};

struct SubmissionResult {
  std::string name, path;       ///< path: as the mentor knows it
  Origin origin;
  GradingState state = GradingState::kQueued;
  GradingFault fault = GradingFault::kNone;
  std::string why, hint;        ///< empty when graded
  std::vector<Person> members;
  std::string problem;
  GradingInputs inputs;
  std::vector<Measurement> judged;
  std::vector<Claim> claims;
  std::optional<Prediction> prediction;   ///< the first of its ledger
  std::vector<std::string> left_out;   ///< versions that failed or were slower, and that the worklog does not name
  std::vector<std::string> notes;
  std::vector<SuggestedMark> suggested;
  std::string started, finished;       ///< UTC
  const Measurement* of(const std::string& candidate) const;   ///< null: not judged
  double suggested_total() const;
};

/// Written whole or not at all.
Result<void> write_result(const SubmissionResult& result, const std::filesystem::path& file);
/// @error not readable, not JSON, a schema newer than ours; each names the file.
Result<SubmissionResult> read_result(const std::filesystem::path& file);

void to_json(Json&, const SubmissionResult&);
void from_json(const Json&, SubmissionResult&);

}  // namespace capstone
