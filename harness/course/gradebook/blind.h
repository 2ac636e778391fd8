#pragma once
// A copy of a submission without its authors' names, for a second mentor.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/course/gradebook/sheets.h"

namespace capstone {

/// Replaces people in texts: names, parts of names, ids and e-mail addresses, each as a whole word.
class NameMask {
 public:
  /// @param also  other words that identify a person: the submission's name, the name on the platform
  NameMask(const std::vector<Person>& people, const std::vector<std::string>& also);
  std::string apply(std::string_view text) const;

 private:
  std::vector<std::string> words_;  ///< longest first
};

/// Writes `folder`: worklog.md with its numbers filled in, ledger.md with what was measured, the kernel with
/// its headers, the model's attempts, and a marks.yaml to fill in. The sheet shows the machine's evidence,
/// but neither suggestions nor marks.
/// @param project   the project as it was judged; empty when it could not be unpacked
/// @param worklog   the rendered worklog.md; where it does not exist, the project's own is copied
/// @param evidence  the mentors' score_sheet.json
Result<void> write_blind_copy(const std::filesystem::path& folder, const std::string& code,
                              const std::filesystem::path& project, const std::filesystem::path& worklog,
                              const GradebookRow& row, const Rubric& rubric, Json evidence,
                              const Comments& comments, const NameMask& mask);

}  // namespace capstone
