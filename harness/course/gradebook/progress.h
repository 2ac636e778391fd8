#pragma once
// Shows who needs help now, from the students' check-ins. Nothing here is a mark.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/course/roster.h"
#include "harness/project/checkin.h"

namespace capstone {

/// One person's project.
struct ProgressRow {
  std::string person, id, problem;
  std::optional<CheckIn> last;  ///< the last check-in; empty: never checked in
  int checkins = 0;
  std::vector<std::string> needs;  ///< reasons why a mentor should look; empty: no help needed
  std::string handed_in;           ///< name of the submission; empty: not submitted yet
};

/// A submitted project, with the digests of its ledger's lines.
struct HandedIn {
  std::string submission;
  std::vector<Person> members;
  std::set<std::string> lines;
};

/// One row for each member of each project that checked in, and for each person of the roster who never did.
/// The rows with the most needs come first.
/// @param now  the time from which days without a check-in are counted
std::vector<ProgressRow> progress_of(std::vector<CheckIn> checkins, const std::vector<RosterRow>& roster,
                                     const std::vector<HandedIn>& handed_in, Instant now);

std::string progress_csv(const std::vector<ProgressRow>& rows);
Json progress_json(const std::vector<ProgressRow>& rows);

}  // namespace capstone
