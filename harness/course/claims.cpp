#include "harness/course/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr double kLeastTolerance = 0.05, kStandardErrors = 3, kNormal95 = 1.96;
constexpr std::array<std::string_view, 5> kNames{"agrees", "gate one differs", "contradicts",
                                                 "not comparable", "never measured"};

bool is_verdict(GateOne gate) { return gate != GateOne::kNotJudgeable && gate != GateOne::kMachineFault; }

const Interval* speedup(const Measurement& m) {
  return m.gate_two != GateTwo::kNotJudged && m.measured && m.measured->speedup ? &*m.measured->speedup
                                                                                : nullptr;
}

// The relative standard error, from a 95 % interval.
double standard_error(const Interval& interval) {
  return interval.point > 0 ? (interval.high - interval.low) / (2 * kNormal95 * interval.point) : 0;
}

std::string fact(const Measurement& m, const char* name) {
  auto found = m.environment.find(name);
  return found != m.environment.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Why two timings cannot be compared; empty when they can.
std::string difference(const Measurement& claim, const Measurement& fresh) {
  struct Same {
    const char* what;
    std::string then, now;
  };
  auto baseline = [](const Measurement& m) {
    return m.measured->arms.empty() ? std::string()
                                    : m.measured->arms[0].name + " (" + m.measured->arms[0].label + ")";
  };
  for (const Same& same :
       {Same{"GPU", fact(claim, "device"), fact(fresh, "device")},
        Same{"baseline", baseline(claim), baseline(fresh)},
        Same{"problem", claim.problem_digest.substr(0, 12), fresh.problem_digest.substr(0, 12)},
        Same{"driver", fact(claim, "driver"), fact(fresh, "driver")},
        Same{"nvcc", fact(claim, "nvcc"), fact(fresh, "nvcc")},
        Same{"tool", fact(claim, "tool"), fact(fresh, "tool")}})
    if (same.then != same.now)
      return fmt::format("different {}: {} in the ledger, {} now", same.what,
                         same.then.empty() ? "none" : same.then, same.now.empty() ? "none" : same.now);
  return {};
}

}  // namespace

std::string_view name_of(Agreement agreement) { return kNames[static_cast<std::size_t>(agreement)]; }

Claim compare_claim(const LedgerView& ledger, const Measurement& fresh) {
  const Measurement* gate_one = nullptr;
  const Measurement* timed = nullptr;
  for (const Measurement& m : fresh.candidate == "human" ? ledger.human : ledger.llm) {
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
    return claim(Agreement::kNotComparable, "the ledger claims a speedup, but none was measured here");
  if (std::string why = difference(*timed, fresh); !why.empty()) return claim(Agreement::kNotComparable, why);
  const Interval &then = *speedup(*timed), &now = *speedup(fresh);
  double error = std::hypot(standard_error(then), standard_error(now));
  double allowed = std::max(kLeastTolerance, kStandardErrors * error),
         off = std::abs(then.point - now.point) / now.point;
  return claim(off > allowed ? Agreement::kContradicts : Agreement::kAgrees,
               fmt::format("{} claimed, {} measured now: {:.1f} % apart, {:.1f} % allowed",
                           format_speedup(then.point), format_speedup(now.point), 100 * off, 100 * allowed));
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
