#pragma once
// Who needs help now, from what students checked in. Nothing here is a mark.
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
  std::optional<CheckIn> last;          ///< absent: never checked in
  int checkins = 0;
  std::vector<std::string> needs;       ///< why a mentor should look; empty: on their way
  std::string handed_in;                ///< the submission; empty: none yet
};

/// A project that was handed in, with the digests of its ledger's lines.
struct HandedIn {
  std::string submission;
  std::vector<Person> members;
  std::set<std::string> lines;
};

/// A row for each member of each project that checked in, and for everybody of the roster who never did; those who need help most come first.
/// @param now  from which "days ago" count
std::vector<ProgressRow> progress_of(std::vector<CheckIn> checkins, const std::vector<RosterRow>& roster, const std::vector<HandedIn>& handed_in, Instant now);

std::string progress_csv(const std::vector<ProgressRow>& rows);
Json progress_json(const std::vector<ProgressRow>& rows);

}  // namespace capstone
