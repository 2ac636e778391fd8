#pragma once
// Describes a judgement in words and a table, for a language model's next attempt.
#include <string>

#include "harness/model/explanation.h"
#include "harness/model/record.h"

namespace capstone {

/// The judge's result: the compiler's first error and the start of its log, or the failed cases with their
/// diagnosis, or the times. The model learns nothing that the student cannot see. Markdown that ends with a
/// newline.
std::string describe_verdict(const Measurement& measurement);

/// What `explain` counted: the traffic, the dearest lines with their remedies, the modelled lower bound.
/// Markdown that ends with a newline.
std::string describe_counts(const Explanation& explanation);

/// What `profile` answered, from the ledger's record of it; empty where it has no answers.
std::string describe_profile(const Json& record);

}  // namespace capstone
