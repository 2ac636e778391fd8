#pragma once
// Names a mistake by trying it: the oracle computes what a kernel with that mistake would give.
#include <cstddef>
#include <span>

#include "harness/correctness/cases.h"

namespace capstone {

/// Looks for a mistake that explains a wrong output exactly. Each trial changes the inputs as the mistake
/// would read them (an operand left out, doubled, negated, swapped with another one; read transposed, with
/// another row stride, shifted by one; only a part of each row, or the tile before), lets the oracle compute
/// a sample of the output from them, and compares that with what the kernel wrote. A trial that explains both
/// the wrong and the right elements of the sample becomes the result's problem, hint and pattern. Nothing is
/// tried where the diagnosis is exact already.
///
/// @param before  the arena that the run began with
/// @param after   the arena that it left
/// @param result  what examine() said of that run
/// @error the oracle's
Result<void> try_mistakes(const Problem& problem, const PreparedCase& prepared,
                          std::span<const std::byte> before, std::span<const std::byte> after,
                          const Oracle& oracle, CaseResult& result);

}  // namespace capstone
