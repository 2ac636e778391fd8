#pragma once
// A judgement in words and a table, for a language model's next try.
#include <string>

#include "harness/model/record.h"

namespace capstone {

/// What the judge found: the compiler's first error and the start of its log, or the failed cases with their diagnosis,
/// or the times. Says nothing that the student does not see. Markdown, ends in a newline.
std::string describe_verdict(const Measurement& measurement);

}  // namespace capstone
