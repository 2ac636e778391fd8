#pragma once
// What a class sees of who handed in what.
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// A name for each submission that has a summary, by submission.
/// @param names  people's names instead of pseudonyms. A pseudonym is derived from the submission's digest and
///               does not reveal the person.
std::map<std::string, std::string> shown_names(const std::vector<GradebookRow>& rows,
                                               const std::map<std::string, ResultSummary>& summaries,
                                               bool names);

}  // namespace capstone
