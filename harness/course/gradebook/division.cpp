#include "harness/course/gradebook/division.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/csv.h"
#include "harness/base/digest.h"

namespace capstone {

Result<std::vector<Assignment>> divide_by_share(std::vector<std::string> submissions,
                                                const std::vector<GraderShare>& graders,
                                                const std::string& seed) {
  if (graders.empty())
    return fail("no grader is named", {}, "add --share NAME, or --share NAME=2 for a double share");
  for (const GraderShare& each : graders)
    if (!(each.share > 0))
      return fail(fmt::format("the share {:g} of {} is not above 0", each.share, each.grader), {},
                  "give a positive share, or leave the grader out");
  std::sort(submissions.begin(), submissions.end(), [&](const std::string& a, const std::string& b) {
    auto order = [&](const std::string& name) {
      return DigestBuilder().add("seed", seed).add("name", name).hex();
    };
    return order(a) < order(b);
  });
  std::vector<double> had(graders.size());
  std::vector<Assignment> assignments;
  for (const std::string& submission : submissions) {
    std::size_t least = 0;
    for (std::size_t i = 1; i < graders.size(); ++i)
      if ((had[i] + 1) / graders[i].share < (had[least] + 1) / graders[least].share) least = i;
    ++had[least];
    assignments.push_back({submission, graders[least].grader});
  }
  return assignments;
}

Result<std::vector<Assignment>> divide_by_section(
    const std::map<std::string, std::string>& sections,
    const std::map<std::string, std::vector<GraderShare>>& graders, const std::string& seed) {
  std::map<std::string, std::vector<std::string>> members;
  for (const auto& [submission, section] : sections) members[section].push_back(submission);
  std::vector<Assignment> all;
  for (const auto& [section, submissions] : members) {
    auto who = graders.find(section);
    if (who == graders.end())
      return fail("no grader for section '" + section + "'", {}, "add --section " + section + "=GRADER");
    CAPSTONE_TRY(auto some, divide_by_share(submissions, who->second, seed));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

Result<std::map<std::string, std::string>> sections_in(const std::string& roster, const std::string& file,
                                                       const std::vector<GradebookRow>& rows) {
  CAPSTONE_TRY(CsvTable table, CsvTable::read(roster, file, {"section"}));
  std::map<std::string, std::string> sections;
  for (const GradebookRow& row : rows) {
    std::string section;
    for (std::size_t i = 0; i < table.rows() && section.empty(); ++i)
      if ((!row.person.id.empty() && table.at(i, "id") == row.person.id) ||
          (!row.person.email.empty() && table.at(i, "email") == row.person.email) ||
          (!row.person.name.empty() && table.at(i, "name") == row.person.name))
        section = table.at(i, "section");
    if (section.empty())
      return fail(fmt::format("{} ({}) has no section", row.person.name, row.submission), file,
                  "add the person with a section to the roster");
    auto [known, added] = sections.emplace(row.submission, section);
    if (!added && known->second != section)
      return fail(
          fmt::format("{} has members in the sections {} and {}", row.submission, known->second, section),
          file, "give the members of a team the same section");
  }
  return sections;
}

}  // namespace capstone
