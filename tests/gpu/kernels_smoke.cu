// Judges one kernel file quickly, without the rest of capstone: is it correct, and how fast is it?
//
//   nvcc -std=c++17 -O3 -arch=sm_90a -DPROBLEM_SGEMM -DKERNEL_FILE='"…/04_register_tile_1d.cu"'
//        kernels_smoke.cu -o smoke
//   ./smoke <name> [m=4096 k=4096 n=4096]
//
// It includes the kernel file and compares it with a double-precision reference: all elements at small ragged
// sizes, a sample at the measure size. Then it times the kernel there with events (cold L2, median of 30),
// and a device copy in the same run. It prints one line of CSV (kHeader; bytes and FLOPs are those of the
// best possible algorithm, worst_error is in units of the tolerance) and exits 1 if the kernel is wrong.
// scripts/gpu_kernels.sh runs the whole set. With CAPSTONE_EMULATED the measure size is omitted, so that the
// file checks kernels on a CPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

// ---- the kernel under test
// ----------------------------------------------------------------------------------------- The optional
// functions of the contract are declared weak, so that their address is null where the file has none.
#define WEAK __attribute__((weak))
#pragma GCC diagnostic ignored "-Waddress"  // where the file has one, the address is known not to be null
extern "C" WEAK const char* baseline_label();
#if defined(PROBLEM_BIAS_GELU_LAYERNORM) || defined(PROBLEM_SOFTMAX)
extern "C" WEAK size_t workspace_bytes(int64_t, int64_t);
#elif defined(PROBLEM_SGEMM)
extern "C" WEAK size_t workspace_bytes(int64_t, int64_t, int64_t);
#elif defined(PROBLEM_CONV_BIAS_SCALE_RELU)
extern "C" WEAK size_t workspace_bytes(int64_t, int64_t, int64_t, int64_t, int64_t);
#else
#error \
    "define one of PROBLEM_BIAS_GELU_LAYERNORM, PROBLEM_SOFTMAX, PROBLEM_SGEMM, PROBLEM_CONV_BIAS_SCALE_RELU"
#endif

#include KERNEL_FILE

namespace smoke {

constexpr const char* kHeader =
    "kernel,check,worst_error,median_ms,min_ms,gb_per_s,percent_of_copy,tflop_per_s,label";
constexpr int kTimedLaunches = 30;
constexpr int64_t kSamples = 2000;  // elements compared at the measure size
constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr size_t kCopyBytes = size_t{512} << 20;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "kernels_smoke: %s\n", what.c_str());
  std::exit(2);
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) die(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Deterministic values in [-2, 2), a different stream for each seed.
std::vector<float> random_values(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
  for (float& v : values) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    v = static_cast<float>(static_cast<int32_t>(state >> 32)) * (1.0f / (1u << 30));
  }
  return values;
}

/// A tensor on the device, freed by its destructor.
class Device {
 public:
  explicit Device(size_t bytes) { check(cudaMalloc(&data_, std::max<size_t>(bytes, 256)), "cudaMalloc"); }
  explicit Device(const std::vector<float>& host) : Device(host.size() * sizeof(float)) {
    check(cudaMemcpy(data_, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice), "upload");
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { cudaFree(data_); }
  float* floats() const { return static_cast<float*>(data_); }
  void* bytes() const { return data_; }

 private:
  void* data_ = nullptr;
};

/// An exact value and the size of the terms whose sum it is.
struct Exact {
  double value, scale;
};

using Dims = std::vector<int64_t>;

// ---- the four problems: sizes, inputs, launch, reference, cost
// ------------------------------------------------------

#if defined(PROBLEM_BIAS_GELU_LAYERNORM)

constexpr double kRtol = 2e-5, kAtol = 2e-5;
const std::vector<std::string> kSymbols = {"rows", "cols"};
const Dims kMeasure = {16384, 4096};
const std::vector<Dims> kCases = {{1, 1},   {3, 129},  {2, 4},    {5, 1020}, {4, 1024}, {3, 1028}, {2, 2052},
                                  {7, 333}, {2, 4096}, {2, 4095}, {2, 8192}, {1, 8196}, {1, 9001}, {64, 32}};
constexpr float kEps = 1e-5f;

struct Problem {
  explicit Problem(const Dims& d)
      : rows(d[0]),
        cols(d[1]),
        x(random_values(rows * cols, 1)),
        residual(random_values(rows * cols, 2)),
        bias(random_values(cols, 3)),
        gamma(random_values(cols, 4)),
        beta(random_values(cols, 5)),
        dx(x),
        dresidual(residual),
        dbias(bias),
        dgamma(gamma),
        dbeta(beta) {}
  int64_t outputs() const { return rows * cols; }
  size_t workspace() const { return workspace_bytes ? workspace_bytes(rows, cols) : 0; }
  void run(float* y, void* scratch, cudaStream_t stream) const {
    launch(dx.floats(), dresidual.floats(), dbias.floats(), dgamma.floats(), dbeta.floats(), y, kEps, rows,
           cols, scratch, stream);
  }
  double sum_of_row(int64_t row, int64_t c) const {
    const double v = static_cast<double>(x[row * cols + c]) + bias[c];
    return residual[row * cols + c] + 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
  }
  Exact exact(int64_t index) {
    const int64_t row = index / cols, column = index % cols;
    if (row != known_row) {
      double sum = 0, squares = 0;
      for (int64_t c = 0; c < cols; ++c) sum += sum_of_row(row, c);
      mean = sum / cols;
      for (int64_t c = 0; c < cols; ++c) squares += std::pow(sum_of_row(row, c) - mean, 2);
      inverse = 1 / std::sqrt(squares / cols + kEps);
      known_row = row;
    }
    return {(sum_of_row(row, column) - mean) * inverse * gamma[column] + beta[column],
            1 + std::fabs(mean * inverse * gamma[column])};
  }
  double flops() const { return 20.0 * rows * cols; }
  double traffic() const { return 4.0 * (3.0 * rows * cols + 3.0 * cols); }

  int64_t rows, cols;
  std::vector<float> x, residual, bias, gamma, beta;
  Device dx, dresidual, dbias, dgamma, dbeta;
  int64_t known_row = -1;
  double mean = 0, inverse = 0;
};

#elif defined(PROBLEM_SOFTMAX)

constexpr double kRtol = 1e-5, kAtol = 1e-9;
const std::vector<std::string> kSymbols = {"rows", "cols"};
const Dims kMeasure = {16384, 4096};
const std::vector<Dims> kCases = {{1, 1},     {3, 129},   {5, 31},    {4, 1024},  {3, 1025},
                                  {2, 1030},  {3, 4096},  {3, 4097},  {2, 8190},  {2, 11776},
                                  {2, 11780}, {3, 12290}, {1, 16384}, {2, 16385}, {2, 3},
                                  {1, 32768}, {2, 40001}, {1, 65540}, {1, 70003}};

struct Problem {
  explicit Problem(const Dims& d)
      : rows(d[0]), cols(d[1]), x(random_values(rows * cols, 1)), dx(prepared()) {}
  /// Larger values than the other problems', so that a missing maximum overflows.
  const std::vector<float>& prepared() {
    for (float& v : x) v *= 60;
    return x;
  }
  int64_t outputs() const { return rows * cols; }
  size_t workspace() const { return workspace_bytes ? workspace_bytes(rows, cols) : 0; }
  void run(float* y, void* scratch, cudaStream_t stream) const {
    launch(dx.floats(), y, rows, cols, scratch, stream);
  }
  Exact exact(int64_t index) {
    const int64_t row = index / cols;
    if (row != known_row) {
      const float* from = x.data() + row * cols;
      maximum = *std::max_element(from, from + cols);
      sum = 0;
      for (int64_t c = 0; c < cols; ++c) sum += std::exp(from[c] - maximum);
      known_row = row;
    }
    return {std::exp(x[index] - maximum) / sum, 1};
  }
  double flops() const { return 4.0 * rows * cols; }
  double traffic() const { return 8.0 * rows * cols; }

  int64_t rows, cols;
  std::vector<float> x;
  Device dx;
  int64_t known_row = -1;
  double maximum = 0, sum = 0;
};

#elif defined(PROBLEM_SGEMM)

constexpr double kRtol = 1e-6, kAtol = 2e-6;
const std::vector<std::string> kSymbols = {"m", "k", "n"};
const Dims kMeasure = {4096, 4096, 4096};
const std::vector<Dims> kCases = {{1, 1, 1},      {3, 129, 5},     {33, 17, 65},   {64, 64, 64},
                                  {127, 33, 130}, {128, 128, 128}, {129, 20, 132}, {100, 4, 260},
                                  {130, 36, 129}, {17, 131, 64},   {256, 52, 128}, {5, 16, 4}};

struct Problem {
  explicit Problem(const Dims& d)
      : m(d[0]), k(d[1]), n(d[2]), a(random_values(m * k, 1)), b(random_values(k * n, 2)), da(a), db(b) {}
  int64_t outputs() const { return m * n; }
  size_t workspace() const { return workspace_bytes ? workspace_bytes(m, k, n) : 0; }
  void run(float* c, void* scratch, cudaStream_t stream) const {
    launch(da.floats(), db.floats(), c, m, k, n, scratch, stream);
  }
  Exact exact(int64_t index) {
    const int64_t row = index / n, column = index % n;
    Exact e{0, 0};
    for (int64_t i = 0; i < k; ++i) {
      const double product = static_cast<double>(a[row * k + i]) * b[i * n + column];
      e.value += product;
      e.scale += std::fabs(product);
    }
    return e;
  }
  double flops() const { return 2.0 * m * n * k; }
  double traffic() const { return 4.0 * (1.0 * m * k + 1.0 * k * n + 1.0 * m * n); }

  int64_t m, k, n;
  std::vector<float> a, b;
  Device da, db;
};

#else  // PROBLEM_CONV_BIAS_SCALE_RELU

constexpr double kRtol = 1e-6, kAtol = 1e-5;  // room for Winograd, which cuDNN may choose
const std::vector<std::string> kSymbols = {"n", "c_in", "h", "w", "c_out"};
const Dims kMeasure = {64, 16, 128, 128, 32};
const std::vector<Dims> kCases = {{1, 1, 1, 1, 1},     {1, 3, 5, 7, 2},    {2, 4, 16, 16, 8},
                                  {1, 5, 9, 33, 33},   {2, 8, 17, 31, 16}, {1, 9, 8, 32, 40},
                                  {1, 3, 33, 65, 64},  {3, 2, 2, 100, 5},  {1, 17, 40, 3, 31},
                                  {1, 16, 20, 36, 32}, {2, 12, 14, 28, 65}};

struct Problem {
  explicit Problem(const Dims& d)
      : n(d[0]),
        c_in(d[1]),
        h(d[2]),
        w(d[3]),
        c_out(d[4]),
        x(random_values(n * c_in * h * w, 1)),
        weight(random_values(c_out * c_in * 9, 2)),
        bias(random_values(c_out, 3)),
        scale(random_values(c_out, 4)),
        dx(x),
        dweight(weight),
        dbias(bias),
        dscale(scale) {}
  int64_t outputs() const { return n * c_out * h * w; }
  size_t workspace() const { return workspace_bytes ? workspace_bytes(n, c_in, h, w, c_out) : 0; }
  void run(float* y, void* scratch, cudaStream_t stream) const {
    launch(dx.floats(), dweight.floats(), dbias.floats(), dscale.floats(), y, n, c_in, h, w, c_out, scratch,
           stream);
  }
  Exact exact(int64_t index) {
    const int64_t column = index % w, row = index / w % h, out = index / w / h % c_out,
                  image = index / w / h / c_out;
    double value = bias[out], terms = std::fabs(value);
    for (int64_t in = 0; in < c_in; ++in) {
      for (int tap = 0; tap < 9; ++tap) {
        const int64_t i = row + tap / 3 - 1, j = column + tap % 3 - 1;
        if (i < 0 || i >= h || j < 0 || j >= w) continue;
        const double product = static_cast<double>(x[((image * c_in + in) * h + i) * w + j]) *
                               weight[(out * c_in + in) * 9 + tap];
        value += product;
        terms += std::fabs(product);
      }
    }
    return {std::max(0.0, value * scale[out]), terms * std::fabs(scale[out])};
  }
  double flops() const { return 18.0 * n * c_in * c_out * h * w; }
  double traffic() const {
    return 4.0 * (1.0 * n * c_in * h * w + 9.0 * c_in * c_out + 1.0 * n * c_out * h * w);
  }

  int64_t n, c_in, h, w, c_out;
  std::vector<float> x, weight, bias, scale;
  Device dx, dweight, dbias, dscale;
};

#endif

// ---- judging
// ------------------------------------------------------------------------------------------------------

std::string describe(const Dims& dims) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? " " : "") + kSymbols[i] + "=" + std::to_string(dims[i]);
  return text;
}

/// A problem at one size with its output and workspace on the device, both poisoned with NaN.
struct Bench {
  explicit Bench(const Dims& dims)
      : problem(dims),
        y(problem.outputs() * sizeof(float)),
        scratch_bytes(problem.workspace()),
        scratch(scratch_bytes) {
    poison();
  }
  void poison() {
    check(cudaMemset(y.bytes(), 0xff, problem.outputs() * sizeof(float)), "poison");
    if (scratch_bytes) check(cudaMemset(scratch.bytes(), 0xff, scratch_bytes), "poison");
  }
  void run(cudaStream_t stream) {
    problem.run(y.floats(), scratch_bytes ? scratch.bytes() : nullptr, stream);
    check(cudaGetLastError(), "launch");
  }
  Problem problem;
  Device y;
  size_t scratch_bytes;
  Device scratch;
};

/// Runs once and compares `samples` elements (all of them if 0). Returns the worst error in units of the
/// tolerance: at most 1 is correct; infinite for NaN.
double worst_error(const Dims& dims, int64_t samples) {
  Bench bench(dims);
  bench.run(nullptr);
  check(cudaDeviceSynchronize(), "kernel");
  const int64_t outputs = bench.problem.outputs();
  std::vector<float> got(outputs);
  check(cudaMemcpy(got.data(), bench.y.floats(), outputs * sizeof(float), cudaMemcpyDeviceToHost),
        "download");
  const int64_t step = samples == 0 ? 1 : std::max<int64_t>(1, outputs / samples);
  double worst = 0;
  for (int64_t i = 0; i < outputs; i += step) {
    const Exact exact = bench.problem.exact(i);
    const double error =
        std::fabs(got[i] - exact.value) / (kAtol * exact.scale + kRtol * std::fabs(exact.value));
    if (!(error <= 1) && !(worst > 1))
      std::fprintf(stderr, "wrong at %s, element %lld: got %.9g, expected %.9g\n", describe(dims).c_str(),
                   static_cast<long long>(i), got[i], exact.value);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

/// Median and minimum of the times, in milliseconds.
struct Times {
  double median, least;
};

/// Reads `count` words and does not use them.
__global__ void read_all(const unsigned* words, size_t count, unsigned* sink) {
  unsigned sum = 0;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    sum += words[i];
  if (sum == 1) *sink = sum;  // never true, because only zeros are read
}

/// Times `launch(stream)` with a cold L2 cache in the state in which the judge leaves it: before each sample
/// 256 MB are written, then the same number of zeros is read, so that no write-back falls into the sample.
/// Five warm-up launches, thirty timed ones; fewer of both if one takes so long that noise does not matter.
template <class Launch>
Times time_cold(const Launch& launch) {
  const Device flush(kFlushBytes), clean(kFlushBytes);
  check(cudaMemset(clean.bytes(), 0, kFlushBytes), "flush");
  cudaStream_t stream;
  cudaEvent_t start, stop;
  check(cudaStreamCreate(&stream), "stream");
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&stop), "event");
  const auto sample = [&] {
    check(cudaMemsetAsync(flush.bytes(), 0x5a, kFlushBytes, stream), "flush");
    read_all<<<1024, 256, 0, stream>>>(static_cast<const unsigned*>(clean.bytes()), kFlushBytes / 4,
                                       static_cast<unsigned*>(flush.bytes()));
    check(cudaEventRecord(start, stream), "event");
    launch(stream);
    check(cudaEventRecord(stop, stream), "event");
    check(cudaStreamSynchronize(stream), "kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, stop), "event");
    return ms;
  };
  const bool slow = sample() > 50;
  for (int i = 0; i < (slow ? 0 : 4); ++i) sample();
  std::vector<float> times(slow ? kTimedLaunches / 3 : kTimedLaunches);
  for (float& ms : times) ms = sample();
  check(cudaEventDestroy(start), "event");
  check(cudaEventDestroy(stop), "event");
  check(cudaStreamDestroy(stream), "stream");
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

/// The device's copy rate in this run, bytes read and written per second / 1e9: the upper limit of
/// memory-bound kernels.
double copy_gb_per_s() {
  const Device from(kCopyBytes), to(kCopyBytes);
  check(cudaMemset(from.bytes(), 0x11, kCopyBytes), "copy");
  const Times times = time_cold([&](cudaStream_t stream) {
    check(cudaMemcpyAsync(to.bytes(), from.bytes(), kCopyBytes, cudaMemcpyDeviceToDevice, stream), "copy");
  });
  return 2e-6 * static_cast<double>(kCopyBytes) / times.median;
}

/// The measure size with `symbol=value` arguments applied.
Dims measure_size(int count, char** arguments) {
  Dims dims = kMeasure;
  for (int i = 0; i < count; ++i) {
    const std::string text = arguments[i];
    const size_t equals = text.find('=');
    const auto known = std::find(kSymbols.begin(), kSymbols.end(), text.substr(0, equals));
    if (equals == std::string::npos || known == kSymbols.end()) die("unknown size '" + text + "'");
    dims[known - kSymbols.begin()] = std::atoll(text.c_str() + equals + 1);
  }
  return dims;
}

/// The worst error over all small sizes.
double worst_small() {
  double worst = 0;
  for (const Dims& dims : kCases) worst = std::max(worst, worst_error(dims, 0));
  return worst;
}

#ifdef CAPSTONE_EMULATED
int judge(const std::string& name, const Dims&) {
  const double worst = worst_small();
  std::printf("%s,%s,%.3f\n", name.c_str(), worst <= 1 ? "pass" : "FAIL", worst);
  return worst <= 1 ? 0 : 1;
}
#else
int judge(const std::string& name, const Dims& measure) {
  const double worst = std::max(worst_small(), worst_error(measure, kSamples));
  Bench bench(measure);
  const Times times = time_cold([&](cudaStream_t stream) { bench.run(stream); });
  const double gb_per_s = bench.problem.traffic() / times.median * 1e-6;
  std::printf("%s,%s,%.3f,%.5f,%.5f,%.1f,%.1f,%.3f,\"%s\"\n", name.c_str(), worst <= 1 ? "pass" : "FAIL",
              worst, times.median, times.least, gb_per_s, 100 * gb_per_s / copy_gb_per_s(),
              bench.problem.flops() / times.median * 1e-9, baseline_label ? baseline_label() : "");
  return worst <= 1 ? 0 : 1;
}
#endif

}  // namespace smoke

int main(int argc, char** argv) {
  if (argc < 2) {
    std::printf("%s\n", smoke::kHeader);
    return 0;
  }
  return smoke::judge(argv[1], smoke::measure_size(argc - 2, argv + 2));
}
