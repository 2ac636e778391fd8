#include "harness/kernelbench/variations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "harness/correctness/cases.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone {
namespace {

constexpr int kRounds = 3;              // number of draws, because a single one may work by chance
constexpr double kMostRounding = 0.25;  // share of the tolerance; a kernel that sums in another order needs
                                        // the rest

// The reason why the reference cannot be judged by on these inputs; empty if it can.
Result<std::string> refusal(const Problem& problem, const CasePlan& plan,
                            const std::shared_ptr<ReferenceOracle>& reference) {
  const auto prepared = prepare_case(problem, plan, Oracle(reference), 0);
  if (!prepared && prepared.error().code == ExitCode::kUsage)
    return std::string("the reference raises an exception there");
  if (!prepared) return fail(prepared.error());
  for (const PreparedCase::Output& output : prepared->outputs) {
    const DType type = problem.signature[static_cast<std::size_t>(output.parameter)].dtype;
    const auto finite = [&](double value) {
      return std::isfinite(is_float(type) ? rounded_to(type, value) : value);
    };
    if (!std::all_of(output.expected.begin(), output.expected.end(), finite))
      return std::string("the reference gives NaN or infinity there");
  }
  const double rounding = reference->rounding();
  if (rounding > 1)
    return std::string("the reference disagrees with itself in float64 beyond the tolerance there");
  if (rounding > kMostRounding)
    return fmt::format("the reference's own rounding takes {:.0f} % of the tolerance there", 100 * rounding);
  return std::string();
}

}  // namespace

Result<std::map<std::string, std::string>> variations_outside(
    const Problem& problem, const std::shared_ptr<ReferenceOracle>& reference) {
  std::map<std::string, std::string> outside;
  std::mt19937_64 random(1);  // fixed seed: importing the same file again must give the same definition
  for (int round = 0; round < kRounds; ++round) {
    CAPSTONE_TRY(const auto plans, plan_cases(problem, 0, DrawLimits{}, std::ref(random)));
    for (const CasePlan& plan : plans) {
      if (plan.battery == Battery::kPlain || outside.contains(plan.id)) continue;
      CAPSTONE_TRY(std::string why, refusal(problem, plan, reference));
      if (!why.empty()) outside[plan.id] = std::move(why);
    }
  }
  return outside;
}

}  // namespace capstone
