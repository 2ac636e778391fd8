// Spellings of inline assembly in public code: operands that look like declarations, PTX that writes its inputs
// or misses blanks, addresses of shared memory from a cast, PTX that no CPU can run in what nobody uses, and the
// host's own assembly.
#include <cstdint>
#include <cstdio>

template <int kAdded>
__global__ void operands(int* out) {
  const float x = threadIdx.x;
  int sum;
  asm volatile("add.s32 %0, %1, %2;" : "=r"(sum) : "r"(uint32_t(x)), "n"(int32_t(kAdded)));
  asm("{\n.reg.b32 t;\nadd.s32 t, %1, 1;\nmov.b32 %0, t;\n}\n" : "=r"(sum) : "r"(int(sum)));  // .reg.b32
  out[threadIdx.x] = sum;
}

__global__ void increment(int* values) {
  int value = 0;
  int* const place = values + threadIdx.x;
  asm volatile("ld.global.u32 %1, [%0];\n\tadd.u32 %1, %1, 1;\n\tst.global.u32 [%0], %1;\n\t" ::"l"(place), "r"(value)
               : "memory");
  if (value != 0) *place = -1;
}

__global__ void modifier_comes_last(float* out) {
  float x = 4;
  asm("rsqrt.approx.f32.ftz %0, %1;" : "=f"(x) : "f"(x));
  *out = x;
}

// Element (r, c) of a lane's row is 8 r + c.
__global__ void transpose(unsigned* out) {
  const unsigned row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  const unsigned value = (8 * row + column) | (8 * row + column + 1) << 16;
  unsigned turned;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(value));
  out[threadIdx.x] = turned;
}

__global__ void address_by_cast(const int4* in, int* out) {
  __shared__ int4 tile[32];
  const unsigned to = (unsigned)(unsigned long long)&tile[threadIdx.x];  // the low half of a pointer
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + threadIdx.x) : "memory");
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x].x + (to == __cvta_generic_to_shared(&tile[threadIdx.x]) ? 0 : 1000);
}

template <class T>
__device__ void nobody_instantiates_this(T* p) {
  asm volatile("multimem.red.global.add.s32 [%0], %1;" ::"l"(p), "r"(1));
}
static __device__ void nobody_calls_this() { asm volatile("tcgen05.wait::ld.sync.aligned;"); }

#if defined(__x86_64__)
static unsigned long long ticks() {
  unsigned low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return static_cast<unsigned long long>(high) << 32 | low;
}
#else
static unsigned long long ticks() { return 1; }
#endif

int main() {
  int *values, array[4] = {1, 2, 3, 4};
  float* root;
  int4* in;
  cudaMallocManaged(&values, 32 * sizeof(int));
  cudaMallocManaged(&root, sizeof(float));
  cudaMallocManaged(&in, 32 * sizeof(int4));
  bool right = ticks() > 0;
  asm volatile("" ::"r"(array) : "memory");

  operands<7><<<1, 32>>>(values);
  increment<<<1, 32>>>(values);
  modifier_comes_last<<<1, 1>>>(root);
  cudaDeviceSynchronize();
  for (int i = 0; i < 32; ++i) right = right && values[i] == i + 9;
  right = right && *root == 0.5f;

  transpose<<<1, 32>>>(reinterpret_cast<unsigned*>(values));
  cudaDeviceSynchronize();
  for (int i = 0; i < 32; ++i) {
    const int row = i / 4, column = i % 4 * 2;
    right = right && values[i] == (8 * column + row | (8 * (column + 1) + row) << 16);
  }

  for (int i = 0; i < 32; ++i) in[i].x = 2 * i;
  address_by_cast<<<1, 32>>>(in, values);
  right = right && cudaDeviceSynchronize() == cudaSuccess;
  for (int i = 0; i < 32; ++i) right = right && values[i] == 2 * (31 - i);
  printf(right ? "PASS\n" : "FAIL\n");
}
