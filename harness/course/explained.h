#pragma once
// What grading found out about a kernel, in words that fit on a sheet.
#include <string>
#include <vector>

#include "harness/model/record.h"
#include "rubric/rubric.h"

namespace capstone {

/// Why gate one did not pass: the compiler's first error; or the first case that failed, with its sizes, seed
/// and schedule, and the first wrong element. One fact a line; empty when it passed.
std::vector<std::string> failure_lines(const Measurement& measurement);

/// The verdict of a kernel that grading judged, and its failure_lines().
JudgedKernel explained(const Measurement& measurement);

/// How a student sees a failure of their graded kernel again.
inline constexpr const char* kReplayHint =
    "To see the failure again, in the project: capstone replay verdict.json (the file is in feedback/).";

}  // namespace capstone
