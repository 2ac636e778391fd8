#pragma once
// Which problem for whom: one student's choice, and a cohort spread over the catalogue.
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/course/roster.h"
#include "harness/model/problem.h"

namespace capstone {

/// What a student says about themselves.
struct Wish {
  std::string level;     ///< one of student_levels(); empty: "usual"
  std::string interest;  ///< words, for example "attention" or "memory, fp8"; empty: anything
};

/// How far a student is. A level fixes the tier: a single operator fights a tuned library, a chain of
/// operators leaves room for fusion, a whole block is work for a team.
struct StudentLevel {
  const char* name;  ///< "new", "usual", "strong", "team"
  int tier;
  const char* text;
};
const std::vector<StudentLevel>& student_levels();

struct Recommendation {
  const Problem* problem = nullptr;  ///< in the catalogue that was passed
  std::string because;               ///< "tier 2: …; attention: title"
  int matches = 0;                   ///< how many words of the interest it meets
};

/// The graded problems of the level's tier. Those that meet most words of the interest come first, then, for
/// "new", those that are bound by memory and run on any GPU, then by id.
/// @error an unknown level; an interest that no graded problem of the tier meets.
Result<std::vector<Recommendation>> recommend(const std::vector<Problem>& catalogue, const Wish& wish);

struct Assigned {
  RosterRow student;
  Recommendation choice;
};

/// One problem for each row, in the roster's order: among those that meet the row's wish best, the one that
/// fewest others have. The same roster gives the same result.
/// @param otherwise  for rows without a level or an interest
/// @error a row with an unknown level, or with an interest that no problem meets: names the line.
Result<std::vector<Assigned>> assign_problems(const std::vector<Problem>& catalogue,
                                              const std::vector<RosterRow>& roster, const Wish& otherwise);

}  // namespace capstone
