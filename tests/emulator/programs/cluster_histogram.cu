// A histogram whose bins are spread over the shared memory of a cluster of two blocks.
#include <cooperative_groups.h>
#include <cstdio>
#include <vector>
namespace cg = cooperative_groups;

constexpr int kBins = 256, kPerBlock = kBins / 2;

__global__ void __cluster_dims__(2, 1, 1) histogram(const int* data, int n, int* bins) {
  __shared__ int mine[kPerBlock];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < kPerBlock; i += blockDim.x) mine[i] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    const int bin = data[i] % kBins;
    int* target = cluster.map_shared_rank(mine, bin / kPerBlock);
    atomicAdd(target + bin % kPerBlock, 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < kPerBlock; i += blockDim.x)
    atomicAdd(&bins[cluster.block_rank() * kPerBlock + i], mine[i]);
}

template <class T>
__global__ void ring(T* out) {  // each block reads its neighbour's value
  __shared__ T value;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = T(cluster.block_rank() * 10 + 1);
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&value, (cluster.block_rank() + 1) % cluster.num_blocks());
  cluster.sync();
}

int main() {
  const int n = 5000;
  std::vector<int> data(n), want(kBins), got(kBins);
  for (int i = 0; i < n; ++i) want[(data[i] = i * 7919 % 1021) % kBins]++;
  int *d, *b;
  cudaMalloc(&d, n * 4);
  cudaMalloc(&b, kBins * 4);
  cudaMemcpy(d, data.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemset(b, 0, kBins * 4);
  histogram<<<4, 128>>>(d, n, b);
  cudaMemcpy(got.data(), b, kBins * 4, cudaMemcpyDeviceToHost);

  float *r, ring_out[8];
  cudaMalloc(&r, sizeof ring_out);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(8);
  config.blockDim = dim3(32);
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = 4;
  attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
  config.attrs = attribute;
  config.numAttrs = 1;
  if (cudaLaunchKernelEx(&config, ring<float>, r) != cudaSuccess) return 1;
  cudaMemcpy(ring_out, r, sizeof ring_out, cudaMemcpyDeviceToHost);
  bool ok = want == got;
  for (int i = 0; i < 8; ++i) ok = ok && ring_out[i] == float((i % 4 + 1) % 4 * 10 + 1);
  printf(ok ? "PASS\n" : "FAIL\n");
  return !ok;
}
