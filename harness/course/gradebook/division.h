#pragma once
// Who marks what: submissions are divided among graders in an order that no person chooses.
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/marking.h"

namespace capstone {

struct GraderShare {
  std::string grader;
  double share = 1;  ///< in proportion to the others; above 0
};

/// Divides submissions in a random order, so that each grader has their share of the whole.
/// @param seed  the same seed gives the same division
/// @error no grader; a share that is not above 0.
Result<std::vector<Assignment>> divide_by_share(std::vector<std::string> submissions,
                                                const std::vector<GraderShare>& graders,
                                                const std::string& seed);

/// Each submission goes to the graders of its section, by share within the section.
/// @param sections  section by submission
/// @param graders   the graders of each section
/// @error a submission without a section, or a section without a grader: named.
Result<std::vector<Assignment>> divide_by_section(
    const std::map<std::string, std::string>& sections,
    const std::map<std::string, std::vector<GraderShare>>& graders, const std::string& seed);

/// The section of each submission, from the columns `section` and id, email or name of a roster.
/// @error a person who is not in the roster, or has no section there; members of one team in two sections.
Result<std::map<std::string, std::string>> sections_in(const std::string& roster, const std::string& file,
                                                       const std::vector<GradebookRow>& rows);

}  // namespace capstone
