#pragma once
// The people of the course, and which submission belongs to whom.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/instant.h"
#include "harness/course/submissions.h"
#include "harness/project/project.h"

namespace capstone {

struct RosterRow {
  std::string name, id, email;
  int line = 0;  ///< line number in the file
  /// Of this person; empty when the file has no such time.
  std::optional<Instant> submitted = {}, deadline = {};
  std::string repository = {};            ///< for `grade --repos`
  std::string level = {}, interest = {};  ///< for `problems --assign`, as in Wish
};

/// Reads a CSV file with a heading line. The column `name` is required; `id`, `email`, `submitted`,
/// `deadline` (times with their zone), `repository`, `level` and `interest` are optional. Also knows the
/// column names that Canvas, Moodle and Gradescope export. Ignores other columns.
/// @error not readable; no name column; a row without a name; the same id in two rows (names both lines); a
///        time that cannot be read.
Result<std::vector<RosterRow>> read_roster(const std::filesystem::path& file);

/// The people behind a submission.
struct Claimant {
  std::string submission;
  std::vector<Person> members;  ///< from its capstone.yaml; empty when that file could not be read
  Origin origin;
};

struct RosterMatch {
  std::vector<std::vector<std::string>> submissions;  ///< [roster row] names of that person's submissions
  std::vector<std::string> strangers;                 ///< submissions that match no row of the roster
};

/// Matches a person by id, then by e-mail, then by name. Case, order and punctuation of a name's parts do not
/// matter, because Canvas joins the parts. A name that two rows share never matches. A team's submission
/// belongs to every member.
RosterMatch match_roster(const std::vector<RosterRow>& roster, const std::vector<Claimant>& claimants);

}  // namespace capstone
