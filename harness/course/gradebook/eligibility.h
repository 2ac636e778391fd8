#pragma once
// Who may have a certificate: it says that a kernel was judged and that the report is honest.
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// Why a person may have no certificate; empty: may have one. In this order: the submission failed, or a
/// person has yet to look at it; the person has another submission that counts; not every criterion is
/// published for this version; fewer points than required; the human kernel did not pass; an all-or-nothing
/// criterion (honesty) is in its lowest level.
/// @param row       with its published marks
/// @param all       every row of the cohort
/// @param at_least  required published points
std::string why_not_eligible(const GradebookRow& row, const std::vector<GradebookRow>& all,
                             const Rubric& rubric, const std::map<std::string, ResultSummary>& summaries,
                             double at_least);

}  // namespace capstone
