#pragma once
// Processor time of a piece of work: what other programs on the machine do does not count. For tests that an
// input made to be slow takes linear time; a quadratic step would exceed their limits many times over. How
// fast something is, tests/bench measures.
#include <ctime>

namespace capstone::testing {

template <class Work>
double cpu_seconds(Work&& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace capstone::testing
