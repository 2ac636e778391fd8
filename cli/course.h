#pragma once
// The course's road: eight lectures, six workshops.
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace capstone::cli {

struct CourseSession {
  const char* id;     ///< "L4"
  const char* title;
  const char* half;   ///< the sentence that its half of the course stands under
};
const std::vector<CourseSession>& course();

/// The road with all titles. `here`: a session's id, or empty.
std::string course_map(const std::string& here, const Terminal& terminal);
/// The road on one line: "L1 L2 [L3] L4 …  we are HERE: memory".
std::string course_line(const std::string& here, const Terminal& terminal);

}  // namespace capstone::cli
