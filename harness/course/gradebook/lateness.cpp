#include "harness/course/gradebook/lateness.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/base/instant.h"

namespace capstone {
namespace {

// Rounds to 0.1 d, but never rounds a late submission to 0.
std::string days(double value) {
  return value < 0.1 ? "less than 0.1 d" : fmt::format("{:g} d", std::round(value * 10) / 10);
}

}  // namespace

std::optional<double> days_late(const GradebookRow& row) {
  auto submitted = parse_instant(row.submitted), deadline = parse_instant(row.deadline);
  if (!submitted || !deadline) return std::nullopt;
  return static_cast<double>(*submitted - *deadline) / kSecondsOfADay;
}

std::string lateness_text(const GradebookRow& row) {
  const std::string grace = row.grace_days > 0 ? fmt::format("{:g} d of grace", row.grace_days) : "";
  const auto late = days_late(row);
  if (!late || *late <= 0) {
    // The platform may use a different deadline.
    const std::string flag = row.late ? (late ? "late, according to the platform" : "late") : "";
    return flag.empty() || grace.empty() ? flag + grace : flag + ", " + grace;
  }
  const std::string text = days(*late) + " late";
  if (grace.empty()) return text;
  return *late <= row.grace_days ? text + ", covered by " + grace
                                 : text + ", " + days(*late - row.grace_days) + " beyond " + grace;
}

}  // namespace capstone
