// Integer, bit, warp and packed intrinsics against values worked out by hand.
#include <cstdio>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

__device__ int failed;
#define EXPECT(...)                                                             \
  do {                                                                          \
    if (!(__VA_ARGS__)) {                                                       \
      if (threadIdx.x == 0) printf("line %d: %s\n", __LINE__, #__VA_ARGS__);    \
      failed = 1;                                                               \
    }                                                                           \
  } while (0)

__global__ void tour(float* scratch, unsigned* words) {
  const unsigned full = 0xffffffffu, lane = threadIdx.x;
  EXPECT(__reduce_add_sync(full, lane) == 496);
  EXPECT(__reduce_max_sync(full, int(lane) - 40) == -9);
  EXPECT(__reduce_or_sync(full, 1u << lane) == full);
  EXPECT(__match_any_sync(full, lane & 3) == 0x11111111u << (lane & 3));
  int all;
  EXPECT(__match_all_sync(full, 7, &all) == full && all);
  EXPECT(__activemask() == full);
  EXPECT(__shfl_sync(full, lane * 2, 5) == 10 && __shfl_xor_sync(full, lane, 1) == (lane ^ 1));
  EXPECT(__shfl_up_sync(full, lane, 2, 8) == (lane % 8 < 2 ? lane : lane - 2));
  EXPECT(__dp4a(0x01020304, 0x01010101, 5) == 15 && __dp4a(0xff000000u, 0x02000000u, 1u) == 511);
  EXPECT(__dp2a_lo(0x00020003, 0x0000'0405, 1) == 3 * 5 + 2 * 4 + 1);
  EXPECT(__byte_perm(0x03020100, 0x07060504, 0x7531) == 0x07050301);
  EXPECT(__byte_perm(0x81, 0, 0x0008) == 0x81818181);  // prmt would repeat the sign of the first byte
  EXPECT(__funnelshift_l(0x80000000u, 1u, 1) == 3 && __funnelshift_r(2u, 1u, 1) == 0x80000001u);
  EXPECT(__funnelshift_lc(5u, 9u, 40) == 5u);
  EXPECT(__brev(1u) == 0x80000000u && __popc(0xf0f0u) == 8 && __clz(1) == 31 && __ffs(8) == 4);
  EXPECT(__umulhi(0x80000000u, 4u) == 2 && __mul24(3, -4) == -12 && __sad(3, -4, 1) == 8);
  EXPECT(__hadd(7, 8) == 7 && __rhadd(7, 8) == 8 && __uhadd(7u, 8u) == 7);
  EXPECT(__vadd4(0x01020304u, 0x01010101u) == 0x02030405u && __vmaxu4(0x01ff0001u, 0x02010002u) == 0x02ff0002u);
  EXPECT(__float2int_rn(2.5f) == 2 && __float2int_ru(2.1f) == 3 && __float_as_int(1.f) == 0x3f800000);
  EXPECT(__fmul_rn(3.f, 2.f) == 6 && __saturatef(1.5f) == 1 && rsqrtf(4.f) == 0.5f && __frcp_rn(4.f) == 0.25f);
  EXPECT(__ldg(&scratch[lane]) == lane && __ldcs(&scratch[1]) == 1);
  __stcg(&scratch[32 + lane], float(lane));
  __stwt(&scratch[64 + lane], 2.f);
  EXPECT(scratch[32 + lane] == lane && scratch[64 + lane] == 2);
  atomicAdd(&words[0], 1u);
  atomicMax(&words[1], lane);
  atomicInc(&words[2], 20u);
  atomicCAS_block(&words[3], 0u, 9u);
  atomicXor(&words[4], 1u << lane);
  atomicAdd_system(&words[5], 2u);
  atomicAdd(reinterpret_cast<half2*>(&words[6]), __floats2half2_rn(1.f, 2.f));
  atomicAdd(reinterpret_cast<__nv_bfloat162*>(&words[7]), __floats2bfloat162_rn(1.f, 3.f));
  unsigned short* small = reinterpret_cast<unsigned short*>(&words[8]);
  atomicCAS(small, (unsigned short)0, (unsigned short)3);
  __syncwarp();
  EXPECT(words[0] == 32 && words[1] == 31 && words[2] == 32 % 21 && words[3] == 9 && words[4] == full && words[5] == 64);
  EXPECT(__low2float(*reinterpret_cast<half2*>(&words[6])) == 32 && __high2float(*reinterpret_cast<half2*>(&words[6])) == 64);
  EXPECT(__high2float(*reinterpret_cast<__nv_bfloat162*>(&words[7])) == 96 && *small == 3);
  half2 h = __hfma2(__float2half2_rn(2.f), __floats2half2_rn(3.f, 4.f), __float2half2_rn(1.f));
  EXPECT(__low2float(h) == 7 && __high2float(h) == 9);
  EXPECT(__half2float(__hadd(__float2half(1.5f), __float2half(2.f))) == 3.5f && __hgt(__float2half(2.f), __float2half(1.f)));
  EXPECT(__half2float(hsqrt(__float2half(16.f))) == 4 && __half2float(__hmax(__float2half(1.f), __float2half(2.f))) == 2);
  EXPECT(__bfloat162float(__float2bfloat16(1.0f / 3)) == 0.333984375f);
  __nv_fp8_e4m3 e(3.3f);
  __nv_fp8_e5m2 f(3.3f);
  EXPECT(float(e) == 3.25f && float(f) == 3.5f);
  long long t0 = clock64();
  __nanosleep(10);
  EXPECT(clock64() >= t0 && clock() >= 0);
  EXPECT(__isShared(&scratch[0]) == 0 && __isGlobal(&scratch[0]));
  unsigned id, size;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  asm volatile("{ .reg .u32 t1; mov.u32 t1, %%ntid.x; add.u32 %0, t1, 1; }" : "=r"(size));
  EXPECT(id == lane && size == 33);
  unsigned neighbour;
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(neighbour) : "r"(lane));
  EXPECT(neighbour == (lane ^ 1));
  unsigned ballot;
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 4; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(ballot) : "r"(lane));
  EXPECT(ballot == 15);
}

int main() {
  float* scratch;
  unsigned* words;
  cudaMallocManaged(&scratch, 96 * 4);
  cudaMallocManaged(&words, 64);
  cudaMemset(words, 0, 64);
  for (int i = 0; i < 32; ++i) scratch[i] = float(i);
  tour<<<1, 32>>>(scratch, words);
  int bad = 1;
  cudaError_t error = cudaDeviceSynchronize();
  cudaMemcpyFromSymbol(&bad, failed, sizeof bad);
  puts(bad || error ? "FAIL" : "PASS");
  return bad;
}
