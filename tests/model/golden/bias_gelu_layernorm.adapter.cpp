// Calls launch() of `bias_gelu_layernorm` from argument slots. Generated; see harness/runtime/worker/protocol.md.
#include <cstddef>
#include <cstdint>

struct CUstream_st;
using cudaStream_t = CUstream_st*;

extern "C" void launch(const float* x, const float* residual, const float* bias, const float* gamma, const float* beta, float* y, float eps, int64_t rows, int64_t cols, void* workspace, cudaStream_t stream);
// Weak: a candidate without scratch does not define it.
extern "C" size_t workspace_bytes(int64_t rows, int64_t cols) __attribute__((weak));

extern "C" void capstone_call(const void* const* slots, void* workspace, void* prepared, void* stream) {
  (void)prepared;
  launch(*static_cast<const float* const*>(slots[0]),
         *static_cast<const float* const*>(slots[1]),
         *static_cast<const float* const*>(slots[2]),
         *static_cast<const float* const*>(slots[3]),
         *static_cast<const float* const*>(slots[4]),
         *static_cast<float* const*>(slots[5]),
         *static_cast<float const*>(slots[6]),
         *static_cast<int64_t const*>(slots[7]),
         *static_cast<int64_t const*>(slots[8]),
         workspace,
         static_cast<cudaStream_t>(stream));
}

extern "C" size_t capstone_workspace_bytes(const void* const* slots) {
  if (!workspace_bytes) return 0;
  return workspace_bytes(*static_cast<int64_t const*>(slots[7]), *static_cast<int64_t const*>(slots[8]));
}
