#include "harness/analysis/fast_p.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace capstone {
namespace {

struct Best {
  bool correct = false;
  std::optional<Interval> speedup;
};

std::map<std::string, Best> best_of_each(const std::vector<Solution>& solutions) {
  std::map<std::string, Best> best;
  for (const Solution& solution : solutions) {
    Best& known = best[solution.problem];
    if (!solution.correct) continue;
    known.correct = true;
    if (solution.speedup && (!known.speedup || solution.speedup->point > known.speedup->point))
      known.speedup = solution.speedup;
  }
  return best;
}

// "12", "12_Gemm.py" → "12"; text without a leading number stays unchanged.
std::string leading_number(const std::string& id) {
  const std::size_t end = id.find_first_not_of("0123456789");
  return end == 0 ? id : id.substr(0, end);
}

void collect_times(const Json& from, std::map<std::string, double>& into) {
  for (const auto& [id, value] : from.items()) {
    if (value.is_number())
      into[leading_number(id)] = value.get<double>();
    else if (value.is_object() && value.contains("mean") && value["mean"].is_number())
      into[leading_number(id)] = value["mean"].get<double>();
    else if (value.is_object())
      collect_times(value, into);
  }
}

}  // namespace

FastPoint fast_p(const std::vector<Solution>& solutions, double p) {
  FastPoint point;
  point.p = p;
  for (const auto& [problem, best] : best_of_each(solutions)) {
    ++point.problems;
    if (!best.correct) continue;
    const bool only_correct = p <= 0;
    point.hits += only_correct || (best.speedup && best.speedup->point > p);
    point.resolved += only_correct || (best.speedup && best.speedup->low > p);
  }
  if (point.problems) {
    point.share = binomial_interval(point.hits, point.problems);
    point.share.point = double(point.hits) / point.problems;
  }
  return point;
}

std::optional<double> pass_at_k(int n, int c, int k) {
  if (k < 1 || k > n || c < 0 || c > n) return std::nullopt;
  if (n - c < k) return 1;
  double none = 1;  // as a product, because factorials overflow
  for (int i = n - c + 1; i <= n; ++i) none *= 1.0 - double(k) / i;
  return 1 - none;
}

PassAtK pass_at_k(const std::vector<Solution>& solutions, int k) {
  std::map<std::string, std::pair<int, int>> counts;  // number of samples, number of correct ones
  for (const Solution& solution : solutions) {
    auto& [n, c] = counts[solution.problem];
    ++n;
    c += solution.correct;
  }
  PassAtK result;
  result.k = k;
  for (const auto& [problem, count] : counts) {
    const auto [n, c] = count;
    const auto one = pass_at_k(n, c, k);
    if (!one) continue;
    ++result.problems;
    result.unbiased += *one;
    result.board += 1 - std::pow(1 - double(c) / n, k);
  }
  if (result.problems) result.unbiased /= result.problems, result.board /= result.problems;
  return result;
}

Result<std::vector<Solution>> read_eval_results(const Json& results, const Json& baseline) {
  if (!results.is_object()) return fail("the results must be an object: {\"problem id\": [samples]}");
  std::map<std::string, double> times;
  if (baseline.is_object()) collect_times(baseline, times);
  std::vector<Solution> solutions;
  for (const auto& [id, samples] : results.items()) {
    const Json list = samples.is_array() ? samples : Json::array({samples});
    for (const Json& sample : list) {
      if (!sample.is_object() || !sample.contains("correctness") || !sample["correctness"].is_boolean())
        return fail("a sample of problem " + id + " does not say whether it is correct");
      Solution solution{id, sample["correctness"].get<bool>(), {}};
      const double runtime =
          sample.contains("runtime") && sample["runtime"].is_number() ? sample["runtime"].get<double>() : 0;
      const auto reference = times.find(leading_number(id));
      if (solution.correct && runtime > 0 && reference != times.end()) {
        const double ratio = reference->second / runtime;
        solution.speedup = Interval{ratio, ratio, ratio};
      }
      solutions.push_back(std::move(solution));
    }
    if (list.empty())
      solutions.push_back({id, false, {}});  // no sample was handed in; the problem still
                                             // counts
  }
  return solutions;
}

}  // namespace capstone
