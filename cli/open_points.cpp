#include "cli/open_points.h"

#include <fmt/format.h>

#include <ctime>
#include <map>

#include "harness/base/text.h"

namespace capstone::cli {

std::string open_points_line(const std::vector<Finding>& findings) {
  std::map<int, int> in_section;
  const Finding* first = nullptr;
  int count = 0;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kAdvice) continue;
    ++count;
    ++in_section[finding.section];
    if (!first || (first->severity == Severity::kMissing && finding.severity == Severity::kContradiction))
      first = &finding;
  }
  if (!first) return "nothing that is graded is missing";
  std::vector<std::string> sections;
  for (const auto& [section, number] : in_section)
    sections.push_back(section ? fmt::format("section {}: {}", section, number)
                               : fmt::format("the project: {}", number));
  return fmt::format("{} to fix ({}); first: {}{}", count, join(sections, ", "), first->what,
                     first->where.empty() ? "" : " (" + first->where + ")");
}

std::string clock_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%H:%M:%S", &local)};
}

}  // namespace capstone::cli
