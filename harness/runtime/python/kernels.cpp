#include "harness/runtime/python/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "harness/base/text.h"

namespace capstone {
namespace {

struct Origin {
  const char* label;
  std::vector<std::string_view> marks;  ///< a name that holds one of them is of this origin
};

// The first that fits counts: PyTorch instantiates CUTLASS and FlashAttention in namespaces of its own, and
// CuTe-DSL gives every kernel this prefix, the candidate's own ones and those of QuACK alike.
const std::vector<Origin>& origins() {
  static const std::vector<Origin> all{
      {"CuTe-DSL, its own or a library's: it launched", {"kernel_cutlass_"}},
      {"library: it launched",
       {"cublas",
        "cutlass",
        "cudnn",
        "_xmma_",
        "nvjet_",
        "ampere_sgemm",
        "volta_sgemm",
        "maxwell_sgemm",
        "turing_sgemm",
        "_s16816gemm",
        "_h16816gemm",
        "_s1688gemm",
        "_h1688gemm",
        "_s884gemm",
        "gemmSN_",
        "gemv2T",
        "gemvNSP",
        "splitKreduce",
        "implicit_convolve",
        "explicit_convolve",
        "flash_fwd",
        "pytorch_flash",
        "fmha_",
        "cub::",
        "thrust::",
        "vector_fft",
        "regular_fft",
        "ncclDevKernel"}},
      {"PyTorch operators: it launched", {"at::native", "at_cuda_detail", "c10::", "at::cuda"}},
      {"torch.compile: it launched",
       {"triton_poi_fused", "triton_red_fused", "triton_per_fused", "triton_tem_fused", "triton_mm",
        "triton_for_fused"}},
  };
  return all;
}

// "void at::native::add_kernel<float>(int, float*)" → "at::native::add_kernel"
std::string short_name(std::string name) {
  if (name.starts_with("void ")) name.erase(0, 5);
  if (const std::size_t end = name.find_first_of("<("); end != std::string::npos && end > 0) name.resize(end);
  return to_utf8(name.substr(0, 80));
}

bool is_of(const Origin& origin, const std::string& name) {
  return std::any_of(origin.marks.begin(), origin.marks.end(),
                     [&](std::string_view mark) { return name.find(mark) != std::string::npos; });
}

}  // namespace

std::vector<std::string> labels_of_kernels(const std::vector<std::string>& kernels) {
  if (kernels.empty())
    return {
        "note: which kernels it launches could not be seen (the profiler saw none: no CUPTI, or no kernel)"};
  std::vector<std::vector<std::string>> found(origins().size());
  for (const std::string& name : kernels)
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!is_of(origins()[i], name)) continue;
      const std::string shown = short_name(name);
      if (std::find(found[i].begin(), found[i].end(), shown) == found[i].end()) found[i].push_back(shown);
      break;
    }
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].empty()) continue;
    const std::size_t more = found[i].size() > 4 ? found[i].size() - 4 : 0;
    found[i].resize(found[i].size() - more);
    labels.push_back(fmt::format("{} {}{}", origins()[i].label, join(found[i], ", "),
                                 more ? fmt::format(" and {} more", more) : std::string()));
  }
  return labels;
}

}  // namespace capstone
