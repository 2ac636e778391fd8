#pragma once
// Whose work a Python candidate's kernels are, by their names.
#include <string>
#include <vector>

namespace capstone {

/// What a mentor should know of the kernels that one run launched: library kernels (cuBLAS, cuDNN, CUTLASS,
/// …), PyTorch's own operators, kernels that torch.compile made. One label each; a candidate with kernels of
/// its own alone has none.
/// @param kernels  names as the profiler gives them, copies and memsets included; empty: CUPTI saw nothing
std::vector<std::string> labels_of_kernels(const std::vector<std::string>& kernels);

}  // namespace capstone
