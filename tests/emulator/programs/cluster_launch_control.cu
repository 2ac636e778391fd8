// clusterlaunchcontrol: blocks that take over the work of clusters that have not started (PTX ISA 9.0, 9.7.13.17 and
// .18). Whatever the requests answer, each index of the grid must be worked on exactly once.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

struct Index {
  uint32_t x, y, z;
};

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void begin_barrier(uint64_t* b) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(b)) : "memory"); }
__device__ void expect_answer(uint64_t* b) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(shared_address(b)) : "memory");
}
__device__ void wait(uint64_t* b, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(shared_address(b)), "r"(parity) : "memory");
}
__device__ void ask(ulonglong2* answer, uint64_t* b) {
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(shared_address(answer)), "r"(shared_address(b)) : "memory");
}
__device__ void ask_for_cluster(ulonglong2* answer, uint64_t* b) {
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%0], [%1];" ::"r"(shared_address(answer)), "r"(shared_address(b)) : "memory");
}
/// Loaded in the assembly, all coordinates at once.
__device__ bool answered(const ulonglong2* answer, Index& at) {
  uint32_t yes;
  asm volatile(
      "{\n.reg .b128 handle;\n.reg .pred p;\nld.shared.b128 handle, [%4];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, handle;\nselp.u32 %0, 1, 0, p;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, %2, %3, _}, handle;\n}"
      : "=r"(yes), "+r"(at.x), "+r"(at.y), "+r"(at.z)
      : "r"(shared_address(answer))
      : "memory");
  return yes;
}
/// From two registers of 64 bits, one coordinate at a time.
__device__ bool answered_by_parts(const ulonglong2& answer, Index& at) {
  uint32_t yes;
  asm volatile(
      "{\n.reg .b128 handle;\n.reg .pred p;\nmov.b128 handle, {%4, %5};\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, handle;\nselp.u32 %0, 1, 0, p;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, handle;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %2, handle;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %3, handle;\n}"
      : "=r"(yes), "+r"(at.x), "+r"(at.y), "+r"(at.z)
      : "l"(answer.x), "l"(answer.y));
  return yes;
}

/// A request at a time, while the block works.
template <bool kByParts>
__global__ void take_over(int* worked) {
  __shared__ ulonglong2 answer;
  __shared__ uint64_t told;
  if (threadIdx.x == 0) begin_barrier(&told);
  __syncthreads();
  Index at{blockIdx.x, blockIdx.y, blockIdx.z};
  for (uint32_t parity = 0;; parity ^= 1) {
    if (threadIdx.x == 0) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the answer before was read by ordinary loads
      expect_answer(&told);
      ask(&answer, &told);
      atomicAdd(worked + (at.z * gridDim.y + at.y) * gridDim.x + at.x, 1);
    }
    wait(&told, parity);
    if (!(kByParts ? answered_by_parts(answer, at) : answered(&answer, at))) break;
    __syncthreads();
  }
}

/// Two requests on the way before the first is looked at: the second may fail unseen.
__global__ void two_at_once(int* worked) {
  __shared__ ulonglong2 answers[2];
  __shared__ uint64_t told[2];
  for (int i = 0; i < 2; ++i) {
    begin_barrier(told + i);
    expect_answer(told + i);
    ask(answers + i, told + i);
  }
  atomicAdd(worked + blockIdx.x, 1);
  for (int i = 0; i < 2; ++i) {
    Index at{};
    wait(told + i, 0);
    if (answered(answers + i, at)) atomicAdd(worked + at.x, 1);
  }
}

/// A pair of blocks: the first asks, both get the answer.
__global__ void __cluster_dims__(2, 1, 1) pairs(int* worked) {
  __shared__ ulonglong2 answer;
  __shared__ uint64_t told;
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  begin_barrier(&told);
  Index at{blockIdx.x, 0, 0};
  for (uint32_t parity = 0;; parity ^= 1) {
    asm volatile("fence.proxy.async.shared::cta;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    expect_answer(&told);
    // The other block may only be told of an answer when it expects one.
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    if (rank == 0) ask_for_cluster(&answer, &told);
    atomicAdd(worked + at.x, 1);
    wait(&told, parity);
    if (!answered(&answer, at)) break;
    at.x += rank;
  }
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

template <class Launch>
int wrong(const char* name, int count, Launch launch) {
  int* worked;
  cudaMallocManaged(&worked, count * sizeof(int));
  for (int i = 0; i < count; ++i) worked[i] = 0;
  launch(worked);
  int bad = cudaDeviceSynchronize() != cudaSuccess;
  for (int i = 0; i < count; ++i) bad += worked[i] != 1;
  if (bad) std::printf("%s: %d wrong\n", name, bad);
  return bad;
}

int main() {
  const int bad = wrong("a line", 37, [](int* worked) { take_over<false><<<37, 64>>>(worked); }) +
                  wrong("three dimensions", 60, [](int* worked) { take_over<true><<<dim3(3, 4, 5), 32>>>(worked); }) +
                  wrong("two at once", 30, [](int* worked) { two_at_once<<<30, 1>>>(worked); }) +
                  wrong("pairs", 24, [](int* worked) { pairs<<<24, 1>>>(worked); });
  std::puts(bad ? "FAIL" : "PASS");
}
