// Native baseline: y = relu((conv3x3(x) + bias) * scale), fp32, NCHW, padding 1, stride 1, the way PyTorch eager runs
// it: a library convolution, then three elementwise kernels that each read and write the whole of y.
//
// The convolution is
//   CAPSTONE_USE_CUDNN and cudnn.h:  cuDNN in true fp32 (FMA math, no TF32), the algorithm by cuDNN's heuristics
//   else, on a GPU:                  im2col in chunks of images, then cuBLAS with TF32 off
//   CAPSTONE_EMULATED:               a plain direct kernel, since no library runs there (its times never count)
// The epilogue works in place, which moves the same bytes as eager's fresh tensors and is kinder to the L2 cache.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#if defined(CAPSTONE_EMULATED)
#define CAPSTONE_CONV_DIRECT 1
#elif defined(CAPSTONE_USE_CUDNN) && __has_include(<cudnn.h>)
#define CAPSTONE_CONV_CUDNN 1
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#else
#define CAPSTONE_CONV_IM2COL 1
#include <cublas_v2.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#endif

namespace {

constexpr int kThreads = 256;

/// Where the tensors of one call are and how large.
struct Call {
  const float* x;       // [n, c_in, h, w]
  const float* weight;  // [c_out, c_in, 3, 3]
  float* y;             // [n, c_out, h, w]
  int64_t n, c_in, h, w, c_out;
  void* workspace;
  cudaStream_t stream;
};

// ---- the epilogue: three operators, three kernels -----------------------------------------------------------------

struct AddBias {
  __device__ float operator()(float v, float parameter) const { return v + parameter; }
};
struct Scale {
  __device__ float operator()(float v, float parameter) const { return v * parameter; }
};
struct Relu {
  __device__ float operator()(float v, float) const { return fmaxf(v, 0.0f); }
};

/// y[plane, :] = op(y[plane, :], parameter[plane % c_out]). blockIdx.x walks the planes, blockIdx.y the pixels of one.
/// `kVector` needs pixels % 4 == 0, so that every plane starts on 16 bytes.
template <class Op, bool kVector>
__global__ void per_channel(float* __restrict__ y, const float* __restrict__ parameter, int64_t pixels, int c_out) {
  const Op op;
  const float value = parameter != nullptr ? parameter[blockIdx.x % c_out] : 0.0f;
  float* plane = y + blockIdx.x * pixels;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.y) * kThreads;
  if constexpr (kVector) {
    float4* plane4 = reinterpret_cast<float4*>(plane);
    for (int64_t i = first; i < pixels / 4; i += step) {
      const float4 v = plane4[i];
      plane4[i] = make_float4(op(v.x, value), op(v.y, value), op(v.z, value), op(v.w, value));
    }
  } else {
    for (int64_t i = first; i < pixels; i += step) plane[i] = op(plane[i], value);
  }
}

template <class Op>
void apply(const Call& call, const float* parameter) {
  const int64_t pixels = call.h * call.w;
  const bool vector = pixels % 4 == 0;
  const int64_t items = vector ? pixels / 4 : pixels;
  const int64_t slices = (items + kThreads * 4 - 1) / (kThreads * 4);  // about four items a thread
  const dim3 grid(static_cast<unsigned>(call.n * call.c_out), static_cast<unsigned>(slices < 65535 ? slices : 65535));
  if (vector)
    per_channel<Op, true><<<grid, kThreads, 0, call.stream>>>(call.y, parameter, pixels, static_cast<int>(call.c_out));
  else
    per_channel<Op, false><<<grid, kThreads, 0, call.stream>>>(call.y, parameter, pixels, static_cast<int>(call.c_out));
}

// ---- the convolution -------------------------------------------------------------------------------------------

#if CAPSTONE_CONV_DIRECT

/// One thread an output element; blockIdx.y is the plane (image and output channel).
__global__ void direct(Call call) {
  const int64_t pixel = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (pixel >= call.h * call.w) return;
  const int64_t row = pixel / call.w, column = pixel % call.w;
  for (int64_t plane = blockIdx.y; plane < call.n * call.c_out; plane += gridDim.y) {
    const int64_t image = plane / call.c_out, out = plane % call.c_out;
    float sum = 0;
    for (int64_t in = 0; in < call.c_in; ++in) {
      const float* x = call.x + (image * call.c_in + in) * call.h * call.w;
      const float* filter = call.weight + (out * call.c_in + in) * 9;
      for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
          const int64_t i = row + r - 1, j = column + s - 1;
          if (i >= 0 && i < call.h && j >= 0 && j < call.w) sum += x[i * call.w + j] * filter[r * 3 + s];
        }
      }
    }
    call.y[plane * call.h * call.w + pixel] = sum;
  }
}

size_t convolution_workspace(int64_t, int64_t, int64_t, int64_t, int64_t) { return 0; }

void convolve(const Call& call) {
  const int64_t planes = call.n * call.c_out;
  const dim3 grid(static_cast<unsigned>((call.h * call.w + kThreads - 1) / kThreads),
                  static_cast<unsigned>(planes < 65535 ? planes : 65535));
  direct<<<grid, kThreads, 0, call.stream>>>(call);
}

const char* convolution_label() { return "native direct conv (emulated: stands in for cuDNN) + 3 kernels, fp32"; }

#elif CAPSTONE_CONV_CUDNN

// cuDNN 9 marks its classic interface as deprecated in favour of graphs; it is still served, is a fifth of the code,
// and its exhaustive search needs no heuristics of ours.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma nv_diag_suppress 1444

// Algorithms that want more scratch than this are left out: the whole run must fit a student's card.
constexpr size_t kMostScratch = size_t{1} << 30;

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + cudnnGetErrorString(status));
}

/// One handle for the life of the process.
cudnnHandle_t handle() {
  static const cudnnHandle_t created = [] {
    cudnnHandle_t h = nullptr;
    check(cudnnCreate(&h), "cudnnCreate");
    return h;
  }();
  return created;
}

/// Descriptors and the algorithm for one size. Kept for the life of the process, so nothing is destroyed.
struct Plan {
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t weight = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  size_t scratch = 0;
};

/// Takes the best algorithm by cuDNN's own heuristics that is true fp32 and not too greedy, as PyTorch does by default. Timing
/// the algorithms instead (cudnnFind…) chooses differently from process to process, and with it the reference's time: 8 %
/// between two runs of the very same baseline on an H200.
void choose_algorithm(Plan& plan) {
  std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> found{};
  int count = 0;
  check(cudnnGetConvolutionForwardAlgorithm_v7(handle(), plan.x, plan.weight, plan.convolution, plan.y,
                                               static_cast<int>(found.size()), &count, found.data()),
        "cudnnGetConvolutionForwardAlgorithm_v7");
  for (int i = 0; i < count; ++i) {  // sorted by expected time
    const cudnnConvolutionFwdAlgoPerf_t& candidate = found[i];
    const bool tensor_cores = candidate.mathType == CUDNN_TENSOR_OP_MATH ||
                              candidate.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    if (candidate.status != CUDNN_STATUS_SUCCESS || tensor_cores || candidate.memory > kMostScratch) continue;
    plan.algorithm = candidate.algo;
    plan.scratch = candidate.memory;
    return;
  }
  throw std::runtime_error("cuDNN offers no fp32 algorithm for this size");
}

Plan make_plan(int n, int c_in, int h, int w, int c_out) {
  Plan plan;
  check(cudnnCreateTensorDescriptor(&plan.x), "cudnnCreateTensorDescriptor");
  check(cudnnCreateTensorDescriptor(&plan.y), "cudnnCreateTensorDescriptor");
  check(cudnnCreateFilterDescriptor(&plan.weight), "cudnnCreateFilterDescriptor");
  check(cudnnCreateConvolutionDescriptor(&plan.convolution), "cudnnCreateConvolutionDescriptor");
  check(cudnnSetTensor4dDescriptor(plan.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c_in, h, w), "x descriptor");
  check(cudnnSetTensor4dDescriptor(plan.y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c_out, h, w), "y descriptor");
  check(cudnnSetFilter4dDescriptor(plan.weight, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, c_out, c_in, 3, 3),
        "weight descriptor");
  check(cudnnSetConvolution2dDescriptor(plan.convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "convolution descriptor");
  check(cudnnSetConvolutionMathType(plan.convolution, CUDNN_FMA_MATH), "cudnnSetConvolutionMathType");
  choose_algorithm(plan);
  return plan;
}

/// The plan for one size, made at the first request: workspace_bytes() makes it, long before anything is timed.
const Plan& plan_for(int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  static std::mutex guard;
  static std::map<std::array<int64_t, 5>, Plan> plans;
  const std::lock_guard lock(guard);
  const std::array<int64_t, 5> key{n, c_in, h, w, c_out};
  auto known = plans.find(key);
  if (known == plans.end()) {
    const Plan made = make_plan(static_cast<int>(n), static_cast<int>(c_in), static_cast<int>(h), static_cast<int>(w),
                                static_cast<int>(c_out));
    known = plans.emplace(key, made).first;
  }
  return known->second;
}

size_t convolution_workspace(int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  return plan_for(n, c_in, h, w, c_out).scratch;
}

void convolve(const Call& call) {
  const Plan& plan = plan_for(call.n, call.c_in, call.h, call.w, call.c_out);
  const float one = 1, zero = 0;
  check(cudnnSetStream(handle(), call.stream), "cudnnSetStream");
  check(cudnnConvolutionForward(handle(), &one, plan.x, call.x, plan.weight, call.weight, plan.convolution,
                                plan.algorithm, call.workspace, plan.scratch, &zero, plan.y, call.y),
        "cudnnConvolutionForward");
}

const char* convolution_label() {
  static const std::string label = [] {
    const size_t version = cudnnGetVersion();  // 91900 is 9.19.0
    return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100) + " conv, fp32 (TF32 off) + 3 kernels";
  }();
  return label.c_str();
}

#else  // CAPSTONE_CONV_IM2COL

constexpr size_t kCublasWorkspace = size_t{32} << 20;  // what NVIDIA recommends for Hopper
constexpr size_t kMostColumns = size_t{512} << 20;     // bytes of unfolded input at a time, but at least one image

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
}

/// One handle for the life of the process.
cublasHandle_t handle() {
  static const cublasHandle_t created = [] {
    cublasHandle_t h = nullptr;
    check(cublasCreate(&h), "cublasCreate");
    check(cublasSetMathMode(h, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode");
    return h;
  }();
  return created;
}

int64_t images_at_once(int64_t n, int64_t c_in, int64_t h, int64_t w) {
  const size_t one = static_cast<size_t>(c_in * 9 * h * w) * sizeof(float);
  return std::clamp<int64_t>(static_cast<int64_t>(kMostColumns / one), 1, n);
}

size_t convolution_workspace(int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t) {
  return kCublasWorkspace + static_cast<size_t>(images_at_once(n, c_in, h, w) * c_in * 9 * h * w) * sizeof(float);
}

/// columns[image, in * 9 + r * 3 + s, pixel] = x[image, in, row + r - 1, column + s - 1], zero outside.
/// blockIdx.y is the image and input channel of this chunk.
__global__ void unfold(const float* __restrict__ x, float* __restrict__ columns, int64_t planes, int h, int w) {
  const int64_t pixels = static_cast<int64_t>(h) * w;
  const int64_t pixel = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (pixel >= pixels) return;
  const int row = static_cast<int>(pixel / w), column = static_cast<int>(pixel % w);
  for (int64_t plane = blockIdx.y; plane < planes; plane += gridDim.y) {
    const float* from = x + plane * pixels;
    float* to = columns + plane * 9 * pixels + pixel;
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
      const int i = row + tap / 3 - 1, j = column + tap % 3 - 1;
      to[tap * pixels] = i >= 0 && i < h && j >= 0 && j < w ? from[static_cast<int64_t>(i) * w + j] : 0.0f;
    }
  }
}

void convolve(const Call& call) {
  const int64_t pixels = call.h * call.w, depth = call.c_in * 9;
  const int64_t chunk = images_at_once(call.n, call.c_in, call.h, call.w);
  float* columns = reinterpret_cast<float*>(static_cast<char*>(call.workspace) + kCublasWorkspace);
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), call.stream), "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), call.workspace, kCublasWorkspace), "cublasSetWorkspace");
  for (int64_t first = 0; first < call.n; first += chunk) {
    const int64_t images = std::min(chunk, call.n - first), planes = images * call.c_in;
    const dim3 grid(static_cast<unsigned>((pixels + kThreads - 1) / kThreads),
                    static_cast<unsigned>(std::min<int64_t>(planes, 65535)));
    unfold<<<grid, kThreads, 0, call.stream>>>(call.x + first * call.c_in * pixels, columns, planes,
                                               static_cast<int>(call.h), static_cast<int>(call.w));
    // Row-major Y[c_out, pixels] = W[c_out, depth] * columns[depth, pixels]; column-major cuBLAS sees the transposes.
    check(cublasSgemmStridedBatched_64(handle(), CUBLAS_OP_N, CUBLAS_OP_N, pixels, call.c_out, depth, &one, columns,
                                       pixels, depth * pixels, call.weight, depth, 0, &zero,
                                       call.y + first * call.c_out * pixels, pixels, call.c_out * pixels, images),
          "cublasSgemmStridedBatched");
  }
}

const char* convolution_label() {
  static const std::string label = [] {
    int major = 0, minor = 0;
    check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
    check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
    return "im2col + cuBLAS " + std::to_string(major) + "." + std::to_string(minor) + ", fp32 (TF32 off) + 3 kernels";
  }();
  return label.c_str();
}

#endif

}  // namespace

extern "C" const char* baseline_label() { return convolution_label(); }

extern "C" size_t workspace_bytes(int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  return convolution_workspace(n, c_in, h, w, c_out);
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,3,3]*/,
                       const float* bias /*[c_out]*/, const float* scale /*[c_out]*/, float* y /*[n,c_out,h,w]*/,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  const Call call{x, weight, y, n, c_in, h, w, c_out, workspace, stream};
  convolve(call);
  apply<AddBias>(call, bias);
  apply<Scale>(call, scale);
  apply<Relu>(call, nullptr);
}
