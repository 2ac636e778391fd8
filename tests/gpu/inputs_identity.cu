// Proves on a GPU that device and host make the same bits: every dtype, every kind of draw, every variation
// of the battery, poison, fingerprints, and our rounding against CUDA's. Prints PASS or FAIL for each; exits
// 1 on a FAIL.
//
// Stand-alone, linked with the host libraries of a build tree $B:
//   nvcc -std=c++20 -O2 -arch=native -I. tests/gpu/inputs_identity.cu -o inputs_identity
//        $B/harness/correctness/libcapstone_correctness.a $B/harness/model/libcapstone_model.a
//        $B/harness/base/libcapstone_base.a -lmuparser -lyaml-cpp -lfmt -lcrypto -lsqlite3 -ldl
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "harness/correctness/inputs.h"

namespace {

using namespace capstone;

constexpr std::int64_t kElements = (1 << 20) + 13;  // not a multiple of a block or a vector
constexpr int kThreads = 256;
constexpr DType kTypes[] = {DType::kF32,    DType::kF16,    DType::kBF16, DType::kE4M3,
                            DType::kE5M2,   DType::kI32,    DType::kI64,  DType::kU8,
                            DType::kInt4x2, DType::kE2M1x2, DType::kE8M0};
constexpr int kRounded = 5;  // types whose rounding CUDA has, too

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}

/// Device memory of one test.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void* data() const { return data_; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> host(bytes_);
    check(cudaMemcpy(host.data(), data_, bytes_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void fill_kernel(random::Draw draw, DType type, void* tensor, std::int64_t count) {
  if (const std::int64_t i = thread_index(); i < count) random::store_drawn_unit(draw, type, tensor, i);
}

__global__ void poison_kernel(DType type, std::uint64_t seed, void* tensor, std::int64_t count) {
  if (const std::int64_t i = thread_index(); i < count) random::store_poison(type, seed, tensor, i);
}

__global__ void fingerprint_kernel(const std::uint64_t* words, std::int64_t count, std::uint64_t seed,
                                   unsigned long long* total) {
  if (const std::int64_t i = thread_index(); i < count)
    atomicAdd(total, static_cast<unsigned long long>(
                         random::fingerprint_of(words[i], static_cast<std::uint64_t>(i), seed)));
}

/// Counts the floats, of all 2^32, for which our rounding and CUDA's differ.
__global__ void rounding_kernel(unsigned long long* differences) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  unsigned long long mine[kRounded] = {};
  for (std::uint64_t bits = static_cast<std::uint64_t>(thread_index()); bits < (std::uint64_t{1} << 32);
       bits += stride) {
    const float value = __uint_as_float(static_cast<unsigned>(bits));
    mine[0] += narrow::to_f16(value) != __half_as_ushort(__float2half_rn(value));
    mine[1] += narrow::to_bf16(value) != __bfloat16_as_ushort(__float2bfloat16_rn(value));
    mine[2] += narrow::to_e4m3(value) != __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    mine[3] += narrow::to_e5m2(value) != __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
    mine[4] += narrow::to_e2m1(value) != __nv_cvt_float_to_fp4(value, __NV_E2M1, cudaRoundNearest);
  }
  for (int type = 0; type < kRounded; ++type) atomicAdd(&differences[type], mine[type]);
}

int blocks_for(std::int64_t count) { return static_cast<int>((count + kThreads - 1) / kThreads); }

bool report(bool passed, const std::string& what) {
  std::printf("%s %s\n", passed ? "PASS" : "FAIL", what.c_str());
  return passed;
}

/// One input x [n] of a type and init.
Problem problem_of(DType type, Init init) {
  Problem problem;
  problem.id = "identity";
  problem.symbols = {"n"};
  Parameter x;
  x.name = "x";
  x.dtype = type;
  x.shape = {Expression{"n"}};
  if (std::holds_alternative<InitGenerator>(init)) {  // a matrix of about as many
    x.shape = {Expression{"1021"}, Expression{"1021"}};
    if (type == DType::kU8) x.shape = {Expression{"1601"}, Expression{"656"}};
  }
  x.init = std::move(init);
  problem.signature = {x};
  return problem;
}

bool same_fill(DType type, const Init& init, Battery battery, std::uint64_t seed) {
  const Problem problem = problem_of(type, init);
  const Sizes sizes = {{"n", kElements}};
  const std::int64_t elements = elements_at(problem.signature[0], sizes).value();
  const auto draw = draw_of(problem, 0, sizes, seed, battery);
  std::vector<std::byte> host(bytes_of(type, elements));
  if (!draw || !*draw || !fill_tensor(problem, 0, sizes, seed, battery, host)) return false;
  DeviceBytes device(host.size());
  const auto units = static_cast<std::int64_t>(units_of(type, elements));
  fill_kernel<<<blocks_for(units), kThreads>>>(**draw, type, device.data(), units);
  check(cudaGetLastError(), "fill_kernel");
  return device.read() == host;
}

bool fills(DType type) {
  bool same = true;
  std::vector<Init> inits = {InitInteger{0, 7}, InitChoice{{0, 1, 3}}};
  if (is_float(type)) {
    inits = {InitNormal{0, 1},    InitNormal{0.25, 3}, InitUniform{-1, 1},
             InitUniform{0, 0.1}, InitInteger{-4, 4},  InitChoice{{-0.5, 0, 2}}};
  }
  if (type == DType::kE8M0) inits = {InitUniform{0.1, 9}, InitChoice{{0.25, 1, 1024}}};
  if (is_float(type) && type != DType::kE8M0)
    for (const char* structure : {"upper_triangular", "lower_triangular", "symmetric", "rows_sum_to_one",
                                  "zipf_rows", "mixed_magnitudes"})
      inits.push_back(InitGenerator{structure});
  if (type == DType::kU8) inits.push_back(InitGenerator{"latent_tokens"});
  std::uint64_t seed = 0x0123456789abcdefull;
  for (const Init& init : inits)
    for (const Battery battery : kBatteries)
      same &= same_fill(type, init, battery, seed += 0x9e3779b97f4a7c15ull);
  return report(same, "fill " + std::string(name_of(type)));
}

__global__ void unused_kernel(random::UnusedSlots unused, DType type, void* cache, const std::int32_t* table,
                              const std::int32_t* lengths, std::int64_t count) {
  const std::int64_t i = thread_index();
  if (i >= count) return;
  const std::int64_t entry = i / (unused.slots * unused.row);
  unused.poison(type, cache, i, table[entry], lengths[entry / unused.pages_each]);
}

/// A cache in pages: drawn, then poisoned where no sequence has a token.
bool paged_caches(DType type) {
  const auto tensor = [](const char* name, DType dtype, std::vector<Expression> shape, Init init) {
    Parameter parameter;
    parameter.name = name;
    parameter.dtype = dtype;
    parameter.shape = std::move(shape);
    parameter.init = std::move(init);
    return parameter;
  };
  Problem problem;
  problem.id = "identity";
  problem.symbols = {"n"};
  problem.signature = {
      tensor("cache", type, {Expression{"7 * n"}, Expression{"5"}, Expression{"3"}},
             InitPages{"table", "lengths"}),
      tensor("table", DType::kI32, {Expression{"7"}, Expression{"n"}}, InitGenerator{"page_table"}),
      tensor("lengths", DType::kI32, {Expression{"7"}}, InitLengths{Expression{"0"}, Expression{"5 * n"}})};
  constexpr std::int64_t kPages = 7 * 301, kCount = kPages * 15;
  const Sizes sizes = {{"n", kPages / 7}};
  std::vector<std::byte> host(bytes_of(type, kCount)), table(4 * kPages), lengths(4 * 7);
  if (!fill_tensor(problem, 0, sizes, 3, Battery::kPlain, host) ||
      !fill_tensor(problem, 1, sizes, 3, Battery::kPlain, table) ||
      !fill_tensor(problem, 2, sizes, 3, Battery::kPlain, lengths))
    return report(false, "cache in pages");
  const auto draw = draw_of(problem, 0, sizes, 3, Battery::kPlain);
  const auto cache = paged_cache_of(problem, 0, sizes, 3);
  if (!draw || !*draw || !cache || !*cache) return report(false, "cache in pages");
  DeviceBytes device(host.size()), device_table(table.size()), device_lengths(lengths.size());
  check(cudaMemcpy(device_table.data(), table.data(), table.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemcpy(device_lengths.data(), lengths.data(), lengths.size(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  fill_kernel<<<blocks_for(kCount), kThreads>>>(**draw, type, device.data(), kCount);
  unused_kernel<<<blocks_for(kCount), kThreads>>>(
      (*cache)->unused, type, device.data(), static_cast<const std::int32_t*>(device_table.data()),
      static_cast<const std::int32_t*>(device_lengths.data()), kCount);
  check(cudaGetLastError(), "unused_kernel");
  return report(device.read() == host, "cache in pages " + std::string(name_of(type)));
}

bool poisons(DType type) {
  const auto units = static_cast<std::int64_t>(units_of(type, kElements));
  std::vector<std::byte> host(bytes_of(type, kElements));
  poison(host, type, 99);
  DeviceBytes device(host.size());
  poison_kernel<<<blocks_for(units), kThreads>>>(type, 99, device.data(), units);
  check(cudaGetLastError(), "poison_kernel");
  return report(device.read() == host, "poison " + std::string(name_of(type)));
}

bool fingerprints() {
  constexpr std::int64_t kWords = 100003;
  std::vector<std::byte> host(8 * kWords);
  poison_bytes(host, 5);
  DeviceBytes device(host.size()), total(8);
  check(cudaMemcpy(device.data(), host.data(), host.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemset(total.data(), 0, 8), "cudaMemset");
  fingerprint_kernel<<<blocks_for(kWords), kThreads>>>(static_cast<const std::uint64_t*>(device.data()),
                                                       kWords, 7,
                                                       static_cast<unsigned long long*>(total.data()));
  check(cudaGetLastError(), "fingerprint_kernel");
  std::uint64_t sum = 0;
  std::memcpy(&sum, total.read().data(), sizeof sum);
  // The host closes with the (empty) tail and the length.
  sum += random::fingerprint_of(0, kWords, 7);
  return report(random::fingerprint_of(sum, host.size(), 7) == fingerprint(host, 7), "fingerprint");
}

bool rounding() {
  DeviceBytes counts(kRounded * sizeof(unsigned long long));
  check(cudaMemset(counts.data(), 0, kRounded * sizeof(unsigned long long)), "cudaMemset");
  rounding_kernel<<<4096, kThreads>>>(static_cast<unsigned long long*>(counts.data()));
  check(cudaGetLastError(), "rounding_kernel");
  unsigned long long differences[kRounded];
  std::memcpy(differences, counts.read().data(), sizeof differences);
  bool same = true;
  const char* names[kRounded] = {"f16", "bf16", "e4m3", "e5m2", "e2m1"};
  for (int type = 0; type < kRounded; ++type)
    same &=
        report(differences[type] == 0, std::string("rounding of all 2^32 floats to ") + names[type] + ", " +
                                           std::to_string(differences[type]) + " differences from CUDA");
  return same;
}

}  // namespace

int main() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::printf("device: %s\n", properties.name);
  bool same = true;
  for (const DType type : kTypes) same &= fills(type);
  for (const DType type : kTypes) same &= poisons(type);
  for (const DType type : kTypes)
    if (random::has_nan(type) && type != DType::kE8M0) same &= paged_caches(type);
  same &= fingerprints();
  same &= rounding();
  std::printf("%s\n", same ? "host and device agree to the bit" : "HOST AND DEVICE DIFFER");
  return same ? 0 : 1;
}
