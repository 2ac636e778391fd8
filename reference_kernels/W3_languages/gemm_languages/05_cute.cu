// Rung 5: CuTe: layouts and copies from the library, the main loop by hand.
//
// Changed     from rung 4: the loop, the ring of stages and the roles of warps are written out. CuTe says
//             where element (row, column, stage) of a tile lies, and makes from that the TMA's boxes,
//             wgmma's descriptors, and each thread's part of the results.
// Why         as soon as the kernel is not just a product, one has to get into the loop. In rung 7 of
//             gemm_bf16 many lines are swizzles, descriptors and registers as text; a layout knows them.
// Prediction  the same as rung 7 of gemm_bf16, 0.98 of cuBLAS: the instructions should be the same.
// Came        1.37 ms at 8192 cubed on an H100, 803 TFLOP/s: 1.012 of cuBLAS; 0.998 at 4096 cubed.
//
// Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major.
// Launch      as many blocks as multiprocessors, or tiles where these are fewer; 384 threads: a producer
//             and two groups of 128 that multiply 64 x 256 each.
// Resources   232 registers a thread that multiplies, 40 a producer; 225 KiB of shared memory: 4 stages of
//             48 KiB, two pieces of 16 KiB of the results.
// Cost        2 m n k FLOPs.
// Divides     k % 8 == 0 and n % 8 == 0 (the problem says so): rows start on 16 bytes, and TMA can fetch
//             them. It fills with zeros what lies outside, and stores nothing there.
// Source      the building blocks are those of CuTe's documentation. Headers: CUTLASS 4.2.0 (nvidia-cutlass
//             4.2.0.0). Needs sm_90a.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>

#include <cstdint>
#include <cute/tensor.hpp>

using namespace cute;

namespace rung {

using Number = cutlass::bfloat16_t;
constexpr int kStages = 4, kConsumers = 256, kThreads = kConsumers + 128, kPieceColumns = 64, kBand = 16;
using Rows = _128;
using Columns = _256;
using Depth = _64;
using Block = Shape<Rows, Columns, Depth>;
using Piece = Shape<Rows, Int<kPieceColumns>>;  // of the results, on their way to C

// Two warp groups, one above the other; b lies along n in memory, and wgmma takes it so.
using Multiply = TiledMMA<MMA_Atom<SM90_64x256x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::MN>>,
                          Layout<Shape<_2, _1, _1>>>;
// A product as narrow as a piece: its threads hold what those of `Multiply` hold of a piece.
using MultiplyPiece = TiledMMA<MMA_Atom<SM90_64x64x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::MN>>,
                               Layout<Shape<_2, _1, _1>>>;

// Where element (row, column, stage) lies: swizzled atoms, repeated. Boxes of 64 numbers are as wide as TMA
// can swizzle, so those of b are repeated along k first.
using LayoutA =
    decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<Number>{}, Shape<Rows, Depth, Int<kStages>>{}));
using LayoutB = decltype(tile_to_shape(GMMA::Layout_MN_SW128_Atom<Number>{},
                                       Shape<Columns, Depth, Int<kStages>>{}, Step<_2, _1, _3>{}));
using LayoutC =
    decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<Number>{}, Shape<Rows, Int<kPieceColumns>, _2>{}));

struct Shared {
  alignas(1024) Number a[cosize_v<LayoutA>];
  alignas(1024) Number b[cosize_v<LayoutB>];
  alignas(1024) Number c[cosize_v<LayoutC>];
  uint64_t full[kStages], empty[kStages];
};

// A place in the ring of stages. Each time around, the phase of the barriers changes.
struct Place {
  int stage = 0;
  uint32_t phase = 0;
  CUTE_DEVICE void operator++() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
};

// Tiles come in bands of rows; within a band, all of a tile column before the next one.
CUTE_DEVICE auto place_of(int tile, int rows, int columns) {
  const int band = tile / (kBand * columns), within = tile % (kBand * columns);
  const int height = min(rows - band * kBand, kBand);
  return make_coord(band * kBand + within % height, within / height);
}

template <class LoadA, class LoadB, class StoreC>
__global__ void __launch_bounds__(kThreads, 1)
    gemm(const __grid_constant__ LoadA load_a, const __grid_constant__ LoadB load_b,
         const __grid_constant__ StoreC store_c, int m, int k, int n) {
  using Full = cutlass::arch::ClusterTransactionBarrier;
  using Empty = cutlass::arch::ClusterBarrier;
  extern __shared__ __align__(1024) uint8_t bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(bytes);

  // Tensors of coordinates, in tiles: (inside a tile, inside a tile, tile, tile).
  const auto tiles_a =
      local_tile(load_a.get_tma_tensor(make_shape(m, k)), Shape<Rows, Depth>{}, make_coord(_, _));
  const auto tiles_b =
      local_tile(load_b.get_tma_tensor(make_shape(n, k)), Shape<Columns, Depth>{}, make_coord(_, _));
  const auto tiles_c = local_tile(store_c.get_tma_tensor(make_shape(m, n)), Piece{}, make_coord(_, _));
  const auto shared_a = make_tensor(make_smem_ptr(shared.a), LayoutA{});
  const auto shared_b = make_tensor(make_smem_ptr(shared.b), LayoutB{});
  const auto shared_c = make_tensor(make_smem_ptr(shared.c), LayoutC{});

  const int rows = size<2>(tiles_a), columns = size<2>(tiles_b), steps = size<3>(tiles_a);
  __builtin_assume(steps > 0);  // else the sums could be read while products are on their way
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i)
      Full::init(shared.full + i, 1), Empty::init(shared.empty + i, kConsumers / 128);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();

  Place at;
  if (threadIdx.x >= kConsumers) {  // the producer
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (threadIdx.x != kConsumers) return;
    const auto [from_a, to_a] =
        tma_partition(load_a, _0{}, Layout<_1>{}, group_modes<0, 2>(shared_a), group_modes<0, 2>(tiles_a));
    const auto [from_b, to_b] =
        tma_partition(load_b, _0{}, Layout<_1>{}, group_modes<0, 2>(shared_b), group_modes<0, 2>(tiles_b));
    constexpr int kBytes = (size(Rows{}) + size(Columns{})) * size(Depth{}) * sizeof(Number);
    for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
      const auto [row, column] = place_of(tile, rows, columns);
      CUTE_NO_UNROLL
      for (int step = 0; step < steps; ++step, ++at) {
        Empty::wait(shared.empty + at.stage, at.phase ^ 1);  // at first, the phase "before" the first is over
        Full::arrive_and_expect_tx(shared.full + at.stage, kBytes);
        copy(load_a.with(shared.full[at.stage]), from_a(_, row, step), to_a(_, at.stage));
        copy(load_b.with(shared.full[at.stage]), from_b(_, column, step), to_b(_, at.stage));
      }
    }
    return;
  }
  cutlass::arch::warpgroup_reg_alloc<232>();
  const Multiply multiply;
  const auto mine = multiply.get_slice(threadIdx.x);
  const auto a = mine.partition_fragment_A(shared_a);  // descriptors, not numbers: (MMA, m, k, stage)
  const auto b = mine.partition_fragment_B(shared_b);
  auto sums = partition_fragment_C(multiply, Shape<Rows, Columns>{});
  const auto to_shared = make_tiled_copy_C(Copy_Atom<SM90_U32x4_STSM_N, Number>{}, MultiplyPiece{});
  const auto piece_to = to_shared.get_slice(threadIdx.x).partition_D(shared_c);
  const auto [to_c, from_c] =
      tma_partition(store_c, _0{}, Layout<_1>{}, group_modes<0, 2>(shared_c), group_modes<0, 2>(tiles_c));

  for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
    const auto [row, column] = place_of(tile, rows, columns);
    int before = 0;
    const auto release = [&](int stage) {
      if (threadIdx.x % 128 == 0) Empty::arrive(shared.empty + stage);
    };
    clear(sums);
    CUTE_NO_UNROLL
    for (int step = 0; step < steps; ++step, ++at) {
      Full::wait(shared.full + at.stage, at.phase);
      warpgroup_arrive();
      cute::gemm(multiply, a(_, _, _, at.stage), b(_, _, _, at.stage), sums);
      warpgroup_commit_batch();
      warpgroup_wait<1>();  // for the products of the step before
      if (step > 0) release(before);
      before = at.stage;
    }
    warpgroup_wait<0>();
    warpgroup_fence_operand(sums);
    release(before);

    CUTE_UNROLL
    for (int piece = 0; piece < size(Columns{}) / kPieceColumns; ++piece) {
      auto rounded = make_tensor<Number>(partition_shape_C(MultiplyPiece{}, Piece{}));
      CUTE_UNROLL
      for (int i = 0; i < size(rounded); ++i) rounded(i) = Number(sums(piece * size(rounded) + i));
      if (threadIdx.x == 0) tma_store_wait<1>();  // the piece before the last one has left
      cutlass::arch::NamedBarrier::sync(kConsumers, 0);
      copy(to_shared, to_shared.get_slice(threadIdx.x).retile_S(rounded), piece_to(_, _, _, piece % 2));
      tma_store_fence();
      cutlass::arch::NamedBarrier::sync(kConsumers, 0);
      if (threadIdx.x == 0) {
        copy(store_c, from_c(_, piece % 2), to_c(_, row, column * (size(Columns{}) / kPieceColumns) + piece));
        tma_store_arrive();
      }
    }
  }
  if (threadIdx.x == 0) tma_store_wait<0>();
}

}  // namespace rung

extern "C" void launch(const __nv_bfloat16* a /*[m,k]*/, const __nv_bfloat16* b /*[k,n]*/,
                       __nv_bfloat16* c /*[m,n]*/, int64_t m, int64_t k, int64_t n, void* /*workspace*/,
                       cudaStream_t stream) {
  using namespace rung;
  const int rows = static_cast<int>(m), depth = static_cast<int>(k), columns = static_cast<int>(n);
  const auto matrix = [](const __nv_bfloat16* at, auto shape, auto stride) {
    return make_tensor(make_gmem_ptr(reinterpret_cast<const Number*>(at)), shape, stride);
  };
  // CuTe's b is [n, k]: the same numbers, with the strides the other way around.
  const auto load_a = make_tma_atom(SM90_TMA_LOAD{}, matrix(a, make_shape(rows, depth), make_stride(k, _1{})),
                                    LayoutA{}(_, _, 0), Shape<Rows, Depth>{});
  const auto load_b =
      make_tma_atom(SM90_TMA_LOAD{}, matrix(b, make_shape(columns, depth), make_stride(_1{}, n)),
                    LayoutB{}(_, _, 0), Shape<Columns, Depth>{});
  const auto store_c =
      make_tma_atom(SM90_TMA_STORE{}, matrix(c, make_shape(rows, columns), make_stride(n, _1{})),
                    LayoutC{}(_, _, 0), Piece{});
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int tiles = ceil_div(rows, Rows{}) * ceil_div(columns, Columns{});
  const auto kernel = gemm<decltype(load_a), decltype(load_b), decltype(store_c)>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  kernel<<<min(tiles, multiprocessors), kThreads, sizeof(Shared), stream>>>(load_a, load_b, store_c, rows,
                                                                            depth, columns);
}
