// Rung 3: one read. The row stays in registers, and the first digit has eleven bits that spread the values.
//
// Changed     a thread keeps 32 elements as keys. The first digit is made for numbers of ordinary size: a
//             sign, sixteen octaves from 2^-7 to 2^8, 64 steps in each; what lies outside falls into the
//             outermost bins. The bin of the k-th element then holds a few dozen candidates. They go into a
//             list in shared memory, and each thread counts how many candidates are ahead of its own: no
//             further digits. Only if more than 256 share the bin, further digits follow. The places of the
//             chosen come from one scan for all elements of a thread.
// Why         rung 2 reads a row five times, from caches but with all its instructions, and its first eight
//             bits (sign and most of the exponent) put all elements into a handful of bins, where the
//             additions wait for each other.
// Prediction  168 MB at 4096 x 8192 are 37 us at the speed of a copy; 8192 atomic additions a row, 32 rows a
//             multiprocessor, are 20 to 30 us of its time, which four blocks overlap with loads: 60 us.
// Came        115 us on an H100, 1199 GB/s, 1.82 times the rung before. 182 % of the native baseline.
//
// Shapes      x [rows, n], length [rows], indices [rows, k].
// Launch      <<<rows, 256, 512 or 1024>>>: a thread for 32 elements.
// Resources   64 registers; 11 KB of shared memory, no workspace.
// Cost        one read of x (rows above 32768: a read for each pass), one write of indices.
// Divides     n % 4 == 0 for loads of 16 bytes; otherwise 4 bytes.
// Source      this project; radix select with a wide first digit is common in serving libraries.
#include <cuda_runtime.h>

#include <cstdint>

using Key = unsigned long long;
constexpr int kVectors = 8, kElements = 4 * kVectors;  // of a thread
constexpr int kBins = 2048, kMostCandidates = 256;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr unsigned kMissing = 0;  // below the key of every number

/// A whole number that orders as the float does; -0 and 0 have the same.
__device__ unsigned ordered(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);
  return bits ^ (static_cast<unsigned>(static_cast<int>(bits) >> 31) | 0x80000000u);
}

// ---- the first digit: a monotone map of keys to bins ------------------------------------------------------
constexpr int kSteps = 1024, kDrop = 17;  // bins of a sign; bits of a step
constexpr unsigned kLeast = (127u - 7) << 23, kMost = kLeast + (16u << 23) - 1;  // 2^-7 and almost 2^9
/// The bits of the magnitude: of a key above, or below, that of 0.
__device__ unsigned magnitude(unsigned key) { return key >> 31 ? key & 0x7fffffffu : 0x7fffffffu - key; }
__device__ int first_digit(unsigned key) {
  const int step = static_cast<int>((min(max(magnitude(key), kLeast), kMost) - kLeast) >> kDrop);
  return key >> 31 ? kSteps + step : kSteps - 1 - step;
}

/// Keys from `low` to `high`, both included.
struct Range {
  unsigned low, high;
};
__device__ Range range_of_first_digit(int digit) {
  const unsigned step = digit >= kSteps ? digit - kSteps : kSteps - 1 - digit;
  const unsigned low = step == 0 ? 0 : kLeast + (step << kDrop);
  const unsigned high = step == kSteps - 1 ? 0x7fffffffu : kLeast + ((step + 1) << kDrop) - 1;
  if (digit >= kSteps) return {0x80000000u + low, 0x80000000u + high};
  return {max(0x7fffffffu - high, kMissing + 1), 0x7fffffffu - low};
}

/// The sum over all earlier threads of the block.
template <int kThreads>
__device__ int sum_before(int value) {
  __shared__ int of_warp[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int inclusive = value;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int below = __shfl_up_sync(kAllLanes, inclusive, offset);
    if (lane >= offset) inclusive += below;
  }
  if (lane == 31) of_warp[warp] = inclusive;
  __syncthreads();  // the sums of all warps
  int before = inclusive - value;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w)
    if (w < warp) before += of_warp[w];
  return before;
}

/// A thread's part of a row, or of kThreads * kElements elements of a longer one.
template <int kThreads>
struct Row {
  static constexpr int64_t kChunk = int64_t{kThreads} * kElements;
  const float* at;
  int64_t valid;
  bool vectors;
  unsigned key[kElements];

  __device__ int64_t chunks() const { return (valid + kChunk - 1) / kChunk; }
  __device__ static unsigned index(int64_t chunk, int i) {
    return static_cast<unsigned>(chunk * kChunk + (i / 4 * kThreads + threadIdx.x) * 4 + i % 4);
  }
  __device__ void fetch(int64_t chunk) {
#pragma unroll
    for (int j = 0; j < kVectors; ++j) {
      const int64_t first = index(chunk, 4 * j);
      float4 v{};
      if (vectors && first + 4 <= valid) {
        v = __ldg(reinterpret_cast<const float4*>(at + first));
      } else {
        if (first < valid) v.x = at[first];
        if (first + 1 < valid) v.y = at[first + 1];
        if (first + 2 < valid) v.z = at[first + 2];
        if (first + 3 < valid) v.w = at[first + 3];
      }
      key[4 * j] = first < valid ? ordered(v.x) : kMissing;
      key[4 * j + 1] = first + 1 < valid ? ordered(v.y) : kMissing;
      key[4 * j + 2] = first + 2 < valid ? ordered(v.z) : kMissing;
      key[4 * j + 3] = first + 3 < valid ? ordered(v.w) : kMissing;
    }
  }
  /// Calls f(key, index) for each element that exists; a row of one chunk is there already.
  template <class F>
  __device__ void each(F f) {
    const int64_t count = chunks();
    for (int64_t chunk = 0; chunk < count; ++chunk) {
      if (count > 1) fetch(chunk);
#pragma unroll
      for (int i = 0; i < kElements; ++i)
        if (key[i] != kMissing) f(key[i], index(chunk, i));
    }
  }
};

/// Finds the bin, from the highest down, in which the wanted-th element lies.
struct Found {
  int bin, wanted, count;  // `wanted` of the `count` elements in the bin
};
template <int kThreads>
__device__ Found find_bin(const int* counts, int wanted) {
  __shared__ Found found;
  constexpr int kOwn = kBins / kThreads;
  const int top = kBins - 1 - static_cast<int>(threadIdx.x) * kOwn;
  int own = 0;
  using Pair = int2;  // wide loads: lanes that are 32 bytes apart would meet in few banks
#pragma unroll
  for (int b = 1; b < kOwn; b += 2) {
    const Pair two = *reinterpret_cast<const Pair*>(&counts[top - b]);
    own += two.x + two.y;
  }
  int above = sum_before<kThreads>(own);
  if (above < wanted && above + own >= wanted) {
    int bin = top;
    while (above + counts[bin] < wanted) above += counts[bin--];
    found = {bin, wanted - above, counts[bin]};
  }
  __syncthreads();  // one thread has found the bin
  return found;
}

template <int kThreads>
__device__ void clear(int* counts) {
#pragma unroll
  for (int b = 0; b < kBins; b += kThreads) counts[b + threadIdx.x] = 0;
}

/// The place of the k-th element: those with a larger key, or the same key and at most this index, are
/// chosen.
struct Last {
  unsigned key, index;
};

/// Further digits, while too many elements share a bin. It reads the row again; elements with the same key
/// are told apart by index.
template <int kThreads>
__device__ Found narrow(const Row<kThreads>& row, int* counts, Found found, Range& range, bool& by_index,
                        unsigned& same) {
  while (found.count > kMostCandidates) {
    if (range.low == range.high && !by_index) {  // all have one key: go on with the index, upside down
      by_index = true;
      same = range.low;
      range = {0xffffffffu - static_cast<unsigned>(row.valid - 1), 0xffffffffu};
    }
    const unsigned span = range.high - range.low;
    const int bits = 32 - __clz(static_cast<int>(span)), shift = bits > 11 ? bits - 11 : 0;
    __syncthreads();  // all have read the counters, and what was found
    clear<kThreads>(counts);
    __syncthreads();  // the counters are clear
    for (unsigned i = threadIdx.x; i < row.valid; i += kThreads) {
      const unsigned key = ordered(row.at[i]), above = (by_index ? ~i : key) - range.low;
      if (above <= span && (!by_index || key == same)) atomicAdd(&counts[above >> shift], 1);
    }
    __syncthreads();  // all are counted
    found = find_bin<kThreads>(counts, found.wanted);
    range.low += static_cast<unsigned>(found.bin) << shift;
    range.high = min(range.high, range.low + ((1u << shift) - 1));
  }
  return found;
}

template <int kThreads>
__device__ Last find_last(Row<kThreads>& row, int k) {
  __shared__ __align__(16) int counts[kBins];
  __shared__ Key candidates[kMostCandidates];
  __shared__ int candidate_count;
  __shared__ Key last;
  row.fetch(0);
  clear<kThreads>(counts);
  if (threadIdx.x == 0) candidate_count = 0;
  __syncthreads();  // the counters are clear
  row.each([&](unsigned key, unsigned) { atomicAdd(&counts[first_digit(key)], 1); });
  __syncthreads();  // all are counted
  Found found = find_bin<kThreads>(counts, k);
  Range range = range_of_first_digit(found.bin);
  bool by_index = false;
  unsigned same = 0;
  if (found.count > kMostCandidates) {
    found = narrow(row, counts, found, range, by_index, same);
    row.fetch(0);  // no register holds the keys meanwhile
  }

  const unsigned span = range.high - range.low;
  row.each([&](unsigned key, unsigned index) {
    if (by_index && key != same) return;
    if ((by_index ? ~index : key) - range.low <= span)
      candidates[atomicAdd(&candidate_count, 1)] = Key{key} << 32 | ~index;
  });
  __syncthreads();  // the list is complete
  if (threadIdx.x < found.count) {
    const Key own = candidates[threadIdx.x];
    int ahead = 0;
    for (int i = 0; i < found.count; ++i) ahead += candidates[i] > own;
    if (ahead == found.wanted - 1) last = own;
  }
  __syncthreads();  // one thread has found the last one
  return {static_cast<unsigned>(last >> 32), ~static_cast<unsigned>(last)};
}

/// Writes the indices of a chunk's chosen elements in order; returns how many.
template <int kThreads>
__device__ int write_chosen(const Row<kThreads>& row, int64_t chunk, Last last, int* out) {
  constexpr int kWarps = kThreads / 32, kEntries = kVectors * kWarps, kOwn = kEntries / 32;
  __shared__ int places[kEntries];  // vector by vector, and warp by warp within
  __shared__ int all;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned chosen = 0, packed[2] = {0, 0};  // a bit an element; a byte a vector
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    const bool is =
        row.key[i] > last.key || (row.key[i] == last.key && Row<kThreads>::index(chunk, i) <= last.index);
    chosen |= static_cast<unsigned>(is) << i;
    packed[i / 16] += static_cast<unsigned>(is) << (i % 16 / 4 * 8);
  }
  unsigned inclusive[2] = {packed[0], packed[1]};
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned below = __shfl_up_sync(kAllLanes, inclusive[half], offset);
      if (lane >= offset) inclusive[half] += below;
    }
  if (lane == 31)
#pragma unroll
    for (int j = 0; j < kVectors; ++j) places[j * kWarps + warp] = inclusive[j / 4] >> (j % 4 * 8) & 255;
  __syncthreads();  // the counts of all warps
  if (warp == 0) {
    int own[kOwn], sum = 0;
#pragma unroll
    for (int e = 0; e < kOwn; ++e) own[e] = places[lane * kOwn + e], sum += own[e];
    int before = sum;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int below = __shfl_up_sync(kAllLanes, before, offset);
      if (lane >= offset) before += below;
    }
    if (lane == 31) all = before;
    before -= sum;
#pragma unroll
    for (int e = 0; e < kOwn; ++e) places[lane * kOwn + e] = before, before += own[e];
  }
  __syncthreads();  // the places of all warps
#pragma unroll
  for (int j = 0; j < kVectors; ++j) {
    int place = places[j * kWarps + warp] + ((inclusive[j / 4] - packed[j / 4]) >> (j % 4 * 8) & 255);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (chosen >> (4 * j + e) & 1) out[place++] = static_cast<int>(Row<kThreads>::index(chunk, 4 * j + e));
  }
  return all;
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    topk(const float* __restrict__ x, const int* __restrict__ length, int* __restrict__ indices, int64_t n,
         int64_t k) {
  int* out = indices + blockIdx.x * k;
  const int64_t valid = length[blockIdx.x] < n ? length[blockIdx.x] : n;
  if (valid <= k) {  // all of them
    for (int64_t i = threadIdx.x; i < k; i += kThreads) out[i] = i < valid ? static_cast<int>(i) : -1;
    return;
  }
  Row<kThreads> row{x + blockIdx.x * n, valid, n % 4 == 0};
  const Last last = find_last(row, static_cast<int>(k));
  const int64_t chunks = row.chunks();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (chunks > 1) row.fetch(chunk);
    out += write_chosen(row, chunk, last, out);
    __syncthreads();  // `places` and `all` may be used again
  }
}

extern "C" void launch(const float* x /*[rows,n]*/, const int32_t* length /*[rows]*/,
                       int32_t* indices /*[rows,k]*/, int64_t rows, int64_t n, int64_t k, void* /*workspace*/,
                       cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(rows);
  if (n <= Row<256>::kChunk)
    topk<256><<<blocks, 256, 0, stream>>>(x, length, indices, n, k);
  else if (n <= Row<512>::kChunk)
    topk<512><<<blocks, 512, 0, stream>>>(x, length, indices, n, k);
  else
    topk<1024><<<blocks, 1024, 0, stream>>>(x, length, indices, n, k);
}
