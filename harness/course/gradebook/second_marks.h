#pragma once
// Second marks in the database. Private to the gradebook.
#include <vector>

#include "harness/base/database.h"
#include "harness/course/gradebook/agreement.h"
#include "harness/course/gradebook/gradebook.h"

namespace capstone::detail {

/// SQL condition: `s`, a row of `submission`, can be marked a second time.
inline constexpr const char* kCanBeMarkedTwice =
    "s.state NOT IN ('failed', 'missing', 'found') AND coalesce((SELECT r.kind FROM ruling r WHERE "
    "r.submission = s.name AND r.kind IN ('dropped', 'restored') ORDER BY r.id DESC LIMIT 1), '') <> "
    "'dropped'";
/// SQL expression: who marks `s` first; NULL: assigned to none.
inline constexpr const char* kFirstGrader =
    "(SELECT a.grader FROM assignment a WHERE a.submission = s.name ORDER BY a.id DESC LIMIT 1)";

/// What happens to a mark that the same grader has given before, with other points or another reason.
enum class Given {
  kReplaced,  ///< the new one counts
  kStays,     ///< the new one stands in the history and does not count
};
/// Adds second marks within the caller's transaction. A mark that is already stored is not added again.
/// @error unknown criterion; points out of range; no reason.
Result<MergedMarks> add_second_marks(const Database& database, const Rubric& rubric,
                                     const std::vector<Mark>& marks, Given given);

}  // namespace capstone::detail
