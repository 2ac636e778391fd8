// One tile of a product through tcgen05, right with the argument 0; each other number makes one mistake.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
__device__ void allocate(uint32_t* place, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(place)), "r"(columns) : "memory");
}
__device__ void release(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
}

__global__ void tile(int mistake, float* out) {
  __shared__ __align__(1024) uint16_t a[128 * 16], b[32 * 16];  // bf16
  __shared__ uint64_t barrier;
  __shared__ uint32_t address, other;
  const uint32_t thread = threadIdx.x, warp = thread / 32;
  for (int i = thread; i < 128 * 16; i += 128) a[i] = 0x3f80;  // 1
  for (int i = thread; i < 32 * 16; i += 128) b[i] = 0x4000;  // 2
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (warp == 0) {
    if (mistake == 11) {
      allocate(&other, 32);
      release(other, 32);
    }
    allocate(&address, mistake == 10 ? 48 : mistake == 11 ? 64 : 32);
    if (mistake == 9) {
      asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
      allocate(&other, 32);
    }
  }
  if (thread == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)) : "memory");
  __syncthreads();
  const uint32_t d = address, mine = d + (warp * 32 << 16);
  for (int column = 0; column < 32; ++column)
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(mine + column), "r"(__float_as_uint(1)));
  if (mistake != 3) asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  if (mistake != 4) fence_before();
  if (mistake != 30) __syncthreads();
  if (thread == 0) {
    if (mistake != 5) fence_after();
    uint32_t instruction = 1 << 4 | 1 << 7 | 1 << 10 | 32 >> 3 << 17 | 128 >> 4 << 24;
    uint64_t from = uint64_t{128 >> 4} << 16 | uint64_t{256 >> 4} << 32 | uint64_t{1} << 46;
    if (mistake == 15) from ^= uint64_t{1} << 46;
    if (mistake == 16) from |= uint64_t{3} << 61;
    if (mistake == 17) instruction &= ~(63u << 17);
    if (mistake == 18) instruction |= 3 << 7;
    if (mistake == 19) instruction |= 1 << 6;
    if (mistake == 20) instruction = (instruction & ~(31u << 24)) | 96 >> 4 << 24;
    if (mistake == 21) from |= 0x3fff;
    const uint64_t from_a = from | (mistake == 21 ? 0 : (shared_address(a) & 0x3ffff) >> 4), from_b = from | (shared_address(b) & 0x3ffff) >> 4;
    if (mistake == 25) instruction |= 1 << 2;
    if (mistake == 32 || mistake == 34) instruction |= 1 << 2 | 2;
    if (mistake == 33) instruction = 1 << 2 | 1 << 4 | 2 << 7 | 2 << 10 | 32 >> 3 << 17 | 128 >> 4 << 24;
    if (mistake == 34) instruction = (instruction & ~(31u << 24)) | 64 >> 4 << 24;
    const uint32_t sparse = instruction | 1 << 2, wide = (instruction & ~(63u << 17)) | 64 >> 3 << 17;
    uint64_t zeros = 0;  // the zero-column mask of .ws
    if (mistake == 27) zeros = uint64_t{1} << 36;
    if (mistake == 28) zeros = uint64_t{33} << 56;
    if (mistake == 29) zeros = uint64_t{8} << 56;
    if (mistake == 36) zeros = 4 | uint64_t{1} << 39 | uint64_t{3} << 48;
#define ISSUE(text, ...) asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n" text "\n}" ::"r"(d), "l"(from_a), "l"(from_b), "r"(1), __VA_ARGS__)
    if (mistake == 26 || mistake == 32 || mistake == 34)
      ISSUE("tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %1, [%0], %4, p;", "r"(sparse));
    else if (mistake == 33)
      ISSUE("tcgen05.mma.sp.cta_group::1.kind::tf32 [%0], %1, %1, [%0], %4, p;", "r"(sparse));
    else if (mistake == 27 || mistake == 28 || mistake == 29 || mistake == 36)
      ISSUE("tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %4, p, %5;", "r"(wide), "l"(zeros));
    else if (mistake == 35)
      ISSUE("tcgen05.mma.cta_group::1.kind::f16.ashift [%0], [%0], %2, %4, p;", "r"(instruction));
    else
      ISSUE("tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %4, p;", "r"(instruction));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
  }
  if (mistake != 1 && mistake != 23)
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(shared_address(&barrier)) : "memory");
  if (mistake != 2) fence_after();
  float sum = 0;
  for (int column = 0; column < 32 && mistake != 23; ++column) {
    uint32_t from = mine + column, word;
    if (mistake == 13) from = d + column;
    if (mistake == 14) from += 32;
    if (mistake == 24) from += thread % 2;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(from));
    if (mistake != 22 && mistake != 31) asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    sum += __uint_as_float(word);
    if (mistake == 31) asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  }
  out[thread] = sum;
  fence_before();
  __syncthreads();
  fence_after();
  if (warp == (mistake == 8 ? 1 : 0) && mistake != 6) {
    if (mistake == 12)
      asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(d), "r"(32));
    else
      release(d, 32);
    if (mistake == 7) release(d, 32);
  }
}

int main(int, char** arguments) {
  float* out;
  cudaMallocManaged(&out, 128 * sizeof(float));
  tile<<<1, 128>>>(std::atoi(arguments[1]), out);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  for (int i = 0; i < 128; ++i)
    if (out[i] != 32 * (1 + 16 * 2)) return std::printf("out[%d] is %g\n", i, out[i]), 1;
  std::puts("PASS");
}
