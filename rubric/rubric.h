#pragma once
// The rubric: what is graded, by which evidence, and which marks the machine suggests. Speed alone earns no
// marks.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"
#include "rubric/finding.h"
#include "rubric/worklog.h"

namespace capstone {

/// A fact that the machine can verify, and its share of the criterion's suggested mark.
struct Check {
  std::string id;    ///< one of check_ids()
  double share = 0;  ///< relative to the other checks of the criterion
  std::string says;  ///< what it looks for, for the score sheet
  /// When it is not met at all, the suggestion is capped at `cap` of the criterion's weight.
  bool required = false;
  /// When less than half of it is met, the suggestion stays within the criterion's lowest level. Its share
  /// may be 0.
  bool gate = false;
};

/// A description of the marks from `from` to `to`, both included.
struct Level {
  std::string name, text;
  double from = 0, to = 0;
};

struct Criterion {
  std::string id, title, looks_for;
  int weight = 0;  ///< marks
  enum class Rule { kShare, kAllOrNothing } rule = Rule::kShare;
  /// [0, 1] of the weight; applies when a required check is not met at all.
  double cap = 1;
  std::vector<Check> checks;
  std::vector<std::string> questions;  ///< for the mentor
  std::vector<Level> levels;           ///< four, best first, covering 0 … weight
};

struct Rubric {
  int schema = 1;
  std::vector<Criterion> criteria;  ///< weights sum to 100
  /// SHA-256 of the file, so that a mark can name the rubric that it used.
  std::string digest;
};

/// The ids of all machine checks that a rubric can use, sorted.
std::vector<std::string> check_ids();

/// Reads a rubric strictly.
/// @error not readable or not valid YAML; an unknown or repeated key; an unknown check (the hint names the
///        nearest); weights that do not sum to 100; levels that leave a gap. The position is
///        file:line:column.
Result<Rubric> load_rubric(const std::filesystem::path& file);

enum class Standing { kMet, kPartly, kNotMet, kNotApplicable };
std::string_view name_of(Standing standing);  ///< "met", "partly met", "not met", "does not apply"

/// One machine check and its result.
struct Evidence {
  std::string check;  ///< the check's id
  std::string says;   ///< what was looked for
  std::string fact;   ///< what was found
  /// Sequence numbers of the ledger's records that show it; empty: the worklog.
  std::vector<std::int64_t> records;
  Standing standing = Standing::kNotMet;
  double met = 0;  ///< [0, 1]
  double share = 0;
  std::string ask{};  ///< a question that this result raises for the mentor; empty: none
};

struct CriterionScore {
  const Criterion* criterion = nullptr;  ///< points into the rubric, which must outlive the sheet
  std::vector<Evidence> evidence;
  double suggested = 0;  ///< marks, rounded to half a mark; for mentors only
  std::string because;   ///< how the rule led to this mark, with its numbers
};

/// The questions for the mentor: first the criterion's, then those that its evidence raises.
std::vector<std::string> questions_of(const CriterionScore& score);

/// What a mentor's machine found out about a submitted kernel.
struct JudgedKernel {
  std::string candidate;           ///< "human" or "llm"
  std::string verdict;             ///< "PASS, FASTER", "WRONG"
  std::vector<std::string> lines;  ///< why it failed, one fact a line; empty: it passed
};

struct ScoreSheet {
  std::vector<CriterionScore> criteria;
  double suggested = 0;  ///< marks, the sum over the criteria
  std::string rubric_digest;
  std::vector<std::string> facts;     ///< what a reader should know and no mark depends on
  std::vector<std::string> findings;  ///< why a mentor must look before any mark counts; for mentors only
  std::vector<JudgedKernel> judged{};  ///< empty on the student's own sheet
};

/// The outcome when a mentor's machine judged the submitted kernels again.
struct Rejudged {
  /// Empty when there was no kernel, or it could not be judged there.
  std::optional<GateOne> human;
  std::vector<std::string> contradictions;  ///< the ledger's claims that did not hold, one sentence each
};

/// Collects the facts from the ledger and the worklog and applies the rubric. No fact depends on how fast a
/// kernel is: multiplying every speedup by the same factor does not change a mark.
/// @param rejudged  null for the student's own sheet, which uses only the ledger and the worklog
ScoreSheet score(const Rubric& rubric, const Project& project, const LedgerView& ledger,
                 const Worklog& worklog, const Rejudged* rejudged = nullptr);

/// The versions of both candidates that failed gate one or were slower than the best, and that the prose
/// never names. One line each: "v2: WRONG", "v3: 0.80x, the best is 1.50x".
std::vector<std::string> left_out_versions(const LedgerView& ledger, const Worklog& worklog);

}  // namespace capstone
