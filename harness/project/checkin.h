#pragma once
// What a student hands to a mentor on the way: how far the ledger is, and where they are stuck.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/project/project.h"

namespace capstone {

inline constexpr int kCheckInSchema = 1;

/// One file, a few hundred bytes. Its digest shows accidents; that the ledger's head stands in the ledger that is handed in at the end shows that it is the same one.
struct CheckIn {
  std::vector<Person> members;
  std::string problem, time;         ///< time: UTC, when it was made
  std::string head;                  ///< SHA-256 of the ledger's last line
  int records = 0;                   ///< of the ledger
  std::string predicted;             ///< bottleneck; empty: no prediction yet
  int versions = 0, attempts = 0;    ///< of the student's kernel that were measured; of the model
  std::string last_version, last_verdict, last_time;   ///< of the student's last measurement: "v3", "WRONG", UTC; empty: none
  int failures = 0;                  ///< measurements since a version last passed
  std::string failing_since;         ///< UTC, of the first of those; empty: the last one passed, or nothing was measured
  std::string stuck;                 ///< in the student's words; may be empty
};

/// Appends a `checkin` record (what is stuck belongs to the history) and tells where the project stands after it.
/// @param machine  id of this machine's chain
Result<CheckIn> check_in(const Project& project, const std::string& stuck, const std::string& machine);

/// "checkin-1815-softmax.json": a class's files lie side by side.
std::string file_name_of(const CheckIn& checkin);

std::string checkin_text(const CheckIn& checkin);
/// @error not a check-in; changed since it was written; of a newer schema: each names `file`.
Result<CheckIn> parse_checkin(const std::string& text, const std::string& file);

}  // namespace capstone
