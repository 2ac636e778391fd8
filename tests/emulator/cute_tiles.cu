// A product of one tile, 64 x 64 x 32, with CuTe's atoms of sm_80: cp.async, ldmatrix, mma.
#include <cstdio>
#include <cute/tensor.hpp>

using namespace cute;
using Number = cutlass::bfloat16_t;
using Shared = decltype(composition(Swizzle<2, 3, 3>{}, Layout<Shape<_64, _32>, Stride<_32, _1>>{}));

__global__ void multiply_tile(const Number* a, const Number* b, float* c) {
  __shared__ __align__(128) Number memory_a[64 * 32], memory_b[64 * 32];
  const auto tile = [](const Number* at) {
    return make_tensor(make_gmem_ptr(at), Layout<Shape<_64, _32>, Stride<_32, _1>>{});
  };
  auto shared_a = make_tensor(make_smem_ptr(memory_a), Shared{});
  auto shared_b = make_tensor(make_smem_ptr(memory_b), Shared{});
  const auto load = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, Number>{},
                                    Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
  const auto loader = load.get_slice(threadIdx.x);
  copy(load, loader.partition_S(tile(a)), loader.partition_D(shared_a));
  copy(load, loader.partition_S(tile(b)), loader.partition_D(shared_b));
  cp_async_fence();
  cp_async_wait<0>();
  __syncthreads();

  const auto multiply =
      make_tiled_mma(SM80_16x8x16_F32BF16BF16F32_TN{}, Layout<Shape<_2, _2, _1>>{}, Tile<_32, _32, _16>{});
  const auto mine = multiply.get_slice(threadIdx.x);
  auto part_a = mine.partition_fragment_A(shared_a);
  auto part_b = mine.partition_fragment_B(shared_b);
  const auto from_a = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, Number>{}, multiply);
  const auto from_b = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, Number>{}, multiply);
  copy(from_a, from_a.get_slice(threadIdx.x).partition_S(shared_a),
       from_a.get_slice(threadIdx.x).retile_D(part_a));
  copy(from_b, from_b.get_slice(threadIdx.x).partition_S(shared_b),
       from_b.get_slice(threadIdx.x).retile_D(part_b));
  auto out = mine.partition_C(make_tensor(make_gmem_ptr(c), Layout<Shape<_64, _64>, Stride<_64, _1>>{}));
  auto sums = make_fragment_like(out);
  clear(sums);
  gemm(multiply, part_a, part_b, sums);
  copy(sums, out);
}

int main() {
  Number *a, *b;
  float* c;
  cudaMallocManaged(&a, 64 * 32 * 2), cudaMallocManaged(&b, 64 * 32 * 2), cudaMallocManaged(&c, 64 * 64 * 4);
  for (int i = 0; i < 64 * 32; ++i)
    a[i] = Number(float(i * 7 % 13 - 6)), b[i] = Number(float(i * 5 % 11 - 5));
  multiply_tile<<<1, 128>>>(a, b, c);
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  int wrong = 0;
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) {
      float sum = 0;
      for (int p = 0; p < 32; ++p) sum += float(a[i * 32 + p]) * float(b[j * 32 + p]);
      wrong += sum != c[i * 64 + j];
    }
  std::printf(wrong ? "%d wrong\n" : "PASS\n", wrong);
  return wrong != 0;
}
