// Rung 4: CUTLASS: the kernel is a type, built from a description.
//
// Changed     from TileLang: nothing is written inside the kernel. Types name the operands, the tile, the
//             cluster and a schedule; CUTLASS's builders choose the instructions, the layouts in shared
//             memory and the number of stages.
// Why         a product of dense matrices is a solved problem, and NVIDIA's own solution is a header.
// Prediction  0.98 of cuBLAS: the schedule is that of rung 8 of gemm_bf16, and cuBLAS ships such kernels.
// Came        1.37 ms at 8192 cubed on an H100, 801 TFLOP/s: 1.010 of cuBLAS; 0.987 at 4096 cubed. nvcc took
//             57 s.
//
// Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major.
// Launch      as many blocks as multiprocessors, in clusters of two above each other, which share b; 384
//             threads: a producer and two groups that multiply.
// Resources   168 registers a thread; the builder chooses four stages of 48 KiB.
// Cost        2 m n k FLOPs.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): rows start on 16 bytes, and TMA can fetch
//             them. It fills with zeros what lies outside, and stores nothing there.
// Source      CUTLASS's documentation of its builders. Headers: CUTLASS 4.2.0 (nvidia-cutlass 4.2.0.0). Needs
//             sm_90a.
#define NDEBUG  // an assertion in the loop is a function call, and wgmma would wait before it

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <stdexcept>
#include <string>

using cute::_1, cute::_2, cute::_64, cute::_128, cute::_256, cute::Shape;

using Number = cutlass::bfloat16_t;
using Rows = cutlass::layout::RowMajor;
using Tile = Shape<_128, _256, _64>;
using Cluster = Shape<_2, _1, _1>;
constexpr int kAlignment = 16 / sizeof(Number);  // in numbers: rows start on 16 bytes

using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Rows, kAlignment, Number, Rows,
    kAlignment, cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;

using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Number, Rows, kAlignment, Number, Rows, kAlignment,
    float, Tile, Cluster, cutlass::gemm::collective::StageCountAutoCarveout<sizeof(Epilogue::SharedStorage)>,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;

using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

namespace {

void expect(cutlass::Status status, const char* what) {
  if (status != cutlass::Status::kSuccess)
    throw std::runtime_error(std::string(what) + ": " + cutlass::cutlassGetStatusString(status));
}

}  // namespace

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* b /*[k,n]*/,
                       __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n, void* workspace,
                       cudaStream_t stream) {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
  cutlass::KernelHardwareInfo device;
  cudaGetDevice(&device.device_id);
  cudaDeviceGetAttribute(&device.sm_count, cudaDevAttrMultiProcessorCount, device.device_id);
  Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm,
      {rows, columns, depth, 1},
      {reinterpret_cast<const Number*>(a), {k, _1{}, 0}, reinterpret_cast<const Number*>(b), {_1{}, n, 0}},
      {{1.0f, 0.0f}, nullptr, {}, reinterpret_cast<Number*>(c), {n, _1{}, 0}},
      device};
  arguments.scheduler.max_swizzle_size = 8;
  Gemm gemm;
  expect(gemm.initialize(arguments, workspace, stream), "CUTLASS refuses the sizes");
  expect(gemm.run(stream), "CUTLASS cannot launch");
}
