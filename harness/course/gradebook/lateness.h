#pragma once
// When something was handed in, beside its deadline and the days of grace. Shown to mentors; nothing is ever taken off for it here.
#include <string>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// Days from the deadline to when it was handed in [d]; negative: before it. Absent where either is not known.
std::optional<double> days_late(const GradebookRow& row);

/// "1.3 d late, 2 d of grace cover it", "3 d late, 1 d beyond 2 d of grace", "late" where only the platform says so, "2 d of grace"; empty: in time,
/// or nothing is known.
std::string lateness_text(const GradebookRow& row);

}  // namespace capstone
