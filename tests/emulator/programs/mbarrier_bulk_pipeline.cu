// A warp-specialised pipeline: one producer warp fills stages with cp.async.bulk, the others consume; full
// and empty mbarriers in PTX, waited for with a loop in the assembly.
#include <cstdint>
#include <cstdio>
#include <vector>

__device__ __forceinline__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void barrier_init(uint64_t* bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(bar)), "r"(count));
}
__device__ __forceinline__ void barrier_wait(uint64_t* bar, int phase) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra.uni DONE;\n"
      "bra.uni LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(smem(bar)), "r"(phase));
}
__device__ __forceinline__ void arrive(uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(bar)) : "memory");
}
__device__ __forceinline__ void expect(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(smem(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(smem(to)),
               "l"(from), "r"(bytes), "r"(smem(bar))
               : "memory");
}

constexpr int kStages = 3, kTile = 256, kConsumers = 128;

__global__ void scale(const float* in, float* out, int tiles) {
  __shared__ alignas(128) float buffer[kStages][kTile];
  __shared__ alignas(128) float result[kTile];
  __shared__ alignas(8) uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], kConsumers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    uint32_t leader;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(leader));
    if (leader)
      for (int i = 0; i < tiles; ++i) {
        int s = i % kStages, round = i / kStages;
        barrier_wait(&empty[s], (round & 1) ^ 1);
        expect(&full[s], kTile * sizeof(float));
        bulk_load(buffer[s], in + i * kTile, kTile * sizeof(float), &full[s]);
      }
  } else {
    const int t = threadIdx.x - 32;
    for (int i = 0; i < tiles; ++i) {
      int s = i % kStages, round = i / kStages;
      barrier_wait(&full[s], round & 1);
      for (int k = t; k < kTile; k += kConsumers) result[k] = buffer[s][k] * 2.f;
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("bar.sync 1, 128;" ::: "memory");
      if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + i * kTile), "r"(smem(result)),
                     "r"(int(kTile * sizeof(float))) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      }
      asm volatile("bar.sync 1, 128;" ::: "memory");
      arrive(&empty[s]);
    }
  }
}

int main() {
  const int tiles = 10, n = tiles * kTile;
  std::vector<float> host(n), back(n);
  for (int i = 0; i < n; ++i) host[i] = float(i % 1000);
  float *in, *out;
  cudaMalloc(&in, n * 4);
  cudaMalloc(&out, n * 4);
  cudaMemcpy(in, host.data(), n * 4, cudaMemcpyHostToDevice);
  scale<<<1, 32 + kConsumers>>>(in, out, tiles);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  cudaMemcpy(back.data(), out, n * 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i)
    if (back[i] != 2 * host[i]) {
      printf("FAIL at %d: %f\n", i, back[i]);
      return 1;
    }
  printf("PASS\n");
}
