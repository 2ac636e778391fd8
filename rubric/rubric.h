#pragma once
// The rubric: what is graded, by which evidence, and what the machine suggests. Raw speed earns nothing.
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

/// A fact that the machine can establish, and its share of the criterion's suggested mark.
struct Check {
  std::string id;        ///< one of check_ids()
  double share = 0;      ///< relative to the other checks of the criterion
  std::string says;      ///< what it looks for, in words
  bool required = false; ///< not met at all: the suggestion is capped at `cap` of the criterion's weight
};

/// What a mark means, in words; marks from `from` to `to`, both included.
struct Level { std::string name, text; double from = 0, to = 0; };

struct Criterion {
  std::string id, title, looks_for;
  int weight = 0;                       ///< marks
  enum class Rule { kShare, kAllOrNothing } rule = Rule::kShare;
  double cap = 1;                       ///< [0, 1] of the weight, when a required check is not met at all
  std::vector<Check> checks;
  std::vector<std::string> questions;   ///< for the mentor
  std::vector<Level> levels;            ///< four, best first, covering 0 … weight
};

struct Rubric {
  int schema = 1;
  std::vector<Criterion> criteria;      ///< weights sum to 100
  std::string digest;                   ///< SHA-256 of the file: a mark says which rubric it was given under
};

/// Names of all machine checks that a rubric may use.
std::vector<std::string> check_ids();

/// Reads a rubric strictly. @error unknown or repeated key, unknown check (hint: the nearest), weights that do not sum
/// to 100, levels that leave a gap: each at file:line:column.
Result<Rubric> load_rubric(const std::filesystem::path& file);

enum class Standing { kMet, kPartly, kNotMet, kNotApplicable };
std::string_view name_of(Standing standing);  ///< "met", "partly met", "not met", "does not apply"

/// One machine check with what it found.
struct Evidence {
  std::string check;
  std::string says;                     ///< what was looked for
  std::string fact;                     ///< what was found
  std::vector<std::int64_t> records;    ///< seq of the ledger's records that show it; empty: the worklog shows it
  Standing standing = Standing::kNotMet;
  double met = 0;                       ///< [0, 1]
  double share = 0;
  std::string ask{};                    ///< a question for the mentor that this finding raises; empty: none
};

struct CriterionScore {
  const Criterion* criterion = nullptr; ///< of the rubric, which must outlive the sheet
  std::vector<Evidence> evidence;
  double suggested = 0;                 ///< marks, to the half; for mentors only
  std::string because;                  ///< the rule as applied, with its numbers
};

/// The criterion's questions, then those that its evidence raises.
std::vector<std::string> questions_of(const CriterionScore& score);

struct ScoreSheet {
  std::vector<CriterionScore> criteria;
  double suggested = 0;                 ///< sum
  std::string rubric_digest;
};

/// What a mentor's machine found when it judged the handed-in kernels afresh.
struct Rejudged {
  std::optional<GateOne> human;              ///< absent: there was no kernel, or it could not be judged there
  std::vector<std::string> contradictions;   ///< claims of the ledger that did not stand, in words
};

/// Draws the facts from the ledger and the worklog and applies the rubric. No fact depends on how fast a kernel is:
/// multiplying every speedup leaves the sheet's marks as they are.
/// @param rejudged  null: the student's own sheet, which knows what the ledger says and no more
ScoreSheet score(const Rubric& rubric, const Project& project, const LedgerView& ledger, const Worklog& worklog,
                 const Rejudged* rejudged = nullptr);

/// Versions of either candidate that failed gate one or were slower than the best, and that the prose never names:
/// "v2: WRONG", "v3: 0.80x, the best is 1.50x".
std::vector<std::string> left_out_versions(const LedgerView& ledger, const Worklog& worklog);

}  // namespace capstone
