// Cooperative groups of every size: tiles, run-time partitions, labels, scans, reductions over blocks and
// large tiles.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdio>
namespace cg = cooperative_groups;

__device__ int sum_of(cg::thread_group g, int* scratch, int value) {
  const int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    scratch[lane] = value;
    g.sync();
    if (lane < i) value += scratch[lane + i];
    g.sync();
  }
  return value;
}

__global__ void groups(int* out) {
  __shared__ int scratch[128];
  auto block = cg::this_thread_block();
  int whole = sum_of(block, scratch, threadIdx.x);
  if (block.thread_rank() == 0) out[0] = whole;  // 8128
  cg::thread_group tile = cg::tiled_partition(cg::thread_group(block), 16);
  int part = sum_of(tile, scratch + threadIdx.x / 16 * 16, 1);
  if (threadIdx.x == 16) out[1] = part;  // 16
  auto warp = cg::tiled_partition<32>(block);
  auto eight = cg::tiled_partition<8>(warp);
  int reduced = cg::reduce(eight, int(threadIdx.x), cg::greater<int>());
  if (threadIdx.x == 40) out[2] = reduced;  // 47
  if (threadIdx.x == 41) out[3] = eight.meta_group_rank() * 10 + eight.meta_group_size();  // 1 * 10 + 4
  int inclusive = cg::inclusive_scan(warp, 2), exclusive = cg::exclusive_scan(warp, int(threadIdx.x % 32), cg::plus<int>());
  if (threadIdx.x == 33) out[4] = inclusive;   // 4
  if (threadIdx.x == 36) out[5] = exclusive;   // 0+1+2+3
  auto label = cg::labeled_partition(warp, threadIdx.x % 3);
  if (threadIdx.x == 3) out[6] = label.size();  // lanes 0, 3 … 30: 11
  auto half = cg::binary_partition(warp, threadIdx.x % 32 < 20);
  int halves = cg::reduce(half, 1, cg::plus<int>());
  if (threadIdx.x == 31) out[7] = halves;  // 12
  __shared__ cg::block_tile_memory<128> exchange;
  auto big = cg::tiled_partition<64>(cg::this_thread_block(exchange));
  int far = cg::reduce(big, int(threadIdx.x), cg::plus<int>());
  if (threadIdx.x == 64) out[8] = far;  // 64..127
  if (threadIdx.x % 4 == 1) {
    auto active = cg::coalesced_threads();
    int first = active.shfl(int(threadIdx.x), 0);
    if (active.thread_rank() == active.size() - 1 && threadIdx.x < 32) out[9] = first * 100 + active.size();  // 108
  }
  warp.sync();
  int votes = __popc(warp.ballot(threadIdx.x & 1)) + warp.any(threadIdx.x == 5) + warp.all(1);
  if (threadIdx.x == 0) out[10] = votes;  // 18
  cg::invoke_one(block, [&] { out[11] = 7; });
  auto self = cg::this_thread();
  self.sync();
  if (threadIdx.x == 77) out[12] = self.size() * 10 + self.thread_rank();  // 10
}

int main() {
  int *d, h[13];
  cudaMalloc(&d, sizeof h);
  groups<<<1, 128>>>(d);
  cudaError_t error = cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  const int want[13] = {8128, 16, 47, 14, 4, 6, 11, 12, 6112, 108, 18, 7, 10};
  for (int i = 0; i < 13; ++i)
    if (h[i] != want[i] || error) {
      printf("FAIL: out[%d] = %d, not %d\n", i, h[i], want[i]);
      return 1;
    }
  puts("PASS");
}
