// What nvcc accepts and g++ alone does not, or reads in another way. All of it stands in public code.
#include <cuda_bf16.h>
#include <mma.h>

#include <cstdio>

inline constexpr int warpSize = 32;

template <class T>
struct Sum;
template <>
struct Sum<float> {
  static const float identity = 0.5f;
};

template <class A, class B>
struct Cast {
  template <int kCount>
  __device__ static void apply(A* to, const B* from) {
    for (int i = 0; i < kCount; ++i) to[i] = static_cast<A>(from[i]);
  }
};
template <class A, class B, int kCount>
__device__ void cast(A* to, const B* from) {
  Cast<A, B>::apply<kCount>(to, from);  // without `template`
}

struct Both {
  float a[32];
  int b[32];
};
__global__ void struct_in_dynamic_memory(int* out) {
  extern __shared__ Both both;  // without []
  both.b[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = both.b[31 - threadIdx.x] + warpSize;
}

__global__ void converted_stores(__nv_bfloat16* narrow, int* whole) {
  const float value = 1.5f;
  __stwt(&narrow[threadIdx.x], value);
  __stcg(whole + threadIdx.x, 3.9f);
}

__global__ void classes(int* out, const float* in) {
  cast<int, float, 4>(out, in);
  out[4] = static_cast<int>(2 * Sum<float>::identity);
}

struct Large {
  int values[512];
};
__global__ void large_parameter(const Large large, int* out) { out[threadIdx.x] = large.values[threadIdx.x]; }

// A tile at a multiple of 16 bytes, not of 32.
__global__ void tile_at_16_bytes(float* out) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) half a[16 * 24 + 8];
  for (int i = threadIdx.x; i < 16 * 24 + 8; i += 32) a[i] = 1;
  __syncwarp();
  fragment<matrix_a, 16, 16, 16, half, row_major> left;
  fragment<matrix_b, 16, 16, 16, half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.f);
  fill_fragment(right, half(1));
  load_matrix_sync(left, a + 8, 24);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(out, sum, 16, mem_row_major);
}

int main() {
  int* out;
  float* in;
  __nv_bfloat16* narrow;
  cudaMallocManaged(&out, 128 * sizeof(int));
  cudaMallocManaged(&in, 256 * sizeof(float));
  cudaMallocManaged(&narrow, 32 * sizeof(__nv_bfloat16));
  bool right = true;

  struct_in_dynamic_memory<<<1, 32, sizeof(Both)>>>(out);
  cudaDeviceSynchronize();
  for (int i = 0; i < 32; ++i) right = right && out[i] == 31 - i + 32;

  converted_stores<<<1, 32>>>(narrow, out);
  cudaDeviceSynchronize();
  for (int i = 0; i < 32; ++i) right = right && out[i] == 3 && __bfloat162float(narrow[i]) == 1.5f;

  for (int i = 0; i < 4; ++i) in[i] = i + 0.5f;
  classes<<<1, 1>>>(out, in);
  cudaDeviceSynchronize();
  for (int i = 0; i < 4; ++i) right = right && out[i] == i;
  right = right && out[4] == 1;

  Large large;
  for (int i = 0; i < 512; ++i) large.values[i] = 3 * i;
  large_parameter<<<1, 128>>>(large, out);
  cudaDeviceSynchronize();
  for (int i = 0; i < 128; ++i) right = right && out[i] == 3 * i;

  tile_at_16_bytes<<<1, 32>>>(in);
  right = right && cudaDeviceSynchronize() == cudaSuccess;
  for (int i = 0; i < 256; ++i) right = right && in[i] == 16.f;
  printf(right ? "PASS\n" : "FAIL\n");
}
