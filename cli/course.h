#pragma once
// The course's syllabus: eight lectures, six workshops.
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace capstone::cli {

struct CourseSession {
  const char* id;  ///< "L4"
  const char* title;
  const char* half;  ///< the heading of its half of the course
};
const std::vector<CourseSession>& course();

/// The syllabus with all titles. `here`: a session's id, or empty.
std::string syllabus_text(const std::string& here, const Terminal& terminal);
/// The syllabus on one line: "L1 L2 [L3] L4 …  we are HERE: memory".
std::string syllabus_line(const std::string& here, const Terminal& terminal);

}  // namespace capstone::cli
