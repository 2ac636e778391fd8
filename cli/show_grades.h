#pragma once
// A graded cohort as a mentor reads it in a terminal.
#include <string>

#include "cli/terminal.h"
#include "harness/workflows/grade_cohort.h"
#include "harness/workflows/second_marks.h"

namespace capstone::cli {

/// "graded: human PASS, TIE, model WRONG"; "failed (damaged): …".
std::string grade_line(const workflows::GradeItem& item);
void print_grading_plan(const workflows::GradeOutcome& outcome, const Terminal& terminal);
void print_grades(const workflows::GradeOutcome& outcome, const Terminal& terminal);
void print_agreement(const workflows::SecondMarks& marks, const Terminal& terminal);
/// [s] as "40 s", "12 min" or "2.5 h".
std::string duration_text(double seconds);

}  // namespace capstone::cli
