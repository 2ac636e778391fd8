// Thrust through its C++ back end, mixed with kernels on the same memory; CUB's primitives of blocks, warps
// and the device.
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <algorithm>
#include <cstdio>
#include <cub/block/block_scan.cuh>
#include <cub/cub.cuh>

static bool right = true;
static void expect(bool holds, const char* what) {
  if (!holds) printf("wrong: %s\n", what);
  right = right && holds;
}

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct IsOdd {
  __host__ __device__ bool operator()(int x) const { return x % 2; }
};
__global__ void twice(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= 2;
}

__global__ void block_primitives(const int* in, int* sums, int* scans, int* sorted) {
  typedef cub::BlockReduce<int, 64> Reduce;
  using Scan = cub::BlockScan<int, 64>;
  using Sort = cub::BlockRadixSort<int, 64, 2>;
  using Load = cub::BlockLoad<int, 64, 2, cub::BLOCK_LOAD_TRANSPOSE>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    Scan::TempStorage scan;
    Sort::TempStorage sort;
    Load::TempStorage load;
  } storage;
  int items[2], before, all;
  Load(storage.load).Load(in, items);
  __syncthreads();
  const int sum = Reduce(storage.reduce).Sum(items);
  if (threadIdx.x == 0) sums[0] = sum;
  __syncthreads();
  const int largest = Reduce(storage.reduce).Reduce(items[1], cub::Max());
  if (threadIdx.x == 0) sums[1] = largest;
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(items[0], before, all);
  scans[threadIdx.x] = before;
  if (threadIdx.x == 5) sums[2] = all;
  __syncthreads();
  Sort(storage.sort).Sort(items);
  cub::BlockStore<int, 64, 2>().Store(sorted, items);
}
__global__ void block_histogram(const unsigned char* in, unsigned* bins) {
  using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 256, cub::BLOCK_HISTO_ATOMIC>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ unsigned counts[256];
  unsigned char items[4];
  for (int i = 0; i < 4; ++i) items[i] = in[threadIdx.x * 4 + i];
  Histogram(storage).Histogram(items, counts);
  __syncthreads();
  Histogram(storage).Composite(items, counts);
  __syncthreads();
  for (int bin = threadIdx.x; bin < 256; bin += 64) bins[bin] = counts[bin];
}
__global__ void warp_primitives(int* out) {
  __shared__ cub::WarpReduce<int>::TempStorage reduce[2];
  __shared__ cub::WarpScan<int>::TempStorage scan[2];
  const int warp = threadIdx.x / 32;
  const int sum = cub::WarpReduce<int>(reduce[warp]).Sum(threadIdx.x);
  int below;
  cub::WarpScan<int>(scan[warp]).ExclusiveSum(1, below);
  if (threadIdx.x % 32 == 0) out[warp] = sum;
  if (threadIdx.x % 32 == 9) out[2 + warp] = below;
}

int main() {
  const int n = 1000;
  thrust::device_vector<int> v(n);
  thrust::host_vector<int> h(n);
  for (int i = 0; i < n; ++i) h[i] = i * 37 % n;
  v = h;
  thrust::sort(v.begin(), v.end());
  expect(v[5] == 5 && v[n - 1] == n - 1, "thrust::sort");
  twice<<<4, 256>>>(thrust::raw_pointer_cast(v.data()), n);
  cudaDeviceSynchronize();
  expect(thrust::reduce(v.begin(), v.end(), 0, thrust::plus<int>()) == n * (n - 1),
         "thrust::reduce behind a kernel");
  thrust::transform(v.begin(), v.end(), v.begin(), Square());
  expect(v[3] == 36, "thrust::transform");

  int* raw;
  cudaMalloc(&raw, n * sizeof(int));
  cudaMemset(raw, 0, n * sizeof(int));
  cudaDeviceSynchronize();
  thrust::device_ptr<int> wrapped(raw);
  thrust::sequence(wrapped, wrapped + n, 1);
  thrust::exclusive_scan(thrust::device, raw, raw + n, raw);
  int last;
  cudaMemcpy(&last, raw + n - 1, sizeof last, cudaMemcpyDeviceToHost);
  expect(last == n * (n - 1) / 2, "thrust::exclusive_scan of memory of cudaMalloc");

  int *in, *out, *scans, *sorted;
  cudaMallocManaged(&in, n * sizeof(int));
  cudaMallocManaged(&out, n * sizeof(int));
  cudaMallocManaged(&scans, 64 * sizeof(int));
  cudaMallocManaged(&sorted, 128 * sizeof(int));
  for (int i = 0; i < n; ++i) in[i] = i * 7 % 128;
  block_primitives<<<1, 64>>>(in, out, scans, sorted);
  expect(cudaDeviceSynchronize() == cudaSuccess, "a kernel with CUB");
  int even = 0;
  for (int i = 0; i < 64; ++i) {
    expect(scans[i] == even, "cub::BlockScan");
    even += in[2 * i];
  }
  expect(out[0] == 127 * 64 && out[1] == 127 && out[2] == even, "cub::BlockReduce");
  for (int i = 0; i < 128; ++i) expect(sorted[i] == i, "cub::BlockRadixSort");
  unsigned char* bytes_in;
  unsigned* bins;
  cudaMallocManaged(&bytes_in, 256);
  cudaMallocManaged(&bins, 256 * sizeof(unsigned));
  for (int i = 0; i < 256; ++i) bytes_in[i] = static_cast<unsigned char>(i * i % 7);
  block_histogram<<<1, 64>>>(bytes_in, bins);
  cudaDeviceSynchronize();
  for (int bin = 0; bin < 256; ++bin)
    expect(bins[bin] == 2u * static_cast<unsigned>(std::count(bytes_in, bytes_in + 256, bin)),
           "cub::BlockHistogram");
  warp_primitives<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  expect(out[0] == 31 * 16 && out[1] == 31 * 16 + 32 * 32 && out[2] == 9 && out[3] == 9,
         "cub::WarpReduce, cub::WarpScan");

  cudaStream_t stream;
  cudaStreamCreate(&stream);
  void* storage = nullptr;
  size_t bytes = 0;
  expect(cub::DeviceReduce::Sum(storage, bytes, in, out, n, stream) == cudaSuccess && bytes > 0,
         "the size of storage");
  cudaMalloc(&storage, bytes);
  cub::DeviceReduce::Sum(storage, bytes, in, out, n, stream);
  cub::DeviceReduce::Max(storage, bytes, in, out + 1, n, stream);
  cub::DeviceSelect::If(storage, bytes, in, out + 16, out + 2, n, IsOdd(), stream);
  cudaStreamSynchronize(stream);
  int sum = 0, odd = 0;
  for (int i = 0; i < n; ++i) sum += in[i], odd += in[i] % 2;
  expect(out[0] == sum && out[1] == 127 && out[2] == odd && out[16] == 7,
         "cub::DeviceReduce, cub::DeviceSelect");
  cub::DeviceScan::ExclusiveSum(storage, bytes, in, out, n);
  cudaDeviceSynchronize();
  expect(out[0] == 0 && out[n - 1] == sum - in[n - 1], "cub::DeviceScan");
  cub::DeviceRadixSort::SortPairsDescending(storage, bytes, in, out, in, raw, n);
  cub::DeviceHistogram::HistogramEven(storage, bytes, in, sorted, 5, 0, 128, n);
  cudaDeviceSynchronize();
  expect(out[0] == 127 && out[n - 1] == 0, "cub::DeviceRadixSort");
  expect(sorted[0] + sorted[1] + sorted[2] + sorted[3] == n && sorted[0] >= 240 && sorted[3] >= 240,
         "cub::DeviceHistogram");
  puts(right ? "PASS" : "FAIL");
  return !right;
}
