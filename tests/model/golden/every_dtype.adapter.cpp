// Calls launch() of `scale_rows` from argument slots. Generated; see harness/runtime/worker/protocol.md.
#include <cstddef>
#include <cstdint>

struct CUstream_st;
using cudaStream_t = CUstream_st*;
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp4x2_e2m1;
struct __nv_fp8_e8m0;

extern "C" void launch(const float* x, const __half* half, const int32_t* index, const int64_t* start, const uint8_t* mask, const __nv_fp8_e4m3* kind, const int32_t* pages, const __nv_bfloat16* w, const uint8_t* ints, const __nv_fp8_e8m0* powers, __nv_fp4x2_e2m1* codes, float* state, float* y, float eps, int32_t width, int64_t rows, int64_t cols, int64_t groups, const void* prepared, void* workspace, cudaStream_t stream);
// Weak: a candidate without scratch does not define it.
extern "C" size_t workspace_bytes(int64_t rows, int64_t cols, int64_t groups) __attribute__((weak));

extern "C" void capstone_call(const void* const* slots, void* workspace, void* prepared, void* stream) {
  launch(*static_cast<const float* const*>(slots[0]),
         *static_cast<const __half* const*>(slots[1]),
         *static_cast<const int32_t* const*>(slots[2]),
         *static_cast<const int64_t* const*>(slots[3]),
         *static_cast<const uint8_t* const*>(slots[4]),
         *static_cast<const __nv_fp8_e4m3* const*>(slots[5]),
         *static_cast<const int32_t* const*>(slots[6]),
         *static_cast<const __nv_bfloat16* const*>(slots[7]),
         *static_cast<const uint8_t* const*>(slots[8]),
         *static_cast<const __nv_fp8_e8m0* const*>(slots[9]),
         *static_cast<__nv_fp4x2_e2m1* const*>(slots[10]),
         *static_cast<float* const*>(slots[11]),
         *static_cast<float* const*>(slots[12]),
         *static_cast<float const*>(slots[13]),
         *static_cast<int32_t const*>(slots[14]),
         *static_cast<int64_t const*>(slots[15]),
         *static_cast<int64_t const*>(slots[16]),
         *static_cast<int64_t const*>(slots[17]),
         prepared,
         workspace,
         static_cast<cudaStream_t>(stream));
}

extern "C" size_t capstone_workspace_bytes(const void* const* slots) {
  if (!workspace_bytes) return 0;
  return workspace_bytes(*static_cast<int64_t const*>(slots[15]), *static_cast<int64_t const*>(slots[16]), *static_cast<int64_t const*>(slots[17]));
}

extern "C" size_t prepared_bytes(int64_t rows, int64_t cols, int64_t groups);
extern "C" void prepare(const __nv_bfloat16* w, const uint8_t* ints, int64_t rows, int64_t cols, int64_t groups, void* prepared, cudaStream_t stream);

extern "C" size_t capstone_prepared_bytes(const void* const* slots) {
  return prepared_bytes(*static_cast<int64_t const*>(slots[15]), *static_cast<int64_t const*>(slots[16]), *static_cast<int64_t const*>(slots[17]));
}

extern "C" void capstone_prepare(const void* const* slots, void* prepared, void* stream) {
  prepare(*static_cast<const __nv_bfloat16* const*>(slots[7]),
          *static_cast<const uint8_t* const*>(slots[8]),
          *static_cast<int64_t const*>(slots[15]),
          *static_cast<int64_t const*>(slots[16]),
          *static_cast<int64_t const*>(slots[17]),
          prepared,
          static_cast<cudaStream_t>(stream));
}
