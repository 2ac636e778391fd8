#pragma once
// A check-in: what a student sends to a mentor during the course. It says how far the ledger is and where
// they are stuck.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/project/project.h"

namespace capstone {

inline constexpr int kCheckInSchema = 1;

/// A check-in is one file of a few hundred bytes. Its digest detects accidental changes. The head of the
/// ledger proves that the ledger handed in at the end continues the same history.
struct CheckIn {
  std::vector<Person> members;
  std::string problem, time;       ///< UTC, when it was made
  std::string head;                ///< SHA-256 of the ledger's last line
  int records = 0;                 ///< in the ledger
  std::string predicted;           ///< predicted bottleneck; empty: no prediction yet
  int versions = 0, attempts = 0;  ///< measured versions of the student's kernel; attempts of the model
  std::string last_version, last_verdict, last_time;  ///< of the student's last measurement: "v3", "WRONG",
                                                      ///< UTC; empty: none
  int failures = 0;                                   ///< measurements since a version last passed
  std::string failing_since;  ///< UTC, of the first of those; empty: the last one passed, or nothing
                              ///< was measured
  std::string stuck;          ///< in the student's words; may be empty
};

/// Appends a `checkin` record (what the student is stuck on is part of the history) and returns the state of
/// the project after it.
/// @param machine  id of this machine's chain
Result<CheckIn> check_in(const Project& project, const std::string& stuck, const std::string& machine);

/// "checkin-1815-softmax.json": the check-ins of a class can be stored in one folder.
std::string file_name_of(const CheckIn& checkin);

std::string checkin_text(const CheckIn& checkin);
/// @error not a check-in; changed since it was written; of a newer schema. Each error names `file`.
Result<CheckIn> parse_checkin(const std::string& text, const std::string& file);

}  // namespace capstone
