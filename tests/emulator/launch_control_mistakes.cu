// A block that takes over others' work, right with the argument 0; each other number makes one mistake.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__global__ void take_over(int mistake, int* worked) {
  __shared__ __align__(16) unsigned char answer[48];
  __shared__ uint64_t told;
  const uint32_t to = shared_address(answer) + (mistake == 1 ? 8 : 0), barrier = shared_address(&told);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
  uint32_t at = blockIdx.x, canceled = 1, seen_failure = 0;
  for (uint32_t parity = 0;; parity ^= 1) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(barrier) : "memory");
    if (mistake == 2)
      asm volatile("clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"l"(worked), "l"(&told) : "memory");
    else
      asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(to), "r"(barrier) : "memory");
    if (!seen_failure) atomicAdd(worked + at, 1);
    if (mistake != 3)
      asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier), "r"(parity) : "memory");
    asm volatile(
        "{\n.reg .b128 handle;\n.reg .pred p;\nld.shared.b128 handle, [%1];\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, handle;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(canceled)
        : "r"(to)
        : "memory");
    if (canceled || mistake == 4)
      asm volatile("{\n.reg .b128 handle;\nld.shared.b128 handle, [%1];\nclusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, handle;\n}" : "=r"(at) : "r"(to) : "memory");
    if (!canceled && (mistake != 5 || seen_failure++)) break;
  }
}

/// The first block asks for both when the second has left.
__global__ void __cluster_dims__(2, 1, 1) alone(int* worked) {
  __shared__ ulonglong2 answer;
  __shared__ uint64_t told;
  atomicAdd(worked + blockIdx.x, 1);
  if (blockIdx.x % 2) {
    atomicAdd(worked + 8, 1);
    return;
  }
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&told)) : "memory");
  while (*static_cast<volatile int*>(worked + 8) == 0) __nanosleep(100);
  for (int i = 0; i < 1000; ++i) __nanosleep(100);
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%0], [%1];" ::"r"(shared_address(&answer)), "r"(shared_address(&told)) : "memory");
}

int main(int, char** arguments) {
  const int mistake = std::atoi(arguments[1]);
  int* worked;
  cudaMallocManaged(&worked, 9 * sizeof(int));
  for (int i = 0; i < 9; ++i) worked[i] = 0;
  if (mistake == 6)
    alone<<<2, 1>>>(worked);
  else
    take_over<<<8, 1>>>(mistake, worked);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  for (int i = 0; i < 8; ++i)
    if (worked[i] != 1) return std::printf("index %d was worked on %d times\n", i, worked[i]), 1;
  std::puts("PASS");
}
