#pragma once
// The course on the terminal: its road, and the sheet of one session.
#include <string>

#include "cli/terminal.h"
#include "harness/analysis/plan/sheet.h"

namespace capstone::cli {

/// The road with all titles, the question and the loop. `here`: a session's id, or empty.
std::string syllabus_text(const Course& course, const std::string& here, const Terminal& terminal);
/// The road without the course's question and loop below it.
std::string road_text(const Course& course, const std::string& here, const Terminal& terminal);
/// The road week by week, with what is behind us and what is ahead.
std::string weeks_text(const Course& course, const std::string& here, const Terminal& terminal);
/// The road on one line: "L1 L2 [L3] L4 …  we are HERE: memory".
std::string syllabus_line(const Course& course, const std::string& here, const Terminal& terminal);
/// All that a mentor needs for one session.
std::string sheet_text(const Course& course, const SessionSheet& sheet, const Terminal& terminal);

}  // namespace capstone::cli
