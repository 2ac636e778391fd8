// Compiled alone: see CMakeLists.txt.
#define BOOST_MATH_PROMOTE_DOUBLE_POLICY false  // long double would be slower and no better for a share
#include <boost/math/distributions/binomial.hpp>

#include "harness/timing/statistics.h"

namespace capstone {

Interval binomial_interval(int hits, int n) {
  using Binomial = boost::math::binomial_distribution<double>;
  constexpr double kEachSide = 0.025;
  return {static_cast<double>(hits) / n, Binomial::find_lower_bound_on_p(n, hits, kEachSide),
          Binomial::find_upper_bound_on_p(n, hits, kEachSide)};
}

}  // namespace capstone
