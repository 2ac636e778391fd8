#pragma once
// What is still to fix in a worklog, for commands that follow a file.
#include <string>
#include <vector>

#include "rubric/finding.h"

namespace capstone::cli {

/// One line: how many findings in which sections, and the first; advice does not count. Contradictions come
/// before what is missing: they are more often what was just written. "nothing that is graded is missing"
/// where there are none.
std::string open_points_line(const std::vector<Finding>& findings);

/// The local time of day: "14:03:59".
std::string clock_time();

}  // namespace capstone::cli
