#include "harness/runtime/python/arms.h"

#include <algorithm>

namespace capstone {

const std::vector<std::string>& python_arms() {
  static const std::vector<std::string> names{"eager", "compile", "compile-max", "sdpa-flash", "sdpa-cudnn"};
  return names;
}

std::vector<std::string> python_arms_of(const Problem& problem) {
  std::vector<std::string> arms{"eager"};
  for (const Baseline& baseline : problem.baselines)
    if (baseline.name != "native" && baseline.name != "eager") arms.push_back(baseline.name);
  if (std::find(arms.begin(), arms.end(), "compile") == arms.end()) arms.push_back("compile");
  return arms;
}

}  // namespace capstone
