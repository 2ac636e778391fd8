// The reductions of a well-known lecture: interleaved, sequential, first add, unrolled template, shuffles,
// last block.
#include <cstdio>
#include <cstdlib>
template <class T>
struct SharedMemory {
  __device__ inline operator T *() {
    extern __shared__ int __smem[];
    return (T *)__smem;
  }
};
template <class T>
__global__ void reduce1(T *g_idata, T *g_odata, unsigned int n) {
  T *sdata = SharedMemory<T>();
  unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = (i < n) ? g_idata[i] : 0;
  __syncthreads();
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    int index = 2 * s * tid;
    if (index < blockDim.x) sdata[index] += sdata[index + s];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}
template <class T, unsigned int blockSize>
__global__ void reduce2(T *g_idata, T *g_odata, unsigned int n) {
  T *sdata = SharedMemory<T>();
  unsigned int tid = threadIdx.x, i = blockIdx.x * (blockSize * 2) + tid, gridSize = blockSize * 2 * gridDim.x;
  T sum = 0;
  while (i < n) {
    sum += g_idata[i];
    if (i + blockSize < n) sum += g_idata[i + blockSize];
    i += gridSize;
  }
  sdata[tid] = sum;
  __syncthreads();
  if (blockSize >= 512 && tid < 256) sdata[tid] = sum = sum + sdata[tid + 256];
  __syncthreads();
  if (blockSize >= 256 && tid < 128) sdata[tid] = sum = sum + sdata[tid + 128];
  __syncthreads();
  if (blockSize >= 128 && tid < 64) sdata[tid] = sum = sum + sdata[tid + 64];
  __syncthreads();
  if (tid < 32) {
    if (blockSize >= 64) sum += sdata[tid + 32];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  }
  if (tid == 0) g_odata[blockIdx.x] = sum;
}
__device__ unsigned int finished = 0;
__global__ void single_pass(const float *in, volatile float *partial, float *out, int n) {
  __shared__ bool last;
  __shared__ float warp_sum[32];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
  auto block_sum = [&](float x) {
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    if (threadIdx.x % 32 == 0) warp_sum[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x < blockDim.x / 32 ? warp_sum[threadIdx.x] : 0;
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    __syncthreads();
    return x;
  };
  v = block_sum(v);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = v;
    __threadfence();
    last = atomicInc(&finished, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    float x = block_sum(threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0.f);
    if (threadIdx.x == 0) {
      *out = x;
      finished = 0;
    }
  }
}
template <class T>
bool check(unsigned n) {
  T *in, *out;
  cudaMallocManaged(&in, n * sizeof(T));
  cudaMallocManaged(&out, 1024 * sizeof(T));
  T want = 0;
  for (unsigned i = 0; i < n; ++i) want += in[i] = T(i % 17);
  auto total = [&](int blocks) {
    cudaDeviceSynchronize();
    T sum = 0;
    for (int i = 0; i < blocks; ++i) sum += out[i];
    return sum == want;
  };
  int blocks = (n + 255) / 256;
  reduce1<T><<<blocks, 256, 256 * sizeof(T)>>>(in, out, n);
  bool ok = total(blocks);
  switch (256) {
    case 256: reduce2<T, 256><<<8, 256, 256 * sizeof(T)>>>(in, out, n); break;
    case 512: reduce2<T, 512><<<8, 512, 512 * sizeof(T)>>>(in, out, n); break;
  }
  return total(8) && ok;
}
int main() {
  float *in, *out;
  cudaMallocManaged(&in, 3000 * 4);
  cudaMallocManaged(&out, 100 * 4);
  for (int i = 0; i < 3000; ++i) in[i] = 1;
  bool ok = check<int>(5000) && check<float>(4999) && check<double>(100);
  for (int round = 0; round < 2; ++round) {
    single_pass<<<8, 128>>>(in, out + 1, out, 3000);
    ok = ok && cudaDeviceSynchronize() == cudaSuccess && out[0] == 3000;
  }
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
