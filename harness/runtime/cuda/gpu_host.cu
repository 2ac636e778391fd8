// capstone-gpu-host: the trusted GPU process. It owns every tensor: makes inputs, poisons, flushes the
// caches, compares and reads back. It never loads a submission. It gives its memory to workers as a shared
// handle.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <vector>

#include "harness/base/json_number.h"
#include "harness/correctness/random.h"
#include "harness/runtime/cuda/cuda_common.h"

namespace {

using capstone::DType;
using namespace capstone::gpu;
namespace random = capstone::random;
using Json = capstone::Json;

constexpr int kThreads = 256;

int blocks_for(long long elements) {
  long long blocks = (elements + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks > 132 * 64 ? 132 * 64 : blocks);
}

template <class Body>
__global__ void for_each(long long n, Body body) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
       i += (long long)gridDim.x * blockDim.x)
    body(i);
}
template <class Body>
void run_each(long long n, Body body) {
  for_each<<<blocks_for(n), kThreads>>>(n, body);
  CAPSTONE_CUDA(cudaGetLastError());
}

// A sum over all words that depends on their positions; one atomic per warp.
__global__ void fingerprint(const unsigned char* bytes, long long size, unsigned long long seed,
                            unsigned long long* sum) {
  unsigned long long mine = 0;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i * 8 < size;
       i += (long long)gridDim.x * blockDim.x) {
    unsigned long long word = 0;
    if (i * 8 + 8 <= size) {
      word = reinterpret_cast<const unsigned long long*>(bytes)[i];
    } else {
      for (int k = 0; i * 8 + k < size; ++k)
        word |= static_cast<unsigned long long>(bytes[i * 8 + k]) << (8 * k);
    }
    word ^= seed + static_cast<unsigned long long>(i) * 0x9e3779b97f4a7c15ull;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    mine += word ^ (word >> 31);
  }
  for (int lane = 16; lane > 0; lane /= 2) mine += __shfl_down_sync(0xffffffffu, mine, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

struct Fill {
  random::Draw draw;
  DType type;
  void* out;
  __device__ void operator()(long long unit) const { random::store_drawn_unit(draw, type, out, unit); }
};
struct Poison {
  DType type;
  unsigned long long seed;
  void* out;
  __device__ void operator()(long long unit) const { random::store_poison(type, seed, out, unit); }
};
// Element i of a cache, counted in the order of the page table.
struct PoisonPages {
  random::UnusedSlots unused;
  DType type, table_type, lengths_type;
  const void *table, *lengths;
  long long pages;
  void* out;
  __device__ static long long whole(DType type, const void* tensor, long long i) {
    return type == DType::kI64 ? static_cast<const long long*>(tensor)[i]
                               : static_cast<const int*>(tensor)[i];
  }
  __device__ void operator()(long long i) const {
    const long long entry = i / (unused.slots * unused.row), page = whole(table_type, table, entry);
    if (page < 0 || page >= pages) return;
    unused.poison(type, out, i, page, whole(lengths_type, lengths, entry / unused.pages_each));
  }
};
struct PoisonBytes {
  unsigned long long seed;
  unsigned char* out;
  __device__ void operator()(long long i) const { out[i] = random::poison_byte_at(seed, i); }
};

constexpr int kSuspects = 64;
struct Tally {
  unsigned long long wrong;
  unsigned int max_abs_bits;    // non-negative floats have the same order as their bits
  unsigned long long suspects;  // elements that only their own scale can decide about
  long long suspect[kSuspects];
};

struct CheckBytes {
  unsigned long long seed;
  const unsigned char* bytes;
  Tally* tally;
  __device__ void operator()(long long i) const {
    if (bytes[i] != random::poison_byte_at(seed, i)) atomicAdd(&tally->wrong, 1ull);
  }
};

__device__ float load(DType type, const void* tensor, long long i) {
  switch (type) {
    case DType::kF32:
      return static_cast<const float*>(tensor)[i];
    case DType::kF16:
      return capstone::narrow::from_f16(static_cast<const unsigned short*>(tensor)[i]);
    case DType::kBF16:
      return capstone::narrow::from_bf16(static_cast<const unsigned short*>(tensor)[i]);
    case DType::kE4M3:
      return capstone::narrow::from_e4m3(static_cast<const unsigned char*>(tensor)[i]);
    case DType::kE5M2:
      return capstone::narrow::from_e5m2(static_cast<const unsigned char*>(tensor)[i]);
    case DType::kI32:
      return static_cast<float>(static_cast<const int*>(tensor)[i]);
    case DType::kI64:
      return static_cast<float>(static_cast<const long long*>(tensor)[i]);
    case DType::kU8:
      return static_cast<float>(static_cast<const unsigned char*>(tensor)[i]);
    case DType::kInt4x2:
      return static_cast<float>(capstone::narrow::from_int4(capstone::narrow::nibble_at(tensor, i)));
    case DType::kE2M1x2:
      return capstone::narrow::from_e2m1(capstone::narrow::nibble_at(tensor, i));
    case DType::kE8M0:
      return capstone::narrow::from_e8m0(static_cast<const unsigned char*>(tensor)[i]);
  }
  return 0;
}
// What an element's error may be grows with its scale: rounding in a sum of a million terms is larger than in
// a sum of two. Scales are known at some elements only, one in each of `parts` equal parts of the tensor.
struct Compare {
  DType type;
  const void *got, *expected;
  float rtol, atol;     // atol: without the scale
  const float* scales;  // [parts]
  int parts;
  float largest;  // of all scales
  Tally* tally;
};
__global__ void compare(long long n, Compare c) {
  const double parts_per_element = static_cast<double>(c.parts) / static_cast<double>(n);
  unsigned wrong = 0, most = 0;  // of this thread: millions of threads must not queue for one word
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
       i += (long long)gridDim.x * blockDim.x) {
    const float g = load(c.type, c.got, i), e = load(c.type, c.expected, i);
    const float error = g == e ? 0 : fabsf(g - e);  // -inf - -inf would be NaN
    const float relative = isinf(e) ? 0 : c.rtol * fabsf(e);
    if (!(error <= c.atol * c.largest + relative)) {  // NaN fails
      ++wrong;
    } else {
      const int part = min(static_cast<int>(static_cast<double>(i) * parts_per_element), c.parts - 1);
      if (error > c.atol * c.scales[part] + relative) {
        const unsigned long long place = atomicAdd(&c.tally->suspects, 1ull);
        if (place < kSuspects) c.tally->suspect[place] = i;
      }
    }
    if (error == error) most = max(most, __float_as_uint(error));
  }
  wrong = __reduce_add_sync(0xffffffffu, wrong);
  most = __reduce_max_sync(0xffffffffu, most);
  if (threadIdx.x % 32 != 0) return;
  if (wrong) atomicAdd(&c.tally->wrong, static_cast<unsigned long long>(wrong));
  if (most) atomicMax(&c.tally->max_abs_bits, most);
}
struct Gather {
  DType type;
  const void* tensor;
  const long long* indices;
  double* values;
  __device__ void operator()(long long k) const {
    long long i = indices[k];
    values[k] = type == DType::kI64   ? static_cast<double>(static_cast<const long long*>(tensor)[i])
                : type == DType::kI32 ? static_cast<double>(static_cast<const int*>(tensor)[i])
                                      : static_cast<double>(load(type, tensor, i));
  }
};
struct Touch {
  unsigned* out;
  unsigned value;
  __device__ void operator()(long long i) const { out[i] = value + static_cast<unsigned>(i); }
};
struct Read {
  const unsigned* in;
  unsigned* sink;
  __device__ void operator()(long long i) const {
    if (in[i] == 0xdeadbeefu) *sink = 1;  // never true; prevents the compiler from removing the load
  }
};

DType type_of(const Json& request, const char* key = "dtype") {
  auto type = capstone::dtype_from(request.at(key).get<std::string>());
  if (!type) throw std::runtime_error("unknown dtype");
  return *type;
}

float float_bits(const Json& value) { return capstone::narrow::float_of(value.get<std::uint32_t>()); }

random::Draw draw_of(const Json& json) {
  random::Draw draw;
  draw.kind = static_cast<random::Kind>(json.at("kind").get<int>());
  draw.twist = static_cast<random::Twist>(json.at("twist").get<int>());
  draw.stream = json.at("stream").get<std::uint32_t>();
  draw.seed = json.at("seed").get<std::uint64_t>();
  draw.a = float_bits(json.at("a"));
  draw.b = float_bits(json.at("b"));
  draw.min = json.at("min").get<std::int64_t>();
  draw.max = json.at("max").get<std::int64_t>();
  draw.rows = json.at("rows").get<std::int64_t>();
  draw.columns = json.at("columns").get<std::int64_t>();
  if (draw.rows < 1 || draw.columns < 1) throw std::runtime_error("an empty matrix");
  draw.hot = json.at("hot").get<std::int64_t>();
  draw.hot_value = float_bits(json.at("hot_value"));
  for (const Json& value : json.at("choice")) {
    if (draw.choices == random::Draw::kMaxChoices) throw std::runtime_error("too many choices");
    draw.choice[draw.choices++] = value.get<double>();
  }
  return draw;
}

// Clocks, temperature and power, read between samples. The library belongs to the driver and may be missing.
class Telemetry {
 public:
  explicit Telemetry(const std::string& bus_id) {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) return;
    auto init = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlInit_v2"));
    auto by_bus =
        reinterpret_cast<int (*)(const char*, void**)>(::dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    clock_ = reinterpret_cast<int (*)(void*, int, unsigned*)>(::dlsym(library, "nvmlDeviceGetClockInfo"));
    temperature_ =
        reinterpret_cast<int (*)(void*, int, unsigned*)>(::dlsym(library, "nvmlDeviceGetTemperature"));
    power_ = reinterpret_cast<int (*)(void*, unsigned*)>(::dlsym(library, "nvmlDeviceGetPowerUsage"));
    fields_ = reinterpret_cast<int (*)(void*, int, Field*)>(::dlsym(library, "nvmlDeviceGetFieldValues"));
    utilisation_ = reinterpret_cast<int (*)(void*, Utilisation*, unsigned*, unsigned long long)>(
        ::dlsym(library, "nvmlDeviceGetProcessUtilization"));
    reasons_ = reinterpret_cast<int (*)(void*, unsigned long long*)>(
        ::dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons"));
    if (!init || !by_bus || init() != 0 || by_bus(bus_id.c_str(), &device_) != 0) device_ = nullptr;
  }
  Json read() {
    Json json = Json::object();
    if (!device_) return json;
    unsigned value = 0;
    unsigned long long reasons = 0;
    if (clock_ && clock_(device_, 1, &value) == 0) json["sm_mhz"] = value;
    if (clock_ && clock_(device_, 2, &value) == 0) json["memory_mhz"] = value;
    if (temperature_ && temperature_(device_, 0, &value) == 0) json["celsius"] = value;
    if (const double watts = power(); watts > 0) json["watts"] = watts;
    if (reasons_ && reasons_(device_, &reasons) == 0) json["throttle"] = reasons;
    json["busy"] = busy();
    return json;
  }

 private:
  struct Utilisation {  // nvmlProcessUtilizationSample_t
    unsigned pid;
    unsigned long long time;
    unsigned sm, memory, encoder, decoder;
  };
  struct Field {  // nvmlFieldValue_t
    unsigned id, scope;
    long long time, latency;
    int type, code;
    union {
      unsigned value;
      double widest;
    };
  };
  // Of this moment, where the driver says it; else the average of the last second.
  double power() {
    constexpr unsigned kInstant = 186;  // NVML_FI_DEV_POWER_INSTANT [mW]
    Field field{};
    field.id = kInstant;
    if (fields_ && fields_(device_, 1, &field) == 0 && field.code == 0 && field.value > 0)
      return field.value / 1000.0;
    unsigned value = 0;
    return power_ && power_(device_, &value) == 0 ? value / 1000.0 : 0;
  }
  // The processes that used the GPU since the last call.
  Json busy() {
    Json list = Json::array();
    unsigned count = 256;
    std::vector<Utilisation> samples(count);
    if (!utilisation_ || utilisation_(device_, samples.data(), &count, seen_) != 0) return list;
    for (unsigned i = 0; i < count && i < samples.size(); ++i) {
      seen_ = std::max(seen_, samples[i].time);
      if (samples[i].sm > 0) list.push_back({{"pid", samples[i].pid}, {"sm_percent", samples[i].sm}});
    }
    return list;
  }

  void* device_ = nullptr;
  unsigned long long seen_ = 0;
  int (*utilisation_)(void*, Utilisation*, unsigned*, unsigned long long) = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*fields_)(void*, int, Field*) = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
};

class GpuHost {
 public:
  GpuHost() {
    CAPSTONE_CUDA(cudaGetDeviceProperties(&properties_, 0));
    char bus[32] = "";
    CAPSTONE_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    telemetry_ = std::make_unique<Telemetry>(bus);
    words_ = std::max<long long>(2ll * properties_.l2CacheSize, 64ll << 20) / 4;
    CAPSTONE_CUDA(cudaMalloc(&dirty_, words_ * 4));
    CAPSTONE_CUDA(cudaMalloc(&clean_, words_ * 4));
    CAPSTONE_CUDA(cudaMemset(clean_, 0, words_ * 4));
    CAPSTONE_CUDA(cudaMalloc(&tally_, sizeof(Tally)));
    CAPSTONE_CUDA(cudaMalloc(&scales_on_device_, kMaxGather * sizeof(float)));
    CAPSTONE_CUDA(cudaMalloc(&indices_, kMaxGather * sizeof(long long)));
    CAPSTONE_CUDA(cudaMalloc(&values_, kMaxGather * sizeof(double)));
  }

  // `give` receives a descriptor to send with the answer.
  Json handle(const Json& request, int fd, int& give) {
    const std::string op = request.value("op", "");
    if (op == "hello") return hello();
    if (op == "telemetry") return {{"ok", true}, {"telemetry", telemetry_->read()}};
    if (op == "arena") {
      give = arena_of(request).create(request.at("bytes").get<std::size_t>());
      return {{"ok", true}};
    }
    if (op == "copy_bandwidth") return {{"ok", true}, {"bytes_per_second", copy_bandwidth()}};
    if (op == "upload" || op == "download") return copy(op == "upload", request, fd);
    if (op == "batch") {
      Json results = Json::array();
      for (const Json& step : request.at("steps")) results.push_back(perform(step));
      CAPSTONE_CUDA(cudaDeviceSynchronize());
      return {{"ok", true}, {"results", std::move(results)}};
    }
    return {{"ok", false}, {"kind", "exception"}, {"message", "unknown request: " + op}};
  }

 private:
  static constexpr int kMaxGather = 4096;

  Json hello() {
    int runtime = 0, driver = 0, clock = 0, memory_clock = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0);
    cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, 0);
    return {{"ok", true},
            {"protocol", 1},
            {"backend", "cuda"},
            {"name", properties_.name},
            {"major", properties_.major},
            {"minor", properties_.minor},
            {"sm_count", properties_.multiProcessorCount},
            {"clock_khz", clock},
            {"memory_clock_khz", memory_clock},
            {"bus_bits", properties_.memoryBusWidth},
            {"l2_bytes", properties_.l2CacheSize},
            {"memory_bytes", properties_.totalGlobalMem},
            {"runtime", runtime},
            {"driver", driver},
            {"telemetry", telemetry_->read()}};
  }

  Arena& arena_of(const Json& step) {
    return step.value("arena", "tensors") == "expected" ? expected_ : arena_;
  }
  static char* within(const Arena& arena, std::size_t offset, std::size_t bytes) {
    if (offset > arena.size() || bytes > arena.size() - offset) throw std::runtime_error("outside the arena");
    return arena.base() + offset;
  }
  char* at(const Json& step, const char* key, std::size_t bytes) {
    return within(arena_of(step), step.at(key).get<std::size_t>(), bytes);
  }

  Json copy(bool up, const Json& request, int fd) {
    std::size_t bytes = request.at("bytes").get<std::size_t>();
    void* host = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (host == MAP_FAILED) throw std::runtime_error("the staging memory cannot be mapped");
    char* device = at(request, "at", bytes);
    cudaError_t code = up ? cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice)
                          : cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
    ::munmap(host, bytes);
    capstone::gpu::check(code, "cudaMemcpy");
    return {{"ok", true}};
  }

  // Half a GiB in each direction, far more than any cache holds.
  double copy_bandwidth() {
    constexpr std::size_t kBytes = std::size_t{512} << 20;
    char* memory = nullptr;
    if (cudaMalloc(&memory, 2 * kBytes) != cudaSuccess) {
      cudaGetLastError();
      return 0;
    }
    cudaEvent_t begin{}, end{};
    CAPSTONE_CUDA(cudaEventCreate(&begin));
    CAPSTONE_CUDA(cudaEventCreate(&end));
    CAPSTONE_CUDA(cudaMemset(memory, 1, 2 * kBytes));
    std::vector<float> times;
    for (int i = 0; i < 12; ++i) {
      CAPSTONE_CUDA(cudaEventRecord(begin));
      CAPSTONE_CUDA(cudaMemcpyAsync(memory + kBytes, memory, kBytes, cudaMemcpyDeviceToDevice));
      CAPSTONE_CUDA(cudaEventRecord(end));
      CAPSTONE_CUDA(cudaEventSynchronize(end));
      float ms = 0;
      CAPSTONE_CUDA(cudaEventElapsedTime(&ms, begin, end));
      if (i > 1) times.push_back(ms);  // the first ones are warm-up
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    CAPSTONE_CUDA(cudaFree(memory));
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return 2.0 * kBytes / (times[times.size() / 2] * 1e-3);
  }

  void clear_tally() { CAPSTONE_CUDA(cudaMemset(tally_, 0, sizeof(Tally))); }
  Tally read_tally() {
    Tally tally{};
    CAPSTONE_CUDA(cudaMemcpy(&tally, tally_, sizeof tally, cudaMemcpyDeviceToHost));
    return tally;
  }

  Json perform(const Json& step) {
    const std::string what = step.at("do").get<std::string>();
    if (what == "flush") return flush(step.at("dirty").get<bool>());
    if (what == "scales") return take_scales(step);
    if (what == "poison_bytes" || what == "check_bytes") {
      long long n = step.at("bytes").get<long long>();
      auto* bytes = reinterpret_cast<unsigned char*>(at(step, "at", n));
      unsigned long long seed = step.at("seed").get<std::uint64_t>();
      if (what == "poison_bytes") {
        run_each(n, PoisonBytes{seed, bytes});
        return nullptr;
      }
      clear_tally();
      run_each(n, CheckBytes{seed, bytes, tally_});
      return {{"wrong", read_tally().wrong}};
    }
    if (what == "fingerprint") {
      long long n = step.at("bytes").get<long long>();
      clear_tally();
      fingerprint<<<blocks_for((n + 7) / 8), kThreads>>>(reinterpret_cast<unsigned char*>(at(step, "at", n)),
                                                         n, step.at("seed").get<std::uint64_t>(),
                                                         &tally_->wrong);
      CAPSTONE_CUDA(cudaGetLastError());
      return {{"value", read_tally().wrong}};
    }
    DType type = type_of(step);
    if (what == "gather") return gather(step, type);
    if (what == "poison_pages") return poison_pages(step, type);
    long long n = step.at("elements").get<long long>();
    const std::size_t bytes = capstone::bytes_of(type, static_cast<std::size_t>(n));
    const auto units = static_cast<long long>(capstone::units_of(type, static_cast<std::size_t>(n)));
    if (what == "fill") {
      run_each(units, Fill{draw_of(step.at("draw")), type, at(step, "at", bytes)});
      return nullptr;
    }
    if (what == "poison") {
      run_each(units, Poison{type, step.at("seed").get<std::uint64_t>(), at(step, "at", bytes)});
      return nullptr;
    }
    if (what == "compare") {
      clear_tally();
      const std::vector<float>& scales = scales_.at(step.at("scales").get<std::size_t>());
      CAPSTONE_CUDA(cudaMemcpy(scales_on_device_, scales.data(), scales.size() * sizeof(float),
                               cudaMemcpyHostToDevice));
      compare<<<blocks_for(n), kThreads>>>(
          n,
          Compare{type, within(arena_, step.at("got").get<std::size_t>(), bytes),
                  within(expected_, step.at("expected").get<std::size_t>(), bytes),
                  step.at("rtol").get<float>(), step.at("atol").get<float>(), scales_on_device_,
                  static_cast<int>(scales.size()), *std::max_element(scales.begin(), scales.end()), tally_});
      CAPSTONE_CUDA(cudaGetLastError());
      const Tally tally = read_tally();
      Json suspects = Json::array();
      for (unsigned long long k = 0; k < std::min<unsigned long long>(tally.suspects, kSuspects); ++k)
        suspects.push_back(tally.suspect[k]);
      return {{"wrong", tally.wrong},
              {"max_abs", capstone::narrow::float_of(tally.max_abs_bits)},
              {"suspects", std::move(suspects)}};
    }
    throw std::runtime_error("unknown step: " + what);
  }

  Json poison_pages(const Json& step, DType type) {
    PoisonPages body{};
    body.type = type;
    body.table_type = type_of(step, "table_dtype");
    body.lengths_type = type_of(step, "lengths_dtype");
    const auto sequences = step.at("sequences").get<std::int64_t>();
    body.unused.pages_each = step.at("pages_each").get<std::int64_t>();
    body.unused.slots = step.at("slots").get<std::int64_t>();
    body.unused.row = step.at("row").get<std::int64_t>();
    body.unused.seed = step.at("seed").get<std::uint64_t>();
    body.pages = sequences * body.unused.pages_each;
    const long long n = body.pages * body.unused.slots * body.unused.row;
    if (sequences < 1 || n < 1) throw std::runtime_error("an empty cache");
    body.table = within(arena_, step.at("table").get<std::size_t>(),
                        capstone::bytes_of(body.table_type, static_cast<std::size_t>(body.pages)));
    body.lengths = within(arena_, step.at("lengths").get<std::size_t>(),
                          capstone::bytes_of(body.lengths_type, static_cast<std::size_t>(sequences)));
    if (!random::has_nan(type)) throw std::runtime_error("a cache of a type without NaN");
    body.out = at(step, "at", capstone::bytes_of(type, static_cast<std::size_t>(n)));
    run_each(n, body);
    return nullptr;
  }

  Json gather(const Json& step, DType type) {
    std::vector<long long> indices = step.at("indices").get<std::vector<long long>>();
    if (indices.empty() || indices.size() > kMaxGather)
      throw std::runtime_error("gather takes 1 to 4096 indices");
    long long last = 0;
    for (long long i : indices) {
      if (i < 0) throw std::runtime_error("negative index");
      last = std::max(last, i);
    }
    char* tensor = at(step, "at", capstone::bytes_of(type, static_cast<std::size_t>(last + 1)));
    CAPSTONE_CUDA(
        cudaMemcpy(indices_, indices.data(), indices.size() * sizeof(long long), cudaMemcpyHostToDevice));
    run_each(static_cast<long long>(indices.size()), Gather{type, tensor, indices_, values_});
    std::vector<double> values(indices.size());
    CAPSTONE_CUDA(cudaMemcpy(values.data(), values_, values.size() * sizeof(double), cudaMemcpyDeviceToHost));
    Json list = Json::array();
    for (double value : values) list.push_back(capstone::number(value));
    return {{"values", std::move(list)}};
  }

  // Evicts everything from L2. It ends with lines that were only read, so that no write-back falls into the
  // next sample; or with lines that were written, as after a kernel with large outputs.
  Json flush(bool dirty) {
    cudaCtxResetPersistingL2Cache();
    if (dirty) run_each(words_, Read{clean_, dirty_});
    run_each(words_, Touch{dirty_, ++turn_});
    if (!dirty) run_each(words_, Read{clean_, dirty_});
    return nullptr;
  }

  // The scales of one output, for comparisons.
  Json take_scales(const Json& step) {
    std::vector<float> values = step.at("values").get<std::vector<float>>();
    if (values.empty() || values.size() > kMaxGather) throw std::runtime_error("1 to 4096 scales");
    scales_[step.at("id").get<std::size_t>()] = std::move(values);
    return nullptr;
  }

  cudaDeviceProp properties_{};
  std::unique_ptr<Telemetry> telemetry_;
  Arena arena_;
  Arena expected_{Arena::kExpectedAddress};
  long long words_ = 0;
  unsigned *dirty_ = nullptr, *clean_ = nullptr, turn_ = 0;
  Tally* tally_ = nullptr;
  std::map<std::size_t, std::vector<float>> scales_;
  float* scales_on_device_ = nullptr;
  long long* indices_ = nullptr;
  double* values_ = nullptr;
};

}  // namespace

int main() {
  std::unique_ptr<GpuHost> gpu_host;
  return serve([&](const Json& request, int fd, int& give) {
    if (!gpu_host) gpu_host = std::make_unique<GpuHost>();
    return gpu_host->handle(request, fd, give);
  });
}
