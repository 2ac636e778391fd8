// Two GPUs exchange the tokens of a mixture of experts: dispatch sends a token to the GPU of its experts,
// combine brings the results back and adds them. Prints JSON, one object a line, so that a run that is cut
// short keeps what it measured.
//
//   two_gpus [--nccl FILE] [--limit SECONDS] [--one-gpu] [--tokens N]
//     --nccl     libnccl.so.2; without it the loader looks; without NCCL it is left out, and a line says so
//     --limit    the program ends itself after this time (default 150)
//     --one-gpu  one GPU plays both parts: checks the results, the times mean nothing
//     --tokens   of each GPU, in place of 4096 and 128
//
// Sizes of DeepSeek-V3: rows of 7168 numbers, 8 of 256 experts for each token. Half of the experts lives on
// each GPU. A token crosses once, however many of its experts are on the other side, as bf16 or as e4m3 with
// a scale for 128 numbers. Its results are summed over there and come back as one row of bf16.
//
// Three ways to send:
//   copies   a kernel packs the rows, cudaMemcpyPeerAsync moves them
//   kernels  the kernel that packs writes into the other GPU's memory; the one that adds reads from it
//   nccl     a kernel packs the rows, ncclSend and ncclRecv move them
// Both GPUs know the routing before the clock starts. The caches are warm. The experts are a stand-in, y[i]
// += w v[i] x[i] with a vector v for each expert: long enough to see a GPU with more rows finish later, far
// shorter than real experts. All ways run the same kernels, so their results have the same bits.
//
// A repetition: both GPUs meet (each writes a flag into the other's memory), dispatch, experts, combine. The
// ends are %globaltimer since the meeting, written by the kernels that are there anyway. In "launched" the
// host's launches count; in "queued" the GPUs meet only when everything is queued.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using bf16 = __nv_bfloat16;
using fp8 = __nv_fp8_e4m3;

namespace {

constexpr int kHidden = 7168, kExperts = 256, kHome = kExperts / 2, kTopK = 8, kBlock = 128;
constexpr int kEach = 16, kThreads = kHidden / kEach;  // numbers of a thread, threads of a row
constexpr float kTop = 448;                            // of e4m3
constexpr int kWarm = 5, kRepetitions = 21, kLinkRepetitions = 11;
constexpr std::chrono::milliseconds kWarmTime{100};      // clocks fall while the host checks results
constexpr unsigned long long kPatience = 1'000'000'000;  // [ns] that a GPU waits for the other one

// ---------------------------------------------------------------------------------------------------------
// What is printed

std::mutex g_printing;
void print(const std::string& line) {
  std::lock_guard<std::mutex> lock(g_printing);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text)
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else
      out += c >= ' ' ? c : ' ';
  return out + "\"";
}

[[noreturn]] void stop(const std::string& why) {
  print("{\"stopped\": " + quoted(why) + "}");
  _exit(1);  // no destructor may wait for a GPU that hangs
}

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    const cudaError_t error = (call);                                                                   \
    if (error != cudaSuccess)                                                                           \
      stop(std::string(cudaGetErrorString(error)) + " (two_gpus.cu:" + std::to_string(__LINE__) + ")"); \
  } while (0)

template <class T>
std::string list(const std::vector<T>& values) {
  std::string out;
  char text[32];
  for (const T& value : values) {
    std::snprintf(text, sizeof text, "%.12g", std::round(double(value) * 1e3) / 1e3);  // [ns] is enough
    out += (out.empty() ? "" : ", ") + std::string(text);
  }
  return "[" + out + "]";
}

std::string rows(const std::vector<std::vector<double>>& all) {
  std::string out;
  for (const auto& row : all) out += (out.empty() ? "" : ", ") + list(row);
  return "[" + out + "]";
}

// ---------------------------------------------------------------------------------------------------------
// Kernels. A row has kThreads threads, each with 16 numbers.

// What crosses for a token: numbers, scales, experts, weights. Every part begins at a multiple of 16 bytes.
template <bool kFp8>
struct Wire {
  static constexpr int kNumbers = kHidden * (kFp8 ? 1 : 2);
  static constexpr int kScales = kFp8 ? kHidden / kBlock * int(sizeof(float)) : 0;
  static constexpr int kIds = kNumbers + kScales, kWeights = kIds + kTopK * int(sizeof(int));
  static constexpr int kBytes = kWeights + kTopK * int(sizeof(float));
  static_assert(kIds % 16 == 0 && kBytes % 16 == 0);
};
constexpr int kReturned = kHidden * int(sizeof(bf16));  // [B] of a row that comes back

struct Stamps {
  unsigned long long met, arrived, computed, added;  // [ns]: the meeting; ends of dispatch, experts, combine
  int lost;                                          // the other GPU did not come
};

__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

// One thread. Waits for the host's gate, then for the other GPU. `theirs`: the flag in its memory; null: this
// GPU plays both parts.
__global__ void meet(volatile int* mine, volatile int* theirs, const volatile int* gate, int turn,
                     Stamps* stamps) {
  stamps->arrived = ~0ull;
  stamps->computed = stamps->added = 0;
  const unsigned long long begin = now();
  int lost = 0;
  while (*gate < turn && !lost) lost = now() - begin > kPatience;
  if (theirs) {
    *theirs = turn;
    __threadfence_system();
    while (*mine < turn && !lost) lost = now() - begin > kPatience;
  }
  stamps->lost = lost;
  stamps->met = now();
}

// The smallest step of the timer that it sees.
__global__ void timer_step(unsigned long long* step) {
  unsigned long long least = ~0ull, last = now();
  for (int i = 0; i < 20000; ++i) {
    const unsigned long long next = now();
    if (next > last && next - last < least) least = next - last;
    last = next;
  }
  *step = least;
}

// One block for each token that crosses: its row, into this GPU's memory or into the other one's.
template <bool kFp8>
__global__ void pack(const bf16* x, const int* ids, const float* weights, const int* sent, uint8_t* wire) {
  const int token = sent[blockIdx.x], j = threadIdx.x;
  uint8_t* row = wire + size_t(blockIdx.x) * Wire<kFp8>::kBytes;
  const uint4* from = reinterpret_cast<const uint4*>(x + size_t(token) * kHidden);
  if constexpr (kFp8) {
    const uint4 numbers[2] = {from[2 * j], from[2 * j + 1]};
    const bf16* value = reinterpret_cast<const bf16*>(numbers);
    float most = 0;
    for (int i = 0; i < kEach; ++i) most = fmaxf(most, fabsf(__bfloat162float(value[i])));
    for (int lane = 1; lane < kBlock / kEach; lane *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, lane));
    const float scale = most > 0 ? most / kTop : 1;
    uint4 codes;
    fp8* code = reinterpret_cast<fp8*>(&codes);
    for (int i = 0; i < kEach; ++i) code[i] = fp8(__bfloat162float(value[i]) / scale);
    reinterpret_cast<uint4*>(row)[j] = codes;
    if (j % (kBlock / kEach) == 0)
      reinterpret_cast<float*>(row + Wire<kFp8>::kNumbers)[j / (kBlock / kEach)] = scale;
  } else {  // neighbours write whole sectors: half of one would cross the wire like a whole one
    for (int i = j; i < 2 * kThreads; i += kThreads) reinterpret_cast<uint4*>(row)[i] = from[i];
  }
  if (j >= kTopK) return;
  reinterpret_cast<int*>(row + Wire<kFp8>::kIds)[j] = ids[token * kTopK + j];
  reinterpret_cast<float*>(row + Wire<kFp8>::kWeights)[j] = weights[token * kTopK + j];
}

// One block a row: first this GPU's tokens → own, then the rows that arrived → returned. Each gets the sum
// over its experts that live here; `vectors`: [kHome][kHidden], of the experts from `first` on.
template <bool kFp8>
__global__ void experts(const bf16* x, const int* ids, const float* weights, int tokens,
                        const uint8_t* arrived, const bf16* vectors, int first, bf16* own, bf16* returned,
                        Stamps* stamps) {
  const int j = threadIdx.x, row = blockIdx.x;
  if (j == 0) atomicMin(&stamps->arrived, now());
  float value[kEach], sum[kEach] = {};
  bf16* out;
  if (row < tokens) {
    const bf16* from = x + size_t(row) * kHidden + j * kEach;
    for (int i = 0; i < kEach; ++i) value[i] = __bfloat162float(from[i]);
    ids += row * kTopK, weights += row * kTopK;
    out = own + size_t(row) * kHidden;
  } else {
    const uint8_t* wire = arrived + size_t(row - tokens) * Wire<kFp8>::kBytes;
    if constexpr (kFp8) {
      const float scale = reinterpret_cast<const float*>(wire + Wire<kFp8>::kNumbers)[j / (kBlock / kEach)];
      const uint4 codes = reinterpret_cast<const uint4*>(wire)[j];
      for (int i = 0; i < kEach; ++i) value[i] = float(reinterpret_cast<const fp8*>(&codes)[i]) * scale;
    } else {
      const bf16* from = reinterpret_cast<const bf16*>(wire) + j * kEach;
      for (int i = 0; i < kEach; ++i) value[i] = __bfloat162float(from[i]);
    }
    ids = reinterpret_cast<const int*>(wire + Wire<kFp8>::kIds);
    weights = reinterpret_cast<const float*>(wire + Wire<kFp8>::kWeights);
    out = returned + size_t(row - tokens) * kHidden;
  }
  for (int k = 0; k < kTopK; ++k) {
    const int expert = ids[k] - first;
    if (expert < 0 || expert >= kHome) continue;
    const uint4* from = reinterpret_cast<const uint4*>(vectors + size_t(expert) * kHidden) + 2 * j;
    const uint4 numbers[2] = {from[0], from[1]};
    const float weight = weights[k];
    for (int i = 0; i < kEach; ++i)
      sum[i] += weight * __bfloat162float(reinterpret_cast<const bf16*>(numbers)[i]) * value[i];
  }
  uint4 packed[2];
  for (int i = 0; i < kEach; ++i) reinterpret_cast<bf16*>(packed)[i] = __float2bfloat16(sum[i]);
  reinterpret_cast<uint4*>(out)[2 * j] = packed[0];
  reinterpret_cast<uint4*>(out)[2 * j + 1] = packed[1];
  __syncthreads();
  if (j == 0) atomicMax(&stamps->computed, now());
}

// One block a token: out = own + what came back. `place`: its row in `back`, -1: it did not cross. `back` may
// lie in the other GPU's memory.
__global__ void add(const bf16* own, const int* place, const bf16* back, bf16* out, Stamps* stamps) {
  const int j = threadIdx.x, row = place[blockIdx.x];
  const size_t at = size_t(blockIdx.x) * kHidden;
  const uint4* there = row < 0 ? nullptr : reinterpret_cast<const uint4*>(back + size_t(row) * kHidden);
  for (int part = j; part < 2 * kThreads; part += kThreads) {
    uint4 sum = reinterpret_cast<const uint4*>(own + at)[part];
    if (there) {
      const uint4 more = there[part];
      for (int i = 0; i < kEach / 2; ++i) {
        bf16& value = reinterpret_cast<bf16*>(&sum)[i];
        value = __float2bfloat16(__bfloat162float(value) +
                                 __bfloat162float(reinterpret_cast<const bf16*>(&more)[i]));
      }
    }
    reinterpret_cast<uint4*>(out + at)[part] = sum;
  }
  __syncthreads();
  if (j == 0) atomicMax(&stamps->added, now());
}

// ---------------------------------------------------------------------------------------------------------
// NCCL: only what is used here; its headers need not be installed

struct Nccl {
  static constexpr int kUint8 = 1;  // ncclUint8
  int (*version)(int*) = nullptr;
  int (*init_all)(void**, int, const int*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*receive)(void*, size_t, int, int, void*, cudaStream_t) = nullptr;
  const char* (*text)(int) = nullptr;
  void* communicators[2] = {};
  std::string why;  // it is not used; empty: it is

  bool good(int result, const char* call) {
    if (result != 0 && why.empty()) why = std::string(call) + ": " + text(result);
    return why.empty();
  }

  void load(const std::string& file, const int* devices) {
    // The demo is about point-to-point transfers. Multicast in the switch is not used.
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* said = dlerror();
      why = said ? said : "it does not load";
      return;
    }
    auto find = [&](auto& into, const char* name) {
      into = reinterpret_cast<std::decay_t<decltype(into)>>(dlsym(library, name));
      if (!into && why.empty()) why = std::string("it has no ") + name;
    };
    find(version, "ncclGetVersion"), find(init_all, "ncclCommInitAll"), find(text, "ncclGetErrorString");
    find(group_start, "ncclGroupStart"), find(group_end, "ncclGroupEnd");
    find(send, "ncclSend"), find(receive, "ncclRecv");
    if (why.empty()) good(init_all(communicators, 2, devices), "ncclCommInitAll");
  }

  std::string version_text() {
    int v = 0;
    version(&v);
    return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
  }
};

// ---------------------------------------------------------------------------------------------------------
// The data, the same each time

struct Random {
  uint64_t state;
  uint64_t next() {  // splitmix64
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  float unit() { return float(next() >> 40) / (1 << 24); }
};

std::vector<bf16> numbers(size_t count, uint64_t seed) {
  Random random{seed};
  std::vector<bf16> x(count);
  for (bf16& value : x) value = __float2bfloat16(random.unit() + random.unit() + random.unit() - 1.5f);
  return x;
}

// Which experts the tokens of both GPUs go to.
struct Routing {
  std::vector<int> ids[2], sent[2], place[2];  // sent: tokens that cross; place: their row there, or -1
  std::vector<float> weights[2];
  long expert_rows[2] = {};  // (token, expert) pairs that a GPU computes
};

// `share`: of the choices that fall on experts of GPU 0.
Routing make_routing(int tokens, float share) {
  Routing r;
  Random random{uint64_t(share * 100)};
  for (int g = 0; g < 2; ++g)
    for (int t = 0; t < tokens; ++t) {
      int chosen[kTopK];
      float weight[kTopK], sum = 0;
      bool crosses = false;
      for (int k = 0; k < kTopK; ++k) {
        const int home = random.unit() < share ? 0 : 1;
        do chosen[k] = home * kHome + int(random.next() % kHome);
        while (std::find(chosen, chosen + k, chosen[k]) != chosen + k);
        sum += weight[k] = 0.1f + random.unit();
        crosses = crosses || home != g;
        ++r.expert_rows[home];
      }
      r.ids[g].insert(r.ids[g].end(), chosen, chosen + kTopK);
      for (float w : weight) r.weights[g].push_back(w / sum);
      r.place[g].push_back(crosses ? int(r.sent[g].size()) : -1);
      if (crosses) r.sent[g].push_back(t);
    }
  return r;
}

// ---------------------------------------------------------------------------------------------------------
// The two GPUs

struct Gpu {
  int device = 0;
  cudaStream_t stream{};
  cudaEvent_t at[4]{}, sent{};  // at: the meeting, and the ends of dispatch, experts, combine
  bf16 *x{}, *vectors{}, *own{}, *returned{}, *back{}, *out{};
  uint8_t *send{}, *arrived{};
  int *ids{}, *sent_tokens{}, *place{}, *flag{};
  float* weights{};
  Stamps* stamps{};
  std::vector<bf16> host_x, host_vectors;

  void use() const { CHECK(cudaSetDevice(device)); }
};

enum class Method { kCopies, kKernels, kNccl };
const char* name_of(Method m) {
  return m == Method::kCopies ? "copies" : m == Method::kKernels ? "kernels" : "nccl";
}

struct Setting {
  int tokens;
  bool skewed, eight_bits;
};

class Machine {
 public:
  Machine(int most_tokens, bool one) : one_(one) {
    CHECK(cudaHostAlloc(reinterpret_cast<void**>(&gate_), sizeof(int),
                        cudaHostAllocPortable | cudaHostAllocMapped));
    *gate_ = 0;
    const size_t numbers_of_all = size_t(most_tokens) * kHidden;
    for (int g = 0; g < 2; ++g) {
      Gpu& gpu = gpus_[g];
      gpu.device = one ? 0 : g;
      gpu.use();
      if (!one) {
        int can = 0;
        CHECK(cudaDeviceCanAccessPeer(&can, g, 1 - g));
        if (!can) stop("GPU " + std::to_string(g) + " cannot reach the other one's memory: no peer access");
        CHECK(cudaDeviceEnablePeerAccess(1 - g, 0));
      }
      CHECK(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking));
      for (cudaEvent_t& event : gpu.at) CHECK(cudaEventCreate(&event));
      CHECK(cudaEventCreateWithFlags(&gpu.sent, cudaEventDisableTiming));
      for (bf16** tensor : {&gpu.x, &gpu.own, &gpu.returned, &gpu.back, &gpu.out})
        CHECK(cudaMalloc(tensor, numbers_of_all * sizeof(bf16)));
      for (uint8_t** tensor : {&gpu.send, &gpu.arrived})
        CHECK(cudaMalloc(tensor, size_t(most_tokens) * Wire<false>::kBytes));
      CHECK(cudaMalloc(&gpu.vectors, size_t(kHome) * kHidden * sizeof(bf16)));
      CHECK(cudaMalloc(&gpu.ids, size_t(most_tokens) * kTopK * sizeof(int)));
      CHECK(cudaMalloc(&gpu.weights, size_t(most_tokens) * kTopK * sizeof(float)));
      for (int** tensor : {&gpu.sent_tokens, &gpu.place})
        CHECK(cudaMalloc(tensor, size_t(most_tokens) * sizeof(int)));
      CHECK(cudaMalloc(&gpu.flag, sizeof(int)));
      CHECK(cudaMemset(gpu.flag, 0, sizeof(int)));
      CHECK(cudaMalloc(&gpu.stamps, sizeof(Stamps)));
      gpu.host_x = numbers(numbers_of_all, 1 + g);
      gpu.host_vectors = numbers(size_t(kHome) * kHidden, 3 + g);
      upload(gpu.x, gpu.host_x);
      upload(gpu.vectors, gpu.host_vectors);
      CHECK(cudaDeviceSynchronize());
    }
  }

  Gpu& gpu(int g) { return gpus_[g]; }
  const int* devices() const { return devices_; }
  Nccl nccl;

  void set(const Routing& routing) {
    for (int g = 0; g < 2; ++g) {
      Gpu& gpu = gpus_[g];
      gpu.use();
      upload(gpu.ids, routing.ids[g]);
      upload(gpu.weights, routing.weights[g]);
      upload(gpu.sent_tokens, routing.sent[g]);
      upload(gpu.place, routing.place[g]);
      CHECK(cudaDeviceSynchronize());
    }
  }

  // One repetition. @return [dispatch, experts, combine] of GPU 0, of GPU 1: ends since the meeting; the same
  // by events: lengths [µs]. Empty: the GPUs did not meet.
  template <bool kFp8>
  std::vector<double> run(Method method, int tokens, const Routing& routing, bool queued) {
    begin(queued);
    for (int g = 0; g < 2; ++g) {  // dispatch
      Gpu &gpu = gpus_[g], &other = gpus_[1 - g];
      const size_t count = routing.sent[g].size();
      gpu.use();
      if (count)
        pack<kFp8><<<unsigned(count), kThreads, 0, gpu.stream>>>(
            gpu.x, gpu.ids, gpu.weights, gpu.sent_tokens,
            method == Method::kKernels ? other.arrived : gpu.send);
      move(method, g, other.arrived, gpu.send, count * Wire<kFp8>::kBytes);
    }
    arrive(
        method, Wire<kFp8>::kBytes, routing, [](Gpu& gpu) { return gpu.send; },
        [](Gpu& gpu) { return gpu.arrived; }, 1);
    for (int g = 0; g < 2; ++g) {
      Gpu& gpu = gpus_[g];
      gpu.use();
      const unsigned all = unsigned(tokens + routing.sent[1 - g].size());
      experts<kFp8><<<all, kThreads, 0, gpu.stream>>>(gpu.x, gpu.ids, gpu.weights, tokens, gpu.arrived,
                                                      gpu.vectors, g * kHome, gpu.own, gpu.returned,
                                                      gpu.stamps);
      CHECK(cudaEventRecord(gpu.at[2], gpu.stream));
    }
    for (int g = 0; g < 2; ++g) {  // combine
      gpus_[g].use();
      move(method, g, gpus_[1 - g].back, gpus_[g].returned, routing.sent[1 - g].size() * kReturned);
    }
    arrive(
        method, kReturned, routing, [](Gpu& gpu) { return reinterpret_cast<uint8_t*>(gpu.returned); },
        [](Gpu& gpu) { return reinterpret_cast<uint8_t*>(gpu.back); }, 0);
    for (int g = 0; g < 2; ++g) {
      Gpu& gpu = gpus_[g];
      gpu.use();
      add<<<unsigned(tokens), kThreads, 0, gpu.stream>>>(
          gpu.own, gpu.place, method == Method::kKernels ? gpus_[1 - g].returned : gpu.back, gpu.out,
          gpu.stamps);
      CHECK(cudaEventRecord(gpu.at[3], gpu.stream));
    }
    return finish();
  }

  // Copies of `bytes` from one GPU to the other. @return [µs] of each direction, 0 where it was not asked
  // for.
  std::vector<double> copy(uint8_t* (&from)[2], uint8_t* (&to)[2], size_t bytes, bool forth, bool back) {
    begin(true);
    const bool wanted[2] = {forth, back};
    for (int g = 0; g < 2; ++g) {
      Gpu& gpu = gpus_[g];
      gpu.use();
      if (wanted[g])
        CHECK(cudaMemcpyPeerAsync(to[1 - g], gpus_[1 - g].device, from[g], gpu.device, bytes, gpu.stream));
      CHECK(cudaEventRecord(gpu.at[1], gpu.stream));
    }
    open_gate();
    std::vector<double> us;
    for (int g = 0; g < 2; ++g) {
      gpus_[g].use();
      CHECK(cudaStreamSynchronize(gpus_[g].stream));
      us.push_back(wanted[g] ? elapsed(gpus_[g], 0) : 0);
    }
    return us;
  }

  std::vector<bf16> result(int g, int tokens) {
    std::vector<bf16> out(size_t(tokens) * kHidden);
    gpus_[g].use();
    CHECK(cudaMemcpy(out.data(), gpus_[g].out, out.size() * sizeof(bf16), cudaMemcpyDeviceToHost));
    return out;
  }
  void forget_results(int tokens) {  // so that no old result passes
    for (Gpu& gpu : gpus_) {
      gpu.use();
      CHECK(cudaMemset(gpu.out, 0xff, size_t(tokens) * kReturned));
      CHECK(cudaDeviceSynchronize());
    }
  }

 private:
  template <class T>
  void upload(T* to, const std::vector<T>& from) {
    CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  }

  void open_gate() { *const_cast<volatile int*>(gate_) = turn_; }

  void begin(bool queued) {
    ++turn_;
    if (!queued || one_) open_gate();  // the GPU would wait for itself
    for (int g = 0; g < 2; ++g) {
      Gpu& gpu = gpus_[g];
      gpu.use();
      meet<<<1, 1, 0, gpu.stream>>>(gpu.flag, one_ ? nullptr : gpus_[1 - g].flag, gate_, turn_, gpu.stamps);
      CHECK(cudaEventRecord(gpu.at[0], gpu.stream));
    }
  }

  // The part of a transfer that a stream does alone. Of NCCL's, nothing.
  void move(Method method, int g, void* to, const void* from, size_t bytes) {
    if (method == Method::kNccl) return;
    Gpu& gpu = gpus_[g];
    if (method == Method::kCopies && bytes)
      CHECK(cudaMemcpyPeerAsync(to, gpus_[1 - g].device, from, gpu.device, bytes, gpu.stream));
    CHECK(cudaEventRecord(gpu.sent, gpu.stream));
  }

  // Ends a transfer: each stream waits for the other one's rows. `tokens_of`: 1 where a GPU sends its own
  // tokens' rows, 0 where it sends those of the other one's.
  template <class From, class To>
  void arrive(Method method, size_t row, const Routing& routing, From from, To to, int own) {
    if (method == Method::kNccl) {
      nccl.good(nccl.group_start(), "ncclGroupStart");
      for (int g = 0; g < 2; ++g) {
        const size_t away = routing.sent[own ? g : 1 - g].size(), here = routing.sent[own ? 1 - g : g].size();
        nccl.good(nccl.send(from(gpus_[g]), away * row, Nccl::kUint8, 1 - g, nccl.communicators[g],
                            gpus_[g].stream),
                  "ncclSend");
        nccl.good(nccl.receive(to(gpus_[g]), here * row, Nccl::kUint8, 1 - g, nccl.communicators[g],
                               gpus_[g].stream),
                  "ncclRecv");
      }
      nccl.good(nccl.group_end(), "ncclGroupEnd");
    }
    for (int g = 0; g < 2; ++g) {
      gpus_[g].use();
      if (method != Method::kNccl) CHECK(cudaStreamWaitEvent(gpus_[g].stream, gpus_[1 - g].sent, 0));
      if (own) CHECK(cudaEventRecord(gpus_[g].at[1], gpus_[g].stream));
    }
  }

  double elapsed(const Gpu& gpu, int from) {
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, gpu.at[from], gpu.at[from + 1]));
    return 1e3 * ms;
  }

  std::vector<double> finish() {
    open_gate();
    CHECK(cudaGetLastError());
    std::vector<double> us, by_events;
    bool lost = false;
    for (Gpu& gpu : gpus_) {
      gpu.use();
      CHECK(cudaStreamSynchronize(gpu.stream));
    }
    for (Gpu& gpu : gpus_) {
      gpu.use();
      Stamps s;
      CHECK(cudaMemcpy(&s, gpu.stamps, sizeof s, cudaMemcpyDeviceToHost));
      lost = lost || s.lost;
      for (unsigned long long end : {s.arrived, s.computed, s.added})
        us.push_back(double(end - s.met) * 1e-3);
      for (int i = 0; i < 3; ++i) by_events.push_back(elapsed(gpu, i));
    }
    us.insert(us.end(), by_events.begin(), by_events.end());
    if (lost) us.clear();
    return us;
  }

  bool one_;
  int* gate_ = nullptr;
  int turn_ = 0;
  const int devices_[2] = {0, 1};
  Gpu gpus_[2];
};

// ---------------------------------------------------------------------------------------------------------
// The result, computed by the host

// A row as the other GPU reads it, as pack() rounds it.
void cross(std::vector<float>& x, bool eight_bits) {
  if (!eight_bits) return;
  for (int first = 0; first < kHidden; first += kBlock) {
    float most = 0;
    for (int i = first; i < first + kBlock; ++i) most = std::max(most, std::fabs(x[i]));
    const float scale = most > 0 ? most / kTop : 1;
    for (int i = first; i < first + kBlock; ++i) x[i] = float(fp8(x[i] / scale)) * scale;
  }
}

// Wrong numbers among `out` of GPU g. Three roundings to bf16 lie between: two of the parts, one of their
// sum.
long wrong_numbers(Machine& machine, const Setting& setting, const Routing& routing, int g,
                   const std::vector<bf16>& out) {
  std::vector<float> vectors[2];
  for (int home = 0; home < 2; ++home)
    for (bf16 v : machine.gpu(home).host_vectors) vectors[home].push_back(__bfloat162float(v));
  long wrong = 0;
  std::vector<float> x(kHidden), away, part[2], size(kHidden);
  for (int t = 0; t < setting.tokens; ++t) {
    const size_t at = size_t(t) * kHidden;
    for (int i = 0; i < kHidden; ++i) x[i] = __bfloat162float(machine.gpu(g).host_x[at + i]);
    away = x;
    cross(away, setting.eight_bits);
    part[0].assign(kHidden, 0), part[1].assign(kHidden, 0), size.assign(kHidden, 0);
    for (int k = 0; k < kTopK; ++k) {
      const int expert = routing.ids[g][t * kTopK + k], home = expert / kHome;
      const float weight = routing.weights[g][t * kTopK + k];
      const float* v = &vectors[home][size_t(expert % kHome) * kHidden];
      const float* from = home == g ? x.data() : away.data();
      for (int i = 0; i < kHidden; ++i) {
        const float term = weight * v[i] * from[i];
        part[home][i] += term, size[i] += std::fabs(term);
      }
    }
    for (int i = 0; i < kHidden; ++i) {
      const float allowed =
          0.008f * (std::fabs(part[0][i]) + std::fabs(part[1][i])) + 1e-5f * size[i] + 1e-30f;
      if (!(std::fabs(__bfloat162float(out[at + i]) - part[0][i] - part[1][i]) <= allowed)) ++wrong;
    }
  }
  return wrong;
}

uint64_t digest_of(const std::vector<bf16>& out) {
  uint64_t digest = 1469598103934665603u;  // FNV-1a, eight bytes at a time
  for (size_t i = 0; i + 4 <= out.size(); i += 4) {
    uint64_t word;
    std::memcpy(&word, &out[i], 8);
    digest = (digest ^ word) * 1099511628211u;
  }
  return digest;
}

// ---------------------------------------------------------------------------------------------------------
// What is measured

// Results that a host's computation has confirmed: another way of sending must give the same bits.
struct Confirmed {
  Setting setting;
  uint64_t digest[2];
};

void measure_link(Machine& machine, bool one) {
  const size_t bytes = size_t(one ? 1 : 256) << 20;
  uint8_t *from[2], *to[2];
  for (int g = 0; g < 2; ++g) {
    machine.gpu(g).use();
    CHECK(cudaMalloc(&from[g], bytes));
    CHECK(cudaMalloc(&to[g], bytes));
    CHECK(cudaMemset(from[g], g, bytes));
    CHECK(cudaDeviceSynchronize());
  }
  std::vector<double> forth, back, both[2];
  for (int i = 0; i < 2 + kLinkRepetitions; ++i) {
    const double a = machine.copy(from, to, bytes, true, false)[0];
    const double b = machine.copy(from, to, bytes, false, true)[1];
    const auto at_once = machine.copy(from, to, bytes, true, true);
    if (i < 2) continue;
    forth.push_back(a), back.push_back(b);
    both[0].push_back(at_once[0]), both[1].push_back(at_once[1]);
  }
  for (int g = 0; g < 2; ++g) {
    machine.gpu(g).use();
    CHECK(cudaFree(from[g]));
    CHECK(cudaFree(to[g]));
  }
  print("{\"link\": {\"bytes\": " + std::to_string(bytes) + ", \"alone_us\": [" + list(forth) + ", " +
        list(back) + "], \"both_us\": [" + list(both[0]) + ", " + list(both[1]) + "]}}");
}

template <bool kFp8>
void measure(Machine& machine, Method method, const Setting& setting, bool one,
             std::vector<Confirmed>& confirmed) {
  const Routing routing = make_routing(setting.tokens, setting.skewed ? 0.7f : 0.5f);
  machine.set(routing);
  machine.forget_results(setting.tokens);
  std::vector<std::vector<double>> launched, queued;
  int lost = 0;
  const auto begin = std::chrono::steady_clock::now();
  int kept = 0;
  for (int done = 0; kept < (one ? 1 : kRepetitions); ++done) {
    const bool warm = one || (done >= kWarm && std::chrono::steady_clock::now() - begin > kWarmTime);
    for (bool in_queue : {false, true}) {
      auto us = machine.run<kFp8>(method, setting.tokens, routing, in_queue);
      if (!machine.nccl.why.empty() && method == Method::kNccl) return;
      if (us.empty()) {
        if (++lost <= 3) continue;
        const char* why = "the GPUs do not meet: more than three repetitions were lost";
        if (method != Method::kNccl) stop(why);
        machine.nccl.why = why;
        return;
      }
      if (warm) (in_queue ? queued : launched).push_back(us);
    }
    kept += warm;
  }
  std::vector<long> wrong;
  Confirmed now{setting, {}};
  for (int g = 0; g < 2; ++g) {
    const auto out = machine.result(g, setting.tokens);
    now.digest[g] = digest_of(out);
    const bool same = std::any_of(confirmed.begin(), confirmed.end(), [&](const Confirmed& one_of_them) {
      const Setting& s = one_of_them.setting;
      return s.tokens == setting.tokens && s.skewed == setting.skewed && s.eight_bits == setting.eight_bits &&
             one_of_them.digest[g] == now.digest[g];
    });
    wrong.push_back(same ? 0 : wrong_numbers(machine, setting, routing, g, out));
  }
  if (wrong[0] + wrong[1] == 0) confirmed.push_back(now);
  const size_t away[2] = {routing.sent[0].size(), routing.sent[1].size()};
  auto pair = [](double a, double b) { return list(std::vector<double>{a, b}); };
  print("{\"case\": {\"method\": \"" + std::string(name_of(method)) + "\", \"tokens\": " +
        std::to_string(setting.tokens) + ", \"routing\": \"" + (setting.skewed ? "70/30" : "50/50") +
        "\", \"format\": \"" + (kFp8 ? "e4m3" : "bf16") + "\", \"crossing\": " + pair(away[0], away[1]) +
        ", \"expert_rows\": " + pair(routing.expert_rows[0], routing.expert_rows[1]) +
        ", \"dispatch_bytes\": " +
        pair(double(away[0]) * Wire<kFp8>::kBytes, double(away[1]) * Wire<kFp8>::kBytes) +
        ", \"combine_bytes\": " + pair(double(away[1]) * kReturned, double(away[0]) * kReturned) +
        ", \"checked\": " + std::to_string(2L * setting.tokens * kHidden) +
        ", \"wrong\": " + std::to_string(wrong[0] + wrong[1]) + ", \"lost\": " + std::to_string(lost) +
        ", \"launched\": " + rows(launched) + ", \"queued\": " + rows(queued) + "}}");
}

void measure_all(Machine& machine, Method method, const std::vector<int>& sizes, bool one,
                 std::vector<Confirmed>& confirmed) {
  for (int tokens : sizes)
    for (bool skewed : {false, true}) {
      measure<true>(machine, method, {tokens, skewed, true}, one, confirmed);
      if (!skewed) measure<false>(machine, method, {tokens, skewed, false}, one, confirmed);
    }
}

}  // namespace

int main(int argc, char** argv) {
  // Loading a kernel's code while the other GPU waits for it could keep both waiting.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  std::string nccl = "libnccl.so.2";
  int limit = 150;
  bool one = false;
  std::vector<int> sizes{4096, 128};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--one-gpu") {
      one = true;
    } else if (i + 1 < argc && word == "--nccl") {
      nccl = argv[++i];
    } else if (i + 1 < argc && word == "--limit") {
      limit = std::atoi(argv[++i]);
    } else if (i + 1 < argc && word == "--tokens" && std::atoi(argv[i + 1]) > 0) {
      sizes = {std::atoi(argv[++i])};
    } else {
      std::fprintf(stderr, "usage: two_gpus [--nccl FILE] [--limit SECONDS] [--one-gpu] [--tokens N]\n");
      return 2;
    }
  }
  std::thread([limit] {
    std::this_thread::sleep_for(std::chrono::seconds(limit));
    stop("the time limit of " + std::to_string(limit) + " s is over");
  }).detach();

  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (!one && count < 2) stop("there are not two GPUs here");
  std::string names;
  for (int g = 0; g < 2; ++g) {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, one ? 0 : g));
    names += (g ? ", " : "") + quoted(properties.name);
  }
  Machine machine(*std::max_element(sizes.begin(), sizes.end()), one);
  unsigned long long *step, ns = 0;
  machine.gpu(0).use();
  CHECK(cudaMalloc(&step, sizeof ns));
  timer_step<<<1, 1>>>(step);
  CHECK(cudaMemcpy(&ns, step, sizeof ns, cudaMemcpyDeviceToHost));
  print("{\"devices\": [" + names + "], \"hidden\": " + std::to_string(kHidden) +
        ", \"experts\": " + std::to_string(kExperts) + ", \"top_k\": " + std::to_string(kTopK) +
        ", \"timer_step_ns\": " + std::to_string(ns) + "}");
  measure_link(machine, one);

  // NCCL comes last: if it hangs, the others are measured.
  std::vector<Confirmed> confirmed;
  for (Method method : {Method::kCopies, Method::kKernels})
    measure_all(machine, method, sizes, one, confirmed);
  if (one)
    machine.nccl.why = "one GPU plays both parts";
  else
    machine.nccl.load(nccl, machine.devices());
  if (machine.nccl.why.empty()) {
    print("{\"nccl\": " + quoted(machine.nccl.version_text()) + "}");
    for (int tokens : sizes)
      if (machine.nccl.why.empty()) measure_all(machine, Method::kNccl, {tokens}, one, confirmed);
  }
  if (!machine.nccl.why.empty()) print("{\"no_nccl\": " + quoted(machine.nccl.why) + "}");
  print("{\"done\": true}");
  _exit(0);  // NCCL's threads need not end
}
