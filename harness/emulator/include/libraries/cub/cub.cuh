#pragma once
#pragma GCC system_header
// CUB on the CPU. Primitives of blocks and warps exchange through their TempStorage: one thread combines, in
// order, between barriers. Device-wide algorithms are loops, each in a launch of its own. Results are those
// that CUB promises: a reduction's is thread 0's alone, and storage may be used again only behind a barrier.
#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "../../capstone_emulator/atomics.h"
#include "../../capstone_emulator/library.h"
#include "../../capstone_emulator/synchronisation.h"

namespace cub {

struct Sum {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
template <class Key, class Value>
struct KeyValuePair {
  Key key;
  Value value;
  KeyValuePair() = default;
  KeyValuePair(const Key& k, const Value& v) : key(k), value(v) {}
};
struct ArgMax {
  template <class K, class V>
  KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const {
    return a.value < b.value || (!(b.value < a.value) && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class K, class V>
  KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const {
    return b.value < a.value || (!(a.value < b.value) && b.key < a.key) ? b : a;
  }
};
template <class T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE
};

namespace detail {
inline int rank() { return static_cast<int>(capstone_emu::thread_state.linear); }
inline int lane() { return static_cast<int>(capstone_emu::thread_state.lane); }
/// Which of the block's elements is the thread's i-th.
template <bool kStriped, int kThreads, int kItems>
int place(int i) {
  return kStriped ? i * kThreads + rank() : rank() * kItems + i;
}
template <class T, int N, class Op>
T combined(const T (&items)[N], Op op) {
  T all = items[0];
  for (int i = 1; i < N; ++i) all = op(all, items[i]);
  return all;
}
}  // namespace detail

// ---- blocks -----------------------------------------------------------------------------------------------
template <class T, int kX, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int kY = 1, int kZ = 1,
          int = 0>
class BlockReduce {
 public:
  struct TempStorage {
    T part[kX * kY * kZ];
  };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}
  template <class Op>
  T Reduce(T value, Op op, int valid = kX * kY * kZ) {
    storage_.part[detail::rank()] = value;
    __syncthreads();
    if (detail::rank() != 0) return value;
    for (int i = 1; i < valid; ++i) value = op(value, storage_.part[i]);
    return value;
  }
  template <int N, class Op>
  T Reduce(T (&items)[N], Op op) {
    return Reduce(detail::combined(items, op), op);
  }
  T Sum(T value, int valid = kX * kY * kZ) { return Reduce(value, cub::Sum(), valid); }
  template <int N>
  T Sum(T (&items)[N]) {
    return Reduce(items, cub::Sum());
  }

 private:
  TempStorage& storage_;
};

template <class T, int kX, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int kY = 1, int kZ = 1, int = 0>
class BlockScan {
  static constexpr int kThreads = kX * kY * kZ;

 public:
  struct TempStorage {
    T part[kThreads + 1];  // behind: the sum of all
  };
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}
  template <class Op>
  void InclusiveScan(T in, T& out, Op op, T& all) {
    storage_.part[detail::rank()] = in;
    __syncthreads();
    if (detail::rank() == 0) {
      for (int i = 1; i < kThreads; ++i) storage_.part[i] = op(storage_.part[i - 1], storage_.part[i]);
      storage_.part[kThreads] = storage_.part[kThreads - 1];
    }
    __syncthreads();
    out = storage_.part[detail::rank()];
    all = storage_.part[kThreads];
  }
  template <class Op>
  void InclusiveScan(T in, T& out, Op op) {
    T all;
    InclusiveScan(in, out, op, all);
  }
  template <class Op>
  void ExclusiveScan(T in, T& out, T initial, Op op, T& all) {
    T inclusive;
    InclusiveScan(in, inclusive, op, all);
    out = detail::rank() == 0 ? initial : op(initial, storage_.part[detail::rank() - 1]);
  }
  template <class Op>
  void ExclusiveScan(T in, T& out, T initial, Op op) {
    T all;
    ExclusiveScan(in, out, initial, op, all);
  }
  void InclusiveSum(T in, T& out) { InclusiveScan(in, out, cub::Sum()); }
  void InclusiveSum(T in, T& out, T& all) { InclusiveScan(in, out, cub::Sum(), all); }
  void ExclusiveSum(T in, T& out) { ExclusiveScan(in, out, T{}, cub::Sum()); }
  void ExclusiveSum(T in, T& out, T& all) { ExclusiveScan(in, out, T{}, cub::Sum(), all); }
  template <int N>
  void ExclusiveSum(T (&in)[N], T (&out)[N], T& all) {
    T before;
    ExclusiveSum(detail::combined(in, cub::Sum()), before, all);
    for (int i = 0; i < N; ++i) out[i] = std::exchange(before, before + in[i]);
  }
  template <int N>
  void ExclusiveSum(T (&in)[N], T (&out)[N]) {
    T all;
    ExclusiveSum(in, out, all);
  }
  template <int N>
  void InclusiveSum(T (&in)[N], T (&out)[N]) {
    T before;
    ExclusiveSum(detail::combined(in, cub::Sum()), before);
    for (int i = 0; i < N; ++i) out[i] = before = before + in[i];
  }

 private:
  TempStorage& storage_;
};

template <class Key, int kX, int kItems, class Value = int>
class BlockRadixSort {
 public:
  struct TempStorage {
    Key key[kX * kItems];
    Value value[kX * kItems];
  };
  explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}
  void Sort(Key (&keys)[kItems]) {
    Value none[kItems] = {};
    sort(keys, none, false);
  }
  void SortDescending(Key (&keys)[kItems]) {
    Value none[kItems] = {};
    sort(keys, none, true);
  }
  void Sort(Key (&keys)[kItems], Value (&values)[kItems]) { sort(keys, values, false); }
  void SortDescending(Key (&keys)[kItems], Value (&values)[kItems]) { sort(keys, values, true); }

 private:
  void sort(Key (&keys)[kItems], Value (&values)[kItems], bool descending) {
    const int first = detail::rank() * kItems;
    for (int i = 0; i < kItems; ++i) storage_.key[first + i] = keys[i], storage_.value[first + i] = values[i];
    __syncthreads();
    if (detail::rank() == 0)  // insertion is stable and needs no memory
      for (int i = 1; i < kX * kItems; ++i)
        for (int k = i; k > 0 && (descending ? storage_.key[k - 1] < storage_.key[k]
                                             : storage_.key[k] < storage_.key[k - 1]);
             --k) {
          std::swap(storage_.key[k], storage_.key[k - 1]);
          std::swap(storage_.value[k], storage_.value[k - 1]);
        }
    __syncthreads();
    for (int i = 0; i < kItems; ++i) keys[i] = storage_.key[first + i], values[i] = storage_.value[first + i];
  }
  TempStorage& storage_;
};

/// Counts with atomics whatever the algorithm: so the histogram may lie in shared or global memory, and its
/// counters are of a type that atomicAdd() takes.
template <class T, int kX, int kItems, int kBins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int kY = 1,
          int kZ = 1>
class BlockHistogram {
 public:
  struct TempStorage {};
  BlockHistogram() = default;
  explicit BlockHistogram(TempStorage&) {}
  template <class Counter>
  void InitHistogram(Counter (&histogram)[kBins]) {
    for (int bin = detail::rank(); bin < kBins; bin += kX * kY * kZ) histogram[bin] = 0;
  }
  template <class Counter>
  void Composite(T (&items)[kItems], Counter (&histogram)[kBins]) {
    for (const T& item : items) atomicAdd(&histogram[item], Counter{1});
  }
  template <class Counter>
  void Histogram(T (&items)[kItems], Counter (&histogram)[kBins]) {
    InitHistogram(histogram);
    __syncthreads();
    Composite(items, histogram);
  }
};

template <class T, int kX, int kItems, BlockLoadAlgorithm kHow = BLOCK_LOAD_DIRECT, int kY = 1, int kZ = 1>
class BlockLoad {
 public:
  struct TempStorage {};
  BlockLoad() = default;
  explicit BlockLoad(TempStorage&) {}
  template <class Iterator>
  void Load(Iterator from, T (&items)[kItems], int valid = kX * kY * kZ * kItems) {
    for (int i = 0; i < kItems; ++i)
      if (const int at = place(i); at < valid) items[i] = from[at];
  }
  template <class Iterator, class Default>
  void Load(Iterator from, T (&items)[kItems], int valid, Default otherwise) {
    for (int i = 0; i < kItems; ++i) items[i] = place(i) < valid ? static_cast<T>(from[place(i)]) : otherwise;
  }

 private:
  static int place(int i) { return detail::place<kHow == BLOCK_LOAD_STRIPED, kX * kY * kZ, kItems>(i); }
};
template <class T, int kX, int kItems, BlockStoreAlgorithm kHow = BLOCK_STORE_DIRECT, int kY = 1, int kZ = 1>
class BlockStore {
 public:
  struct TempStorage {};
  BlockStore() = default;
  explicit BlockStore(TempStorage&) {}
  template <class Iterator>
  void Store(Iterator to, T (&items)[kItems], int valid = kX * kY * kZ * kItems) {
    for (int i = 0; i < kItems; ++i) {
      const int at = detail::place<kHow == BLOCK_STORE_STRIPED, kX * kY * kZ, kItems>(i);
      if (at < valid) to[at] = items[i];
    }
  }
};

// ---- warps ------------------------------------------------------------------------------------------------
template <class T, int kWidth = 32>
class WarpReduce {
 public:
  struct TempStorage {
    T part[kWidth];
  };
  explicit WarpReduce(TempStorage& storage) : storage_(storage) {}
  template <class Op>
  T Reduce(T value, Op op, int valid = kWidth) {
    const int lane = detail::lane() % kWidth;
    storage_.part[lane] = value;
    __syncwarp();
    for (int i = 1; lane == 0 && i < valid; ++i) value = op(value, storage_.part[i]);
    __syncwarp();
    return value;
  }
  T Sum(T value, int valid = kWidth) { return Reduce(value, cub::Sum(), valid); }

 private:
  TempStorage& storage_;
};
template <class T, int kWidth = 32>
class WarpScan {
 public:
  struct TempStorage {
    T part[kWidth];
  };
  explicit WarpScan(TempStorage& storage) : storage_(storage) {}
  template <class Op>
  void InclusiveScan(T in, T& out, Op op) {
    const int lane = detail::lane() % kWidth;
    storage_.part[lane] = in;
    __syncwarp();
    T sum = storage_.part[0];
    for (int i = 1; i <= lane; ++i) sum = op(sum, storage_.part[i]);
    __syncwarp();
    out = sum;
  }
  void InclusiveSum(T in, T& out) { InclusiveScan(in, out, cub::Sum()); }
  void ExclusiveSum(T in, T& out) {
    const int lane = detail::lane() % kWidth;
    storage_.part[lane] = in;
    __syncwarp();
    T sum{};
    for (int i = 0; i < lane; ++i) sum = sum + storage_.part[i];
    __syncwarp();
    out = sum;
  }

 private:
  TempStorage& storage_;
};

// ---- the whole device: called first without storage, to ask for its size ----------------------------------
namespace detail {
template <class Body>
cudaError_t run(const char* name, void* storage, std::size_t& bytes, cudaStream_t stream, Body body) {
  if (!storage) {
    bytes = 1;
    return cudaSuccess;
  }
  capstone_emu::library::run(name, stream, dim3(1), [=](dim3) mutable { body(); });
  return static_cast<cudaError_t>(capstone_emu::last_error());
}
template <class Iterator>
using Value = typename std::iterator_traits<Iterator>::value_type;
}  // namespace detail

struct DeviceReduce {
  template <class In, class Out, class Op, class T>
  static cudaError_t Reduce(void* storage, std::size_t& bytes, In in, Out out, int n, Op op, T initial,
                            cudaStream_t stream = nullptr) {
    return detail::run("cub::DeviceReduce::Reduce", storage, bytes, stream, [=] {
      T all = initial;
      for (int i = 0; i < n; ++i) all = op(all, in[i]);
      *out = all;
    });
  }
  template <class In, class Out>
  static cudaError_t Sum(void* storage, std::size_t& bytes, In in, Out out, int n,
                         cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, n, cub::Sum(), detail::Value<In>{}, stream);
  }
  template <class In, class Out>
  static cudaError_t Min(void* storage, std::size_t& bytes, In in, Out out, int n,
                         cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, n, cub::Min(), std::numeric_limits<detail::Value<In>>::max(),
                  stream);
  }
  template <class In, class Out>
  static cudaError_t Max(void* storage, std::size_t& bytes, In in, Out out, int n,
                         cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, n, cub::Max(), std::numeric_limits<detail::Value<In>>::lowest(),
                  stream);
  }
};

struct DeviceScan {
  template <class In, class Out, class Op, class T>
  static cudaError_t ExclusiveScan(void* storage, std::size_t& bytes, In in, Out out, Op op, T initial, int n,
                                   cudaStream_t stream = nullptr) {
    return detail::run("cub::DeviceScan::ExclusiveScan", storage, bytes, stream, [=] {
      T before = initial;
      for (int i = 0; i < n; ++i) {
        const T next = op(before, in[i]);  // the input may be overwritten
        out[i] = before;
        before = next;
      }
    });
  }
  template <class In, class Out, class Op>
  static cudaError_t InclusiveScan(void* storage, std::size_t& bytes, In in, Out out, Op op, int n,
                                   cudaStream_t stream = nullptr) {
    return detail::run("cub::DeviceScan::InclusiveScan", storage, bytes, stream, [=] {
      detail::Value<In> sum{};
      for (int i = 0; i < n; ++i) out[i] = sum = i ? op(sum, in[i]) : in[i];
    });
  }
  template <class In, class Out>
  static cudaError_t ExclusiveSum(void* storage, std::size_t& bytes, In in, Out out, int n,
                                  cudaStream_t stream = nullptr) {
    return ExclusiveScan(storage, bytes, in, out, cub::Sum(), detail::Value<In>{}, n, stream);
  }
  template <class In, class Out>
  static cudaError_t InclusiveSum(void* storage, std::size_t& bytes, In in, Out out, int n,
                                  cudaStream_t stream = nullptr) {
    return InclusiveScan(storage, bytes, in, out, cub::Sum(), n, stream);
  }
};

/// By whole keys: parts of their bits are not taken.
struct DeviceRadixSort {
  template <class K, class V>
  static cudaError_t SortPairs(void* storage, std::size_t& bytes, const K* keys, K* sorted, const V* values,
                               V* moved, int n, int = 0, int = sizeof(K) * 8, cudaStream_t stream = nullptr) {
    return sort(storage, bytes, keys, sorted, values, moved, n, stream,
                [](const K& a, const K& b) { return a < b; });
  }
  template <class K, class V>
  static cudaError_t SortPairsDescending(void* storage, std::size_t& bytes, const K* keys, K* sorted,
                                         const V* values, V* moved, int n, int = 0, int = sizeof(K) * 8,
                                         cudaStream_t stream = nullptr) {
    return sort(storage, bytes, keys, sorted, values, moved, n, stream,
                [](const K& a, const K& b) { return b < a; });
  }
  template <class K>
  static cudaError_t SortKeys(void* storage, std::size_t& bytes, const K* keys, K* sorted, int n, int = 0,
                              int = sizeof(K) * 8, cudaStream_t stream = nullptr) {
    const char* const none = nullptr;
    return sort(storage, bytes, keys, sorted, none, static_cast<char*>(nullptr), n, stream,
                [](const K& a, const K& b) { return a < b; });
  }
  template <class K>
  static cudaError_t SortKeysDescending(void* storage, std::size_t& bytes, const K* keys, K* sorted, int n,
                                        int = 0, int = sizeof(K) * 8, cudaStream_t stream = nullptr) {
    const char* const none = nullptr;
    return sort(storage, bytes, keys, sorted, none, static_cast<char*>(nullptr), n, stream,
                [](const K& a, const K& b) { return b < a; });
  }

 private:
  template <class K, class V, class Before>
  static cudaError_t sort(void* storage, std::size_t& bytes, const K* keys, K* sorted, const V* values,
                          V* moved, int n, cudaStream_t stream, Before before) {
    return detail::run("cub::DeviceRadixSort", storage, bytes, stream, [=] {
      std::vector<int> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int a, int b) {  // equal keys keep their order
        return before(keys[a], keys[b]) || (!before(keys[b], keys[a]) && a < b);
      });
      for (int i = 0; i < n; ++i) {
        sorted[i] = keys[order[i]];
        if (values) moved[i] = values[order[i]];
      }
    });
  }
};

struct DeviceSelect {
  template <class In, class Out, class Count, class Wanted>
  static cudaError_t If(void* storage, std::size_t& bytes, In in, Out out, Count count, int n, Wanted wanted,
                        cudaStream_t stream = nullptr) {
    return select(storage, bytes, in, out, count, n, stream, [=](int i) mutable { return wanted(in[i]); });
  }
  template <class In, class Flags, class Out, class Count>
  static cudaError_t Flagged(void* storage, std::size_t& bytes, In in, Flags flags, Out out, Count count,
                             int n, cudaStream_t stream = nullptr) {
    return select(storage, bytes, in, out, count, n, stream, [=](int i) { return flags[i] != 0; });
  }
  template <class In, class Out, class Count>
  static cudaError_t Unique(void* storage, std::size_t& bytes, In in, Out out, Count count, int n,
                            cudaStream_t stream = nullptr) {
    return select(storage, bytes, in, out, count, n, stream,
                  [=](int i) { return i == 0 || !(in[i] == in[i - 1]); });
  }

 private:
  template <class In, class Out, class Count, class Wanted>
  static cudaError_t select(void* storage, std::size_t& bytes, In in, Out out, Count count, int n,
                            cudaStream_t stream, Wanted wanted) {
    return detail::run("cub::DeviceSelect", storage, bytes, stream, [=]() mutable {
      int kept = 0;
      for (int i = 0; i < n; ++i)
        if (wanted(i)) out[kept++] = in[i];
      *count = kept;
    });
  }
};

struct DeviceHistogram {
  /// levels - 1 bins of the same width from `lower` up to, and without, `upper`.
  template <class In, class Counter, class Level>
  static cudaError_t HistogramEven(void* storage, std::size_t& bytes, In in, Counter* bins, int levels,
                                   Level lower, Level upper, int n, cudaStream_t stream = nullptr) {
    return detail::run("cub::DeviceHistogram::HistogramEven", storage, bytes, stream, [=] {
      for (int b = 0; b < levels - 1; ++b) bins[b] = 0;
      for (int i = 0; i < n; ++i)
        if (!(in[i] < lower) && in[i] < upper)
          ++bins[static_cast<int>((static_cast<double>(in[i]) - lower) * (levels - 1) /
                                  (static_cast<double>(upper) - lower))];
    });
  }
};

}  // namespace cub
