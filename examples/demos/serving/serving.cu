// A tiny server: a transformer with random weights and a paged KV cache serves real request lengths, once
// with static batching and once with continuous batching.
//
//   serving [--toy]      prints one JSON object: tokens per second, steps, and the time and bytes of each
//   phase
//
// Build it together with a kernel for the problem paged_decode: its launch() is the attention of every layer.
// A step takes any mix of rows. A row is one token of one sequence at one position; prompt tokens and answer
// tokens are the same to every kernel here. A prompt is cut into chunks that share steps with the answers of
// other sequences.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lengths.h"

using bf16 = __nv_bfloat16;

extern "C" void launch(const bf16* q, const bf16* k_cache, const bf16* v_cache, const int32_t* page_table,
                       const int32_t* lengths, bf16* o, int64_t b, int64_t hq, int64_t d, int64_t max_pages,
                       int64_t page, int64_t hk, void* workspace, cudaStream_t stream);
extern "C" size_t workspace_bytes(int64_t b, int64_t hq, int64_t d, int64_t max_pages, int64_t page,
                                  int64_t hk) __attribute__((weak));

namespace {

#define CHECK(call)                                                                                  \
  do {                                                                                               \
    const cudaError_t error = (call);                                                                \
    if (error != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "error: %s\n  --> serving.cu:%d\n", cudaGetErrorString(error), __LINE__); \
      std::exit(1);                                                                                  \
    }                                                                                                \
  } while (0)

// ---------------------------------------------------------------------------------------------------------
// The model

struct Model {
  int layers, hidden, hq, hk, d, ffn, vocab;
  int places;     // sequences that run at a time
  int chunk;      // rows of prompts in a step
  int pages;      // of the cache of one layer
  int max_pages;  // of one sequence
  int requests;
  int shorten;  // divides the lengths of the requests
  int rows() const { return places + chunk; }
  __host__ __device__ int qkv() const { return (hq + 2 * hk) * d; }
};

constexpr int kPage = 16;  // [tokens]
// 0.9 GB of weights; one token of one sequence takes 16 KiB of cache in all layers.
constexpr Model kServer{8, 2048, 16, 4, 128, 5632, 32000, 64, 192, 9000, 288, 128, 1};
// What an emulated GPU serves in a few seconds.
constexpr Model kToy{1, 128, 4, 2, 64, 128, 256, 3, 5, 24, 8, 8, 16};

struct Row {
  int request, place, position;
};

__host__ __device__ unsigned scramble(unsigned x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
  return x;
}

// ---------------------------------------------------------------------------------------------------------
// Kernels

// w[i]: uniform with standard deviation `deviation`.
__global__ void draw(bf16* w, int64_t n, unsigned seed, float deviation) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x) {
    const unsigned bits = scramble(unsigned(i) ^ scramble(seed ^ unsigned(i >> 32)));
    w[i] = __float2bfloat16((bits * (2.0f / 4294967296.0f) - 1.0f) * 1.732f * deviation);
  }
}

// One block a row: the embedding of the row's token, its length with itself, its pages and its slot.
__global__ void look_up(const Row* rows, const int* prompts, const int* answers, int longest,
                        const int* tables, const bf16* embedding, Model m, bf16* x, int* lengths,
                        int* row_tables, int* slots) {
  const Row row = rows[blockIdx.x];
  const int in_answer = row.position - prompts[row.request];
  const int token = in_answer < 0 ? scramble(row.request * 65537 + row.position) % m.vocab
                                  : answers[row.request * longest + in_answer];
  for (int i = threadIdx.x; i < m.hidden; i += blockDim.x)
    x[int64_t(blockIdx.x) * m.hidden + i] = embedding[int64_t(token) * m.hidden + i];
  const int* table = tables + row.place * m.max_pages;
  for (int i = threadIdx.x; i < m.max_pages; i += blockDim.x)
    row_tables[blockIdx.x * m.max_pages + i] = table[i];
  if (threadIdx.x > 0) return;
  lengths[blockIdx.x] = row.position + 1;
  slots[blockIdx.x] = table[row.position / kPage] * kPage + row.position % kPage;
}

// One block of 256 threads a row: y = x / rms(x).
__global__ void rms_norm(const bf16* x, bf16* y, int n) {
  __shared__ float warps[8];
  x += int64_t(blockIdx.x) * n, y += int64_t(blockIdx.x) * n;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += float(x[i]) * float(x[i]);
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < 8; ++w) sum += warps[w];
  const float scale = rsqrtf(sum / n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += 256) y[i] = __float2bfloat16(float(x[i]) * scale);
}

__device__ void multiply(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

constexpr int kFeatures = 16, kTileRows = 64, kWarps = 8;

// y[rows, n] = x[rows, k] w[n, k]^T (+ add). A block makes 16 features of 64 rows; its eight warps share k.
// Lane (g, t) loads 16 bytes, k = 8t … 8t + 7 of a chunk of 32, of weight rows g and g + 8 and of row g of x.
// The order of k inside a chunk does not matter as long as both operands have the same: these eight numbers
// serve two products m16n8k16. k % 32 == 0, n % 16 == 0.
__global__ void __launch_bounds__(32 * kWarps)
    matmul(const bf16* x, const bf16* w, const bf16* add, bf16* y, int rows, int n, int k) {
  __shared__ float parts[kWarps][kTileRows][kFeatures];
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int feature = blockIdx.x * kFeatures, first = blockIdx.y * kTileRows,
            tiles = min(8, (rows - first + 7) / 8);
  const bf16* low = w + int64_t(feature + g) * k + 8 * t;
  const bf16* high = low + int64_t(8) * k;
  float c[8][4] = {};
#pragma unroll 2
  for (int at = 32 * warp; at < k; at += 32 * kWarps) {
    const uint4 a = *reinterpret_cast<const uint4*>(low + at), b = *reinterpret_cast<const uint4*>(high + at);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (j >= tiles) break;
      const int row = first + 8 * j + g;
      uint4 v = make_uint4(0, 0, 0, 0);
      if (row < rows) v = *reinterpret_cast<const uint4*>(x + int64_t(row) * k + at + 8 * t);
      multiply(c[j], a.x, b.x, a.y, b.y, v.x, v.y);
      multiply(c[j], a.z, b.z, a.w, b.w, v.z, v.w);
    }
  }
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) parts[warp][8 * j + 2 * t + i % 2][g + i / 2 * 8] = c[j][i];
  __syncthreads();
  for (int i = threadIdx.x; i < kTileRows * kFeatures; i += 32 * kWarps) {
    const int row = first + i / kFeatures, at = i % kFeatures;
    if (row >= rows) break;
    float sum = add ? float(add[int64_t(row) * n + feature + at]) : 0;
    for (int part = 0; part < kWarps; ++part) sum += parts[part][i / kFeatures][at];
    y[int64_t(row) * n + feature + at] = __float2bfloat16(sum);
  }
}

// One block a row: rotates q and k by the row's position, writes k and v into the row's slot.
__global__ void rope_and_cache(const bf16* qkv, const int* lengths, const int* slots, Model m, bf16* q,
                               bf16* k_cache, bf16* v_cache) {
  const int row = blockIdx.x, half = m.d / 2;
  const float position = lengths[row] - 1;
  qkv += int64_t(row) * m.qkv(), q += int64_t(row) * m.hq * m.d;
  const int64_t slot = int64_t(slots[row]) * m.hk * m.d;
  for (int i = threadIdx.x; i < (m.hq + m.hk) * half; i += blockDim.x) {
    const int head = i / half, pair = i % half;
    float sine, cosine;
    sincosf(position * exp2f(-13.2877f * pair / half), &sine, &cosine);  // 10000^(-pair / half)
    const float a = qkv[head * m.d + pair], b = qkv[head * m.d + pair + half];
    bf16* to = head < m.hq ? q + head * m.d : k_cache + slot + (head - m.hq) * m.d;
    to[pair] = __float2bfloat16(a * cosine - b * sine);
    to[pair + half] = __float2bfloat16(b * cosine + a * sine);
  }
  for (int i = threadIdx.x; i < m.hk * m.d; i += blockDim.x) v_cache[slot + i] = qkv[(m.hq + m.hk) * m.d + i];
}

// gates and values [rows, 2 ffn] → silu(gate) * value [rows, ffn]
__global__ void swiglu(const bf16* both, bf16* y, int rows, int ffn) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * ffn; i += gridDim.x * blockDim.x) {
    const bf16* row = both + int64_t(i / ffn) * 2 * ffn + i % ffn;
    const float gate = row[0], value = row[ffn];
    y[i] = __float2bfloat16(gate / (1 + expf(-gate)) * value);
  }
}

// One block a row: the most likely token is the answer's next; of equal ones the lowest.
__global__ void take_most_likely(const bf16* logits, const Row* rows, const int* prompts, int* answers,
                                 int longest, int vocab) {
  __shared__ unsigned long long best;
  if (threadIdx.x == 0) best = 0;
  __syncthreads();
  logits += int64_t(blockIdx.x) * vocab;
  unsigned long long mine = 0;
  for (int i = threadIdx.x; i < vocab; i += blockDim.x) {
    const unsigned bits = __float_as_uint(float(logits[i]));
    const unsigned ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
    const unsigned long long key = (static_cast<unsigned long long>(ordered) << 32) | unsigned(vocab - i);
    mine = key > mine ? key : mine;
  }
  atomicMax(&best, mine);
  __syncthreads();
  const Row row = rows[blockIdx.x];
  if (threadIdx.x == 0)
    answers[row.request * longest + row.position + 1 - prompts[row.request]] =
        vocab - int(best & 0xffffffffu);
}

// One warp a row and head, in fp32: what the attention kernel should have found; its largest error.
__global__ void check_attention(const bf16* q, const bf16* k_cache, const bf16* v_cache, const int* tables,
                                const int* lengths, const bf16* o, Model m, unsigned* worst) {
  const int row = blockIdx.x, head = blockIdx.y, kv = head / (m.hq / m.hk), lane = threadIdx.x;
  q += (int64_t(row) * m.hq + head) * m.d, o += (int64_t(row) * m.hq + head) * m.d;
  float most = -INFINITY, sum = 0, mine[4] = {};  // d <= 128
  for (int at = 0; at < lengths[row]; ++at) {
    const int64_t place =
        ((int64_t(tables[row * m.max_pages + at / kPage]) * kPage + at % kPage) * m.hk + kv) * m.d;
    float score = 0;
    for (int i = lane; i < m.d; i += 32) score += float(q[i]) * float(k_cache[place + i]);
    for (int other = 16; other > 0; other /= 2) score += __shfl_xor_sync(~0u, score, other);
    score *= rsqrtf(m.d);
    const float now = fmaxf(most, score), old = expf(most - now), weight = expf(score - now);
    sum = sum * old + weight, most = now;
    for (int i = lane, j = 0; i < m.d; i += 32, ++j)
      mine[j] = mine[j] * old + weight * float(v_cache[place + i]);
  }
  float error = 0;
  for (int i = lane, j = 0; i < m.d; i += 32, ++j) {
    const float difference = fabsf(mine[j] / sum - float(o[i]));
    error = difference <= error ? error : isnan(difference) ? INFINITY : difference;
  }
  atomicMax(worst, __float_as_uint(error));  // of floats that are not negative, the bits have the same order
}

// ---------------------------------------------------------------------------------------------------------
// One step of the model

enum Phase { kQkv, kRope, kAttention, kOutput, kFeedForward, kSampling, kPhases };
constexpr const char* kPhaseNames[] = {"norm_qkv", "rope_cache",   "attention",
                                       "output",   "feed_forward", "logits_token"};

template <typename T>
T* device(int64_t count) {
  T* memory = nullptr;
  CHECK(cudaMalloc(reinterpret_cast<void**>(&memory), count * sizeof(T)));
  return memory;
}

struct Server {
  explicit Server(const Model& model);
  void step(const std::vector<Row>& rows, int sampled, bool timed, bool checked);
  void phase(Phase next);
  void product(const bf16* x, const bf16* w, const bf16* add, bf16* y, int rows, int n, int k) {
    const dim3 grid(n / kFeatures, (rows + kTileRows - 1) / kTileRows);
    matmul<<<grid, 32 * kWarps, 0, stream>>>(x, w, add, y, rows, n, k);
  }

  Model m;
  int longest = 0;  // answer
  cudaStream_t stream;
  struct Layer {
    bf16 *qkv, *output, *gates, *down, *k_cache, *v_cache;
  };
  std::vector<Layer> layers;
  bf16 *embedding, *x, *normed, *qkv, *q, *o, *gates, *act, *logits;
  int *prompts, *answers, *tables, *lengths, *row_tables, *slots;
  Row* rows;
  void* workspace = nullptr;
  unsigned* worst;
  std::vector<std::pair<Phase, cudaEvent_t>> marks;  // a phase and its begin
  std::size_t used = 0;
  bool marking = false;
  double phase_ms[kPhases] = {};  // of timed steps
};

Server::Server(const Model& model) : m(model) {
  CHECK(cudaStreamCreate(&stream));
  std::vector<int> prompt_lengths;
  for (int i = 0; i < m.requests; ++i) {
    prompt_lengths.push_back(std::max(1, kLengths[i].prompt / m.shorten));
    longest = std::max(longest, std::max(1, kLengths[i].answer / m.shorten));
  }
  unsigned seed = 1;
  const int blocks = m.layers > 1 ? 1024 : 2;
  auto weights = [&](int64_t n, int64_t k) {
    bf16* w = device<bf16>(n * k);
    draw<<<blocks, 256, 0, stream>>>(w, n * k, seed++, 1.0f / std::sqrt(float(k)));
    return w;
  };
  embedding = weights(m.vocab, m.hidden);
  const int64_t cache = int64_t(m.pages) * kPage * m.hk * m.d;
  for (int i = 0; i < m.layers; ++i) {
    layers.push_back({weights(m.qkv(), m.hidden), weights(m.hidden, m.hq * m.d), weights(2 * m.ffn, m.hidden),
                      weights(m.hidden, m.ffn), device<bf16>(cache), device<bf16>(cache)});
    CHECK(cudaMemsetAsync(layers[i].k_cache, 0xff, cache * sizeof(bf16), stream));  // NaN: nobody may read it
    CHECK(cudaMemsetAsync(layers[i].v_cache, 0xff, cache * sizeof(bf16), stream));
  }
  const int64_t r = m.rows();
  x = device<bf16>(r * m.hidden), normed = device<bf16>(r * m.hidden), qkv = device<bf16>(r * m.qkv());
  q = device<bf16>(r * m.hq * m.d), o = device<bf16>(r * m.hq * m.d), gates = device<bf16>(r * 2 * m.ffn);
  act = device<bf16>(r * m.ffn), logits = device<bf16>(r * m.vocab), rows = device<Row>(r);
  prompts = device<int>(m.requests), answers = device<int>(m.requests * longest);
  tables = device<int>(m.places * m.max_pages), lengths = device<int>(r), slots = device<int>(r);
  row_tables = device<int>(r * m.max_pages), worst = device<unsigned>(1);
  CHECK(cudaMemcpyAsync(prompts, prompt_lengths.data(), m.requests * sizeof(int), cudaMemcpyHostToDevice,
                        stream));
  CHECK(cudaMemsetAsync(tables, 0, m.places * m.max_pages * sizeof(int), stream));
  CHECK(cudaMemsetAsync(worst, 0, sizeof(unsigned), stream));
  size_t bytes = 0;
  if (workspace_bytes)
    for (int b = 1; b <= r; ++b)
      bytes = std::max(bytes, workspace_bytes(b, m.hq, m.d, m.max_pages, kPage, m.hk));
  if (bytes > 0) CHECK(cudaMalloc(&workspace, bytes));
  CHECK(cudaStreamSynchronize(stream));
}

// From here on the stream works for `next`.
void Server::phase(Phase next) {
  if (!marking) return;
  if (used == marks.size()) {
    marks.emplace_back();
    CHECK(cudaEventCreate(&marks.back().second));
  }
  marks[used].first = next;
  CHECK(cudaEventRecord(marks[used++].second, stream));
}

// The first `sampled` rows get a next token. `timed` steps are measured by phase, `checked` ones compared.
void Server::step(const std::vector<Row>& batch, int sampled, bool timed, bool checked) {
  const int n = static_cast<int>(batch.size());
  marking = timed, used = 0;
  CHECK(cudaMemcpyAsync(rows, batch.data(), n * sizeof(Row), cudaMemcpyHostToDevice, stream));
  phase(kQkv);
  look_up<<<n, 128, 0, stream>>>(rows, prompts, answers, longest, tables, embedding, m, x, lengths,
                                 row_tables, slots);
  for (const Layer& layer : layers) {
    phase(kQkv);
    rms_norm<<<n, 256, 0, stream>>>(x, normed, m.hidden);
    product(normed, layer.qkv, nullptr, qkv, n, m.qkv(), m.hidden);
    phase(kRope);
    rope_and_cache<<<n, 256, 0, stream>>>(qkv, lengths, slots, m, q, layer.k_cache, layer.v_cache);
    phase(kAttention);
    launch(q, layer.k_cache, layer.v_cache, row_tables, lengths, o, n, m.hq, m.d, m.max_pages, kPage, m.hk,
           workspace, stream);
    phase(kOutput);
    if (checked)
      check_attention<<<dim3(n, m.hq), 32, 0, stream>>>(q, layer.k_cache, layer.v_cache, row_tables, lengths,
                                                        o, m, worst);
    product(o, layer.output, x, x, n, m.hidden, m.hq * m.d);
    phase(kFeedForward);
    rms_norm<<<n, 256, 0, stream>>>(x, normed, m.hidden);
    product(normed, layer.gates, nullptr, gates, n, 2 * m.ffn, m.hidden);
    swiglu<<<std::min(1024, (n * m.ffn + 255) / 256), 256, 0, stream>>>(gates, act, n, m.ffn);
    product(act, layer.down, x, x, n, m.hidden, m.ffn);
  }
  phase(kSampling);
  if (sampled > 0) {
    rms_norm<<<sampled, 256, 0, stream>>>(x, normed, m.hidden);
    product(normed, embedding, nullptr, logits, sampled, m.vocab, m.hidden);
    take_most_likely<<<sampled, 256, 0, stream>>>(logits, rows, prompts, answers, longest, m.vocab);
  }
  phase(kPhases);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamSynchronize(stream));
  for (std::size_t i = 0; i + 1 < used; ++i) {
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, marks[i].second, marks[i + 1].second));
    phase_ms[marks[i].first] += ms;
  }
}

// ---------------------------------------------------------------------------------------------------------
// Batching

struct Running {
  int request = -1, position = 0, last = 0;  // last: the position whose row makes the answer's last token
  int prompt = 0;
  bool done = false;
  std::vector<int> pages;
};

struct Outcome {
  double seconds = 0;
  int64_t steps = 0, timed_steps = 0, tokens = 0, rows = 0, wasted = 0, answer_rows = 0;
  double timed_ms[kPhases] = {};
  int64_t timed_rows = 0, timed_sampled = 0,
          timed_cached = 0;  // timed_cached: tokens that attention had to read
};

class Batching {
 public:
  Batching(Server& server, bool continuous) : server_(server), m_(server.m), continuous_(continuous) {
    for (int i = m_.pages; i-- > 0;) free_.push_back(int((int64_t(i) * 7919) % m_.pages));  // in no order
    places_.resize(m_.places);
  }

  Outcome run() {
    std::memset(server_.phase_ms, 0, sizeof server_.phase_ms);
    const auto begin = std::chrono::steady_clock::now();
    while (admit()) step();
    out_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::copy(server_.phase_ms, server_.phase_ms + kPhases, out_.timed_ms);
    return out_;
  }

 private:
  // Gives free places to waiting requests: at once, or only when the whole batch is done. False: all is
  // served.
  bool admit() {
    const bool all_done =
        std::all_of(places_.begin(), places_.end(), [](const Running& r) { return r.done || r.request < 0; });
    if (continuous_ || all_done)
      for (Running& place : places_) {
        if (place.request >= 0 && !place.done) continue;
        free_.insert(free_.end(), place.pages.begin(), place.pages.end());
        place = {};
      }
    if (continuous_ || all_done)
      for (Running& place : places_)
        if (place.request < 0 && next_ < m_.requests && !begin(place)) break;
    return std::any_of(places_.begin(), places_.end(),
                       [](const Running& r) { return r.request >= 0 && !r.done; });
  }

  // False: the cache has not enough free pages for the next request.
  bool begin(Running& place) {
    const int prompt = std::max(1, kLengths[next_].prompt / m_.shorten);
    const int answer = std::max(1, kLengths[next_].answer / m_.shorten);
    const int pages = (prompt + answer + kPage - 1) / kPage;
    if (pages > m_.max_pages || pages > m_.pages) {
      std::fprintf(stderr, "error: request %d needs %d pages\n", next_, pages);
      std::exit(1);
    }
    if (pages > static_cast<int>(free_.size())) return false;
    place.request = next_++, place.prompt = prompt, place.last = prompt + answer - 2;
    place.pages.assign(free_.end() - pages, free_.end());
    free_.resize(free_.size() - pages);
    const std::ptrdiff_t at = &place - places_.data();
    CHECK(cudaMemcpyAsync(server_.tables + at * m_.max_pages, place.pages.data(), pages * sizeof(int),
                          cudaMemcpyHostToDevice, server_.stream));
    CHECK(cudaStreamSynchronize(server_.stream));
    return true;
  }

  // Rows that make a token come first. In a static batch, a sequence that is done keeps its row until the
  // batch ends.
  void step() {
    std::vector<Row> sampled, prompt;
    int budget = m_.chunk;
    const bool prompts_first =
        !continuous_ && std::any_of(places_.begin(), places_.end(), [](const Running& r) {
          return r.request >= 0 && r.position < r.prompt - 1;
        });
    int64_t cached = 0;
    for (int i = 0; i < m_.places; ++i) {
      Running& r = places_[i];
      if (r.request < 0) continue;
      while (!r.done && r.position < r.prompt - 1 && budget > 0) {
        cached += r.position + 1;
        prompt.push_back({r.request, i, r.position++}), --budget;
      }
      if (r.position < r.prompt - 1 || prompts_first) continue;
      cached += r.position + 1;
      sampled.push_back({r.request, i, r.position});
      ++out_.answer_rows;
      if (r.done)
        ++out_.wasted;
      else
        ++out_.tokens;
      if (r.position == r.last)
        r.done = true;
      else if (!r.done)
        ++r.position;
    }
    std::vector<Row> rows = sampled;
    rows.insert(rows.end(), prompt.begin(), prompt.end());
    const bool timed = out_.steps % 8 == 3, checked = !timed && out_.steps % 256 == 1;
    if (timed) {
      ++out_.timed_steps;
      out_.timed_rows += rows.size(), out_.timed_sampled += sampled.size(), out_.timed_cached += cached;
    }
    out_.rows += rows.size(), ++out_.steps;
    server_.step(rows, static_cast<int>(sampled.size()), timed, checked);
  }

  Server& server_;
  const Model& m_;
  const bool continuous_;
  std::vector<int> free_;
  std::vector<Running> places_;
  int next_ = 0;
  Outcome out_;
};

// ---------------------------------------------------------------------------------------------------------

// Bytes that a phase has to move in the timed steps: weights once a step, the cache once a row and layer.
double bytes_of(int phase, const Outcome& out, const Model& m) {
  const double layers = m.layers, steps = out.timed_steps, rows = out.timed_rows, e = 2;
  switch (phase) {
    case kQkv:
      return e * layers * (steps * m.qkv() * m.hidden + rows * (m.hidden + m.qkv()));
    case kRope:
      return e * layers * rows * 2 * m.qkv();
    case kAttention:
      return e * layers * (2.0 * out.timed_cached * m.hk * m.d + 2 * rows * m.hq * m.d);
    case kOutput:
      return e * layers * (steps * m.hidden * m.hq * m.d + rows * (2 * m.hidden + m.hq * m.d));
    case kFeedForward:
      return e * layers * (steps * 3 * m.ffn * m.hidden + rows * (3 * m.hidden + 6 * m.ffn));
    default:
      return e * (steps * m.vocab * m.hidden + out.timed_sampled * double(m.vocab + m.hidden));
  }
}

void print(const char* name, const Outcome& out, const Model& m, bool last) {
  std::printf(
      "{\"batching\": \"%s\", \"seconds\": %.6f, \"steps\": %lld, \"tokens\": %lld, \"rows\": %lld, "
      "\"answer_rows\": %lld, \"wasted_rows\": %lld, \"timed_steps\": %lld, \"phases\": [",
      name, out.seconds, (long long)out.steps, (long long)out.tokens, (long long)out.rows,
      (long long)out.answer_rows, (long long)out.wasted, (long long)out.timed_steps);
  for (int p = 0; p < kPhases; ++p)
    std::printf("%s{\"phase\": \"%s\", \"ms\": %.6f, \"bytes\": %.0f}", p ? ", " : "", kPhaseNames[p],
                out.timed_ms[p], bytes_of(p, out, m));
  std::printf("]}%s\n", last ? "" : ",");
}

}  // namespace

int main(int argc, char** argv) {
  const Model& m = argc > 1 && std::string(argv[1]) == "--toy" ? kToy : kServer;
  Server server(m);
  Batching(server, true).run();  // warm-up: clocks, lazy loading, pages of the cache
  const Outcome fixed = Batching(server, false).run();
  const Outcome continuous = Batching(server, true).run();
  unsigned bits = 0;
  CHECK(cudaMemcpy(&bits, server.worst, sizeof bits, cudaMemcpyDeviceToHost));
  float worst;
  std::memcpy(&worst, &bits, sizeof worst);
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("{\"device\": \"%s\", \"requests\": %d, \"places\": %d, ", properties.name, m.requests,
              m.places);
  std::printf(
      "\"model\": \"%d layer%s, hidden %d, %d/%d heads of %d, feed-forward %d, vocabulary %d, bf16\", ",
      m.layers, m.layers == 1 ? "" : "s", m.hidden, m.hq, m.hk, m.d, m.ffn, m.vocab);
  if (std::isfinite(worst))
    std::printf("\"attention_error\": %.6g, \"runs\": [\n", worst);
  else
    std::printf("\"attention_error\": \"Infinity\", \"runs\": [\n");
  print("static", fixed, m, false);
  print("continuous", continuous, m, true);
  std::printf("]}\n");
}
