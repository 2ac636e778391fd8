#include "harness/kernelbench/variations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/judge/cases.h"

namespace capstone {
namespace {

constexpr int kDraws = 2;           // of each variation: a single one may happen to work
constexpr double kMostRounding = 0.25;  // of the tolerance: a kernel that sums in another order needs the rest

// Why the reference cannot be judged by on these inputs. Empty: it can.
Result<std::string> refusal(const Problem& problem, const CasePlan& plan, const std::shared_ptr<ReferenceOracle>& reference) {
  const auto prepared = prepare_case(problem, plan, Oracle(reference), 0);
  if (!prepared && prepared.error().code == ExitCode::kUsage) return std::string("the reference raises an exception there");
  if (!prepared) return fail(prepared.error());
  for (const PreparedCase::Output& output : prepared->outputs)
    if (!std::all_of(output.expected.begin(), output.expected.end(), [](double value) { return std::isfinite(value); }))
      return std::string("the reference gives NaN or infinity there");
  const double rounding = reference->rounding();
  if (rounding > 1) return std::string("the reference disagrees with itself in float64 beyond the tolerance there");
  if (rounding > kMostRounding) return fmt::format("the reference's own rounding takes {:.0f} % of the tolerance there", 100 * rounding);
  return std::string();
}

}  // namespace

Result<std::map<std::string, std::string>> variations_outside(const Problem& problem, const std::shared_ptr<ReferenceOracle>& reference) {
  std::map<std::string, std::string> outside;
  for (const Battery battery : kBatteries) {
    const std::string name(name_of(battery));
    if (battery == Battery::kPlain || !battery_applies(problem, battery)) continue;
    for (int draw = 1; draw <= kDraws && !outside.contains(name); ++draw) {
      CAPSTONE_TRY(std::string why, refusal(problem, {name, problem.check.front(), static_cast<std::uint64_t>(draw), battery}, reference));
      if (!why.empty()) outside[name] = std::move(why);
    }
  }
  return outside;
}

}  // namespace capstone
