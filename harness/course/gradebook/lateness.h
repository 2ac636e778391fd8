#pragma once
// How late a submission is, given its deadline and the days of grace. Mentors see this; no marks are deducted
// here.
#include <string>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// Days from the deadline to the submission [d]; negative when it came before the deadline. Empty when either
/// time is not known.
std::optional<double> days_late(const GradebookRow& row);

/// One phrase for mentors: "1.3 d late, covered by 2 d of grace", "3 d late, 1 d beyond 2 d of grace", "2 d
/// of grace", or "late" when only the platform says so. Empty when it is in time, or when nothing is known.
std::string lateness_text(const GradebookRow& row);

}  // namespace capstone
