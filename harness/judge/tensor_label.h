#pragma once
#include <optional>
#include <string>

#include "harness/model/problem.h"

namespace capstone {

/// What the tensor-core instructions of a candidate say about the precision that it computes in.
///
/// @param names  those in its machine code, "HMMA, QGMMA"; empty: none, or nobody could look
/// @return the label that tells a reader: any of them in a problem that is judged in fp32; those for 16 bits
/// and none for 8 in one that is judged in fp8, where the operands were converted. Nothing otherwise.
std::optional<std::string> tensor_label(Precision precision, const std::string& names);

}  // namespace capstone
