#pragma once
// A submission without its author: what a second mentor reads.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/course/gradebook/sheets.h"

namespace capstone {

/// Takes people out of texts: names, parts of names, ids and e-mail addresses, each as a whole word.
class NameMask {
 public:
  /// @param also  other words that tell who it is: the submission's name, the platform's
  NameMask(const std::vector<Person>& people, const std::vector<std::string>& also);
  std::string apply(std::string_view text) const;

 private:
  std::vector<std::string> words_;   ///< longest first
};

/// Writes `folder`: worklog.md, the kernel with its headers, the model's attempts, and marks.yaml to fill in, which shows the machine's evidence
/// without suggestions and nobody's marks.
/// @param project   as it was judged; empty: it could not be unpacked
/// @param evidence  score_sheet.json for mentors
Result<void> write_blind_copy(const std::filesystem::path& folder, const std::string& code, const std::filesystem::path& project, const GradebookRow& row,
                              const Rubric& rubric, Json evidence, const Comments& comments, const NameMask& mask);

}  // namespace capstone
