#pragma once
// Who belongs to the course, and which submission is whose.
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
  int line = 0;   ///< of the file
  std::optional<Instant> submitted = {}, deadline = {};   ///< of this person's; absent: the file does not tell
};

/// Reads a CSV with a heading: a column `name`, and `id` and `email` if it has them (the names that Canvas, Moodle and Gradescope
/// export are known, too), `submitted` and `deadline` with their zone; other columns are ignored.
/// @error not readable; no name column; a row without a name; an id that stands there twice (names both lines); a time
/// that is none.
Result<std::vector<RosterRow>> read_roster(const std::filesystem::path& file);

/// A submission as far as people go.
struct Claimant {
  std::string submission;
  std::vector<Person> members;   ///< of its capstone.yaml; empty where that could not be read
  Origin origin;
};

struct RosterMatch {
  std::vector<std::vector<std::string>> submissions;   ///< [roster row] names of that person's submissions
  std::vector<std::string> strangers;                  ///< submissions that match nobody
};

/// A person is matched by id, else by e-mail, else by name (case, order and punctuation of its parts do not
/// matter, as Canvas runs them together); never by a name that two rows share. A team's submission belongs to each member.
RosterMatch match_roster(const std::vector<RosterRow>& roster, const std::vector<Claimant>& claimants);

}  // namespace capstone
