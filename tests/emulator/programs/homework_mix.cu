// Course homework in one file: histogram, convolution with constant mask, Blelloch scan, bitonic sort, BFS,
// stream compaction, sparse matrix-vector product, hash table.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>
template <class T>
T *managed(std::vector<T> const &v) {
  T *p;
  cudaMallocManaged(&p, v.size() * sizeof(T));
  std::copy(v.begin(), v.end(), p);
  return p;
}
__global__ void histogram(unsigned char *buffer, long size, unsigned int *histo) {
  __shared__ unsigned int temp[256];
  temp[threadIdx.x] = 0;
  __syncthreads();
  int i = threadIdx.x + blockIdx.x * blockDim.x, offset = blockDim.x * gridDim.x;
  while (i < size) {
    atomicAdd(&temp[buffer[i]], 1);
    i += offset;
  }
  __syncthreads();
  atomicAdd(&(histo[threadIdx.x]), temp[threadIdx.x]);
}
#define MASK_WIDTH 5
#define TILE_WIDTH 12
__constant__ float M[MASK_WIDTH * MASK_WIDTH];
__global__ void convolution(float *P, const float *N, int height, int width) {
  __shared__ float N_ds[TILE_WIDTH + MASK_WIDTH - 1][TILE_WIDTH + MASK_WIDTH - 1];
  int tx = threadIdx.x, ty = threadIdx.y, row_o = blockIdx.y * TILE_WIDTH + ty, col_o = blockIdx.x * TILE_WIDTH + tx;
  int row_i = row_o - MASK_WIDTH / 2, col_i = col_o - MASK_WIDTH / 2;
  N_ds[ty][tx] = (row_i >= 0 && row_i < height && col_i >= 0 && col_i < width) ? N[row_i * width + col_i] : 0.0f;
  __syncthreads();
  float output = 0.0f;
  if (ty < TILE_WIDTH && tx < TILE_WIDTH) {
    for (int i = 0; i < MASK_WIDTH; i++)
      for (int j = 0; j < MASK_WIDTH; j++) output += M[i * MASK_WIDTH + j] * N_ds[i + ty][j + tx];
    if (row_o < height && col_o < width) P[row_o * width + col_o] = output;
  }
}
__global__ void blelloch(int *data, int n) {
  extern __shared__ int temp[];
  int thid = threadIdx.x, offset = 1;
  temp[2 * thid] = data[2 * thid];
  temp[2 * thid + 1] = data[2 * thid + 1];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (thid < d) temp[offset * (2 * thid + 2) - 1] += temp[offset * (2 * thid + 1) - 1];
    offset *= 2;
  }
  if (thid == 0) temp[n - 1] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1, bi = offset * (2 * thid + 2) - 1, t = temp[ai];
      temp[ai] = temp[bi];
      temp[bi] += t;
    }
  }
  __syncthreads();
  data[2 * thid] = temp[2 * thid];
  data[2 * thid + 1] = temp[2 * thid + 1];
}
__global__ void bitonic_step(float *dev_values, int j, int k) {
  unsigned int i = threadIdx.x + blockDim.x * blockIdx.x, ixj = i ^ j;
  if (ixj > i && ((i & k) == 0) == (dev_values[i] > dev_values[ixj])) {
    float temp = dev_values[i];
    dev_values[i] = dev_values[ixj];
    dev_values[ixj] = temp;
  }
}
__global__ void bfs(const int *row, const int *column, int *level, int n, int depth, int *changed) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n || *(volatile int *)(level + v) != depth) return;
  for (int e = row[v]; e < row[v + 1]; ++e)
    if (atomicCAS(&level[column[e]], -1, depth + 1) == -1) *changed = 1;
}
__global__ void compact(const int *in, int *out, int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool keep = i < n && in[i] % 3 == 0;
  unsigned mask = __ballot_sync(0xffffffff, keep);
  int lane = threadIdx.x & 31, base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(mask));
  base = __shfl_sync(0xffffffff, base, 0);
  if (keep) out[base + __popc(mask & ((1u << lane) - 1))] = in[i];
}
__global__ void spmv_vector(int rows, const int *ptr, const int *idx, const float *val, const float *x, float *y) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  if (warp >= rows) return;
  float sum = 0;
  for (int j = ptr[warp] + lane; j < ptr[warp + 1]; j += 32) sum += val[j] * x[idx[j]];
  for (int o = 16; o; o /= 2) sum += __shfl_down_sync(0xffffffff, sum, o);
  if (lane == 0) y[warp] = sum;
}
struct KeyValue { unsigned key, value; };
const unsigned kEmpty = 0xffffffff, kCapacity = 1024;
__global__ void insert(KeyValue *table, const KeyValue *items, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned slot = items[i].key * 2654435761u & (kCapacity - 1);
  while (true) {
    unsigned prev = atomicCAS(&table[slot].key, kEmpty, items[i].key);
    if (prev == kEmpty || prev == items[i].key) {
      table[slot].value = items[i].value;
      return;
    }
    slot = (slot + 1) & (kCapacity - 1);
  }
}
int main() {
  bool ok = true;
  {
    std::vector<unsigned char> bytes(10000);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = i * i % 251;
    auto b = managed(bytes);
    auto h = managed(std::vector<unsigned>(256, 0));
    histogram<<<4, 256>>>(b, bytes.size(), h);
    cudaDeviceSynchronize();
    std::vector<unsigned> want(256);
    for (auto c : bytes) ++want[c];
    ok = ok && std::equal(want.begin(), want.end(), h);
  }
  {
    const int w = 30, h = 25;
    std::vector<float> image(w * h), mask(25);
    for (int i = 0; i < w * h; ++i) image[i] = i % 10;
    for (int i = 0; i < 25; ++i) mask[i] = i - 12;
    cudaMemcpyToSymbol(M, mask.data(), 25 * sizeof(float));
    auto in = managed(image), out = managed(image);
    dim3 block(TILE_WIDTH + MASK_WIDTH - 1, TILE_WIDTH + MASK_WIDTH - 1), grid((w - 1) / TILE_WIDTH + 1, (h - 1) / TILE_WIDTH + 1, 1);
    convolution<<<grid, block>>>(out, in, h, w);
    cudaDeviceSynchronize();
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        float want = 0;
        for (int i = 0; i < 5; ++i)
          for (int j = 0; j < 5; ++j)
            if (y + i >= 2 && y + i - 2 < h && x + j >= 2 && x + j - 2 < w) want += mask[i * 5 + j] * image[(y + i - 2) * w + x + j - 2];
        ok = ok && out[y * w + x] == want;
      }
  }
  {
    std::vector<int> v(256, 3);
    auto d = managed(v);
    blelloch<<<1, 128, 256 * sizeof(int)>>>(d, 256);
    cudaDeviceSynchronize();
    for (int i = 0; i < 256; ++i) ok = ok && d[i] == 3 * i;
    std::vector<float> f(512);
    for (int i = 0; i < 512; ++i) f[i] = i * 7919 % 512;
    auto s = managed(f);
    for (int k = 2; k <= 512; k <<= 1)
      for (int j = k >> 1; j > 0; j = j >> 1) bitonic_step<<<2, 256>>>(s, j, k);
    cudaDeviceSynchronize();
    ok = ok && std::is_sorted(s, s + 512);
  }
  {
    const int n = 100;
    std::vector<int> row(n + 1), column;
    for (int v = 0; v < n; ++v) {
      if (2 * v + 1 < n) column.push_back(2 * v + 1);
      if (2 * v + 2 < n) column.push_back(2 * v + 2);
      row[v + 1] = column.size();
    }
    auto r = managed(row), c = managed(column), level = managed(std::vector<int>(n, -1)), changed = managed(std::vector<int>(1));
    level[0] = 0;
    for (int depth = 0; depth == 0 || *changed; ++depth) {
      *changed = 0;
      bfs<<<2, 64>>>(r, c, level, n, depth, changed);
      cudaDeviceSynchronize();
    }
    for (int v = 1; v < n; ++v) ok = ok && level[v] == level[(v - 1) / 2] + 1;
    std::vector<int> numbers(1000);
    std::iota(numbers.begin(), numbers.end(), 0);
    auto in = managed(numbers), out = managed(numbers), count = managed(std::vector<int>(1, 0));
    compact<<<8, 128>>>(in, out, count, 1000);
    cudaDeviceSynchronize();
    ok = ok && *count == 334 && std::accumulate(out, out + 334, 0) == 3 * 333 * 334 / 2;
    auto val = managed(std::vector<float>(column.size(), 2.f)), x = managed(std::vector<float>(n, 1.f)), y = managed(std::vector<float>(n, 0.f));
    spmv_vector<<<(n * 32 + 127) / 128, 128>>>(n, r, c, val, x, y);
    cudaDeviceSynchronize();
    for (int v = 0; v < n; ++v) ok = ok && y[v] == 2 * (row[v + 1] - row[v]);
  }
  {
    std::vector<KeyValue> items(500), empty(kCapacity, {kEmpty, kEmpty});
    for (unsigned i = 0; i < 500; ++i) items[i] = {i * 31 % 400, i * 31 % 400 * 2};
    auto t = managed(empty), d = managed(items);
    insert<<<4, 128>>>(t, d, 500);
    cudaDeviceSynchronize();
    int found = 0;
    for (unsigned i = 0; i < kCapacity; ++i)
      if (t[i].key != kEmpty) ok = ok && t[i].value == 2 * t[i].key, ++found;
    ok = ok && found == 400;
  }
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
