#pragma once
// What a run has come to.
#include <optional>
#include <string>
#include <vector>

#include "harness/machine/archive.h"
#include "harness/machine/node.h"

namespace capstone::machine {

/// One line of the table of k.
struct KLine {
  int k = 0;
  double correct = 0;  ///< pass@k, unbiased
  double board = 0;    ///< 1 - (1 - p)^k with p = the share that is correct
  double faster = 0;   ///< pass@k for correct and faster, unbiased
};

struct FailureClass {
  std::string verdict;
  int count = 0;
  std::string first, line;  ///< the first node of this class, and what went wrong there
};

struct Summary {
  int kernels = 0;   ///< nodes that ask for a kernel
  int answered = 0;  ///< of these
  int judged = 0;    ///< done, replies without code included
  int correct = 0, faster = 0;
  bool timed = false;                  ///< at least one went through gate two
  std::vector<KLine> table;            ///< for k = 1, 2, 4 … and the number of those judged
  std::vector<FailureClass> failures;  ///< the most frequent first
  std::string best;                    ///< the fittest correct node; empty: none. A confirmed one comes first
  Spent spent;
};
Summary summarise(const Tree& tree, const RunInfo& run);

/// The share of those judged that are correct and more than p times as fast; nothing without times.
std::optional<double> fast_share(const Tree& tree, double p);

}  // namespace capstone::machine
