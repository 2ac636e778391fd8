#pragma once
// The triviality audit: answers that are no work must not pass gate one's comparison.
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/correctness/oracle.h"
#include "harness/model/problem.h"

namespace capstone {

/// One way to look right without computing, tried on one output.
struct Trick {
  std::string name;      ///< as under `because`: zeros, copy, mean, constant, lower_precision, most_rows
  std::string what;      ///< "y = a copy of x", "operands rounded to tf32"
  bool caught = false;   ///< some case fails
  std::string because;   ///< the problem's own reason why it may pass; empty: none
  bool acceptable() const { return caught || !because.empty(); }
};

/// Tries every trick against every output over the cases that the judge always uses: each size under `check` with plain
/// inputs and with every variation that the problem's domain allows; all other outputs are right. A trick is caught when
/// one of them fails. Seeds are fixed: the same definition always gets the same answer.
///
/// What is tried: zeros; each input as it is, repeated or stretched to the output's size; the mean of the expected output;
/// a constant (its median, its first element, one); 99 % of the rows right and the rest (at least one) left at zero; and
/// the next *different* lower precision class: every floating-point operand rounded to that class's significand (tf32 and
/// f16 10 bits, bf16 7, fp8 3, fp4 1), everything else exact in float64. That is the most favourable a computation in
/// that class can be (exact sums, ideal scaling of its range): a tolerance that refuses it refuses every real one.
/// Not tried: lower precision without a lower class (fp4) or without floating-point operands.
Result<std::vector<Trick>> audit_triviality(const Problem& problem, const Oracle& oracle);

}  // namespace capstone
