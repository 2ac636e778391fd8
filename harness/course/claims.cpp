#include "harness/course/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr double kLeastTolerance = 0.05, kMostTolerance = 0.25, kStandardErrors = 3, kNormal95 = 1.96;
constexpr double kOtherSoftware = 0.5;  // what another driver or compiler may change, relative
constexpr std::array<std::string_view, 5> kNames{"agrees", "gate one differs", "contradicts",
                                                 "not comparable", "never measured"};

bool is_verdict(GateOne gate) { return gate != GateOne::kNotJudgeable && gate != GateOne::kMachineFault; }

// A speedup of a GPU is shown to readers whatever the verdict says, and so it is claimed.
const Interval* speedup(const Measurement& m) {
  const bool claimed = m.gate_two != GateTwo::kNotJudged || m.backend == Backend::kCuda;
  return claimed && m.measured && m.measured->speedup ? &*m.measured->speedup : nullptr;
}

bool is_interval(const Interval& s) {
  return std::isfinite(s.high) && s.low > 0 && s.low <= s.point && s.point <= s.high;
}

// The relative standard error, from a 95 % interval.
double standard_error(const Interval& interval) {
  return interval.point > 0 ? (interval.high - interval.low) / (2 * kNormal95 * interval.point) : 0;
}

struct Same {
  const char* what;
  std::string then, now;
};

// The first difference, as text; empty if there is none.
std::string difference(std::initializer_list<Same> conditions) {
  for (const Same& same : conditions)
    if (same.then != same.now)
      return fmt::format("different {}: {} in the ledger, {} now", same.what,
                         same.then.empty() ? "none" : same.then, same.now.empty() ? "none" : same.now);
  return {};
}

// Why two timings cannot be compared; empty when they can.
std::string other_conditions(const Measurement& claim, const Measurement& fresh) {
  auto baseline = [](const Measurement& m) {
    return m.measured->arms.empty() ? std::string()
                                    : m.measured->arms[0].name + " (" + m.measured->arms[0].label + ")";
  };
  return difference({{"GPU", text_at(claim.environment, "device"), text_at(fresh.environment, "device")},
                     {"baseline", baseline(claim), baseline(fresh)},
                     {"problem", claim.problem_digest.substr(0, 12), fresh.problem_digest.substr(0, 12)}});
}

// What may change a time somewhat.
std::string other_software(const Measurement& claim, const Measurement& fresh) {
  return difference({{"driver", text_at(claim.environment, "driver"), text_at(fresh.environment, "driver")},
                     {"nvcc", text_at(claim.environment, "nvcc"), text_at(fresh.environment, "nvcc")},
                     {"tool", text_at(claim.environment, "tool"), text_at(fresh.environment, "tool")}});
}

// The claimed speedup against the new one.
Claim compare_speedups(const Measurement& claimed, const Measurement& fresh) {
  auto claim = [&](Agreement agreement, std::string text) {
    return Claim{fresh.candidate, agreement, std::move(text)};
  };
  const Interval &then = *speedup(claimed), &now = *speedup(fresh);
  if (!is_interval(then))
    return claim(Agreement::kContradicts, fmt::format("the claimed speedup is malformed: {}; {} measured now",
                                                      text_of(then), format_speedup(now.point)));
  const std::string numbers =
      fmt::format("{} claimed, {} measured now", format_speedup(then.point), format_speedup(now.point));
  if (std::string why = other_conditions(claimed, fresh); !why.empty())
    return claim(Agreement::kNotComparable, why + "; " + numbers);
  if (claimed.gate_two == GateTwo::kUnresolved && standard_error(then) * kNormal95 > kMostTolerance)
    return claim(Agreement::kNotComparable,
                 fmt::format("{} is too wide to be a claim; {}", text_of(then), numbers));
  const double error = std::hypot(standard_error(then), standard_error(now)),
               off = std::abs(then.point - now.point) / now.point;
  const std::string software = other_software(claimed, fresh);
  const double allowed = software.empty()
                             ? std::clamp(kStandardErrors * error, kLeastTolerance, kMostTolerance)
                             : kOtherSoftware;
  std::string text = fmt::format("{}: {:.1f} % apart, {:.1f} % allowed", numbers, 100 * off, 100 * allowed);
  if (!(off <= allowed))
    return claim(Agreement::kContradicts, software.empty() ? text : text + "; " + software);
  return software.empty() ? claim(Agreement::kAgrees, text)
                          : claim(Agreement::kNotComparable, software + "; " + numbers);
}

}  // namespace

std::string_view name_of(Agreement agreement) { return kNames[static_cast<std::size_t>(agreement)]; }

std::string text_of(const Interval& s) {
  const std::string low = format_speedup(s.low), high = format_speedup(s.high);
  return fmt::format("{} [{}, {}]", format_speedup(s.point), low.substr(0, low.size() - 1),
                     high.substr(0, high.size() - 1));
}

Claim compare_claim(const LedgerView& ledger, const Measurement& fresh) {
  const Measurement* gate_one = nullptr;
  const Measurement* timed = nullptr;
  for (const Measurement& m : ledger.of(fresh.candidate)) {
    if (m.source_sha256 != fresh.source_sha256) continue;
    if (is_verdict(m.gate_one)) gate_one = &m;
    if (speedup(m)) timed = &m;
  }
  auto claim = [&](Agreement agreement, std::string text) {
    return Claim{fresh.candidate, agreement, std::move(text)};
  };
  if (!gate_one) return claim(Agreement::kNeverMeasured, "the ledger has no verdict on the submitted source");
  if (!is_verdict(fresh.gate_one))
    return claim(Agreement::kNotComparable, fmt::format("judged again: {}", label_of(fresh.gate_one)));
  if ((gate_one->gate_one == GateOne::kPassed) != (fresh.gate_one == GateOne::kPassed))
    return claim(Agreement::kGateOneDiffers,
                 fmt::format("the ledger says {}; judged again: {}", label_of(gate_one->gate_one),
                             label_of(fresh.gate_one)));
  if (!timed)
    return claim(Agreement::kAgrees, fmt::format("{} in the ledger and now; the ledger claims no speedup",
                                                 label_of(fresh.gate_one)));
  if (!speedup(fresh))
    return claim(
        Agreement::kNotComparable,
        fmt::format("the ledger claims {}, but no speedup was measured here", text_of(*speedup(*timed))));
  return compare_speedups(*timed, fresh);
}

void to_json(Json& json, const Claim& c) {
  json = {{"candidate", c.candidate}, {"agreement", name_of(c.agreement)}, {"text", to_utf8(c.text)}};
}

void from_json(const Json& json, Claim& c) {
  c.candidate = json.value("candidate", "");
  c.text = json.value("text", "");
  auto found = std::find(kNames.begin(), kNames.end(), json.value("agreement", ""));
  c.agreement =
      found == kNames.end() ? Agreement::kNotComparable : static_cast<Agreement>(found - kNames.begin());
}

}  // namespace capstone
