#pragma once
// The triviality audit: answers that need no work must not pass gate one's comparison.
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/correctness/oracle.h"
#include "harness/model/problem.h"

namespace capstone {

/// A way to look correct without computing, tried on one output.
struct Trick {
  std::string name;     ///< as under `because`: zeros, copy, mean, constant, lower_precision, most_rows
  std::string what;     ///< "y = a copy of x", "operands rounded to tf32"
  bool caught = false;  ///< at least one case fails
  std::string because;  ///< the problem's reason why it may pass; empty: none
  bool acceptable() const { return caught || !because.empty(); }
};

/// Tries every trick on every output over the cases that the judge always uses: each size under `check` with
/// plain inputs and with every variation that the problem's domain allows. All other outputs are correct. A
/// trick is caught if at least one case fails. Seeds are fixed: the same definition always gives the same
/// result.
///
/// Tricks: zeros; each input unchanged, repeated or stretched to the output's size; the mean of the expected
/// output; a constant (its median, its first element, one); 99 % of the rows correct and the rest (at least
/// one row) left at zero; and the next *different* lower precision class: every floating-point operand
/// rounded to that class's significand (tf32 and f16 10 bits, bf16 7, fp8 3, fp4 1), everything else exact in
/// float64: whole numbers, also of 4 bits, and types that have no more bits stay as they are. No real
/// computation in that class can be better (exact sums, ideal scaling of its range), so a tolerance that
/// refuses it refuses every real one. Not tried: lower precision if there is no lower class (fp4) or no
/// operand that loses bits.
Result<std::vector<Trick>> audit_triviality(const Problem& problem, const Oracle& oracle);

}  // namespace capstone
