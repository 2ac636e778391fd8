// Questions of docs/design/blackwell_questions.md that a GPU with tcgen05 answers by itself: each line is
// what it did, and what the emulator does. Run by scripts/gpu_blackwell.sh.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void allocate(uint32_t* place, uint32_t columns) {
  asm volatile(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(place)),
      "r"(columns)
      : "memory");
}
__device__ void release(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
}
__device__ void store(uint32_t to, uint32_t word) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(to), "r"(word) : "memory");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
__device__ uint32_t load(uint32_t from) {
  uint32_t word;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(from));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  return word;
}
__device__ void meet() {  // threads, and what each did in tensor memory
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
__device__ void begin_barrier(uint64_t* b) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(b)) : "memory");
}
__device__ void commit(uint64_t* b) {
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(b))
      : "memory");
}
__device__ void await(uint64_t* b) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::
          "r"(shared_address(b))
      : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// 6: where allocations of 64, 32 and 32 columns begin.
__global__ void places(uint32_t* out) {
  __shared__ uint32_t at[3];
  const uint32_t columns[] = {64, 32, 32};
  for (int i = 0; i < 3; ++i) allocate(at + i, columns[i]);
  __syncwarp();
  if (threadIdx.x < 3) out[threadIdx.x] = at[threadIdx.x];
  __syncwarp();
  for (int i = 0; i < 3; ++i) release(at[i], columns[i]);
}

/// 9: rows hold their number; what do they hold after a shift?
__global__ void shift(uint32_t* out) {
  __shared__ uint32_t at;
  __shared__ uint64_t done;
  const uint32_t warp = threadIdx.x / 32;
  if (warp == 0) allocate(&at, 32);
  if (threadIdx.x == 0) begin_barrier(&done);
  meet();
  for (uint32_t column = 0; column < 8; ++column) store(at + (warp << 21) + column, threadIdx.x);
  meet();
  if (threadIdx.x == 0) {
    asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(at) : "memory");
    commit(&done);
  }
  await(&done);
  out[threadIdx.x] = load(at + (warp << 21));
  meet();
  if (warp == 0) release(at, 32);
}

/// 18 and 19: row 0 of A times column 0 of B, 16 products, added to words that hold `before`.
__global__ void product(const __nv_bfloat16* a, const __nv_bfloat16* b, uint32_t instruction, uint32_t before,
                        uint32_t add, uint32_t* out) {
  __shared__ alignas(1024) __nv_bfloat16 left[128 * 16],
      right[32 * 16];  // no swizzle: 8 rows of 16 bytes, twice
  __shared__ uint32_t at;
  __shared__ uint64_t done;
  const uint32_t warp = threadIdx.x / 32;
  auto put = [](__nv_bfloat16* tile, int rows, const __nv_bfloat16* row) {
    for (int i = threadIdx.x; i < rows * 16; i += 128) {
      const int r = i / 16, k = i % 16;
      tile[(k / 8 * rows / 8 + r / 8) * 64 + r % 8 * 8 + k % 8] = r == 0 ? row[k] : __float2bfloat16(0);
    }
  };
  put(left, 128, a), put(right, 32, b);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (warp == 0) allocate(&at, 32);
  if (threadIdx.x == 0) begin_barrier(&done);
  meet();
  for (uint32_t column = 0; column < 32; ++column) store(at + (warp << 21) + column, before);
  meet();
  if (threadIdx.x == 0) {
    // leading dimension: from 8 of k to the next 8; stride: from 8 rows to the next
    auto matrix = [](const void* p, int rows) {
      return static_cast<uint64_t>((shared_address(p) & 0x3ffff) / 16) | static_cast<uint64_t>(rows) << 16 |
             uint64_t{8} << 32 | uint64_t{1} << 46;
    };
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, "
        "p;\n}" ::"r"(at),
        "l"(matrix(left, 128)), "l"(matrix(right, 32)), "r"(instruction), "r"(add));
    commit(&done);
  }
  await(&done);
  const uint32_t word = load(at + (warp << 21));
  if (threadIdx.x == 0) *out = word;
  meet();
  if (warp == 0) release(at, 32);
}

int main() {
  uint32_t* out;
  __nv_bfloat16 *a, *b;
  if (cudaMallocManaged(&out, 128 * sizeof *out) != cudaSuccess) return 2;
  cudaMallocManaged(&a, 16 * sizeof *a);
  cudaMallocManaged(&b, 16 * sizeof *b);
  bool differs = false;
  auto ended = [](const char* question) {
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) std::printf("%s: differs: %s\n", question, cudaGetErrorString(error));
    return error == cudaSuccess;
  };
  auto answer = [&](const char* question, bool agrees) {
    std::printf("%s: %s\n", question, agrees ? "as the emulator does" : "differs");
    differs = differs || !agrees;
  };

  places<<<1, 32>>>(out);
  if (!ended("6")) return 1;
  std::printf("6: 64, 32 and 32 columns begin at %u, %u, %u\n", out[0], out[1], out[2]);
  answer("6", out[0] == 0 && out[1] == 64 && out[2] == 96);

  shift<<<1, 128>>>(out);
  if (!ended("9")) return 1;
  std::printf("9: after a shift rows 0, 1, 30, 31 hold %u, %u, %u, %u\n", out[0], out[1], out[30], out[31]);
  answer("9", out[0] == 1 && out[1] == 2 && out[30] == 31 && out[31] == 31);

  for (int i = 0; i < 16; ++i) a[i] = __float2bfloat16(i == 0 ? 1.0f : 0.0f), b[i] = __float2bfloat16(1);
  // f16 = f16 x f16 has D in 16 bits; bf16 operands need D in f32, so 18 takes 1.0 as f16 bits in both.
  const uint16_t one = 0x3c00, zero = 0;
  for (int i = 0; i < 16; ++i) std::memcpy(a + i, i == 0 ? &one : &zero, 2), std::memcpy(b + i, &one, 2);
  product<<<1, 128>>>(a, b, 32 / 8 << 17 | 128 / 16 << 24, 0xffffffffu, 0, out);
  if (!ended("18")) return 1;
  std::printf("18: a sum of 1 in f16, in a word that was full of ones: %08x\n", out[0]);
  answer("18", out[0] == 0x00003c00u);

  // 2^24 + 1 + 1 … + 1 - 2^24: in order and in fp32 the ones are lost
  for (int i = 0; i < 16; ++i) a[i] = b[i] = __float2bfloat16(1);
  a[0] = b[0] = __float2bfloat16(4096), a[15] = __float2bfloat16(-4096), b[15] = __float2bfloat16(4096);
  product<<<1, 128>>>(a, b, 1 << 4 | 1 << 7 | 1 << 10 | 32 / 8 << 17 | 128 / 16 << 24, 0, 0, out);
  if (!ended("19")) return 1;
  float sum;
  std::memcpy(&sum, out, sizeof sum);
  std::printf("19: 2^24 + 14 ones - 2^24 = %g\n", sum);
  answer("19", sum == 0);
  return differs ? 1 : 0;
}
