// Native baseline: y = maxpool(relu(conv2d(x, weight) + bias)), convolution 11x11, stride 4, padding 2, NCHW.
//
// On a GPU the image is unfolded, some images at a time, and cuBLAS multiplies in true fp32; then one kernel
// adds the bias and applies ReLU, and one pools. On the CPU (CAPSTONE_EMULATED) a plain direct kernel stands
// in for the product.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#if !defined(CAPSTONE_EMULATED)
#include <cublas_v2.h>

#include <stdexcept>
#include <string>
#endif

namespace {

constexpr int kThreads = 256;
constexpr int kKernel = 11, kStep = 4, kPad = 2, kTaps = kKernel * kKernel;

int64_t convolved(int64_t extent) { return (extent + 2 * kPad - kKernel) / kStep + 1; }
unsigned blocks_for(int64_t items) { return static_cast<unsigned>((items + kThreads - 1) / kThreads); }

/// Where the tensors of one call are and how large.
struct Call {
  const float* x;       // [n, c_in, h, w]
  const float* weight;  // [c_out, c_in, 11, 11]
  const float* bias;    // [c_out]
  float* sums;          // [n, c_out, oh, ow]
  int64_t n, c_in, h, w, c_out, oh, ow;
  void* scratch;
  cudaStream_t stream;
};

#if defined(CAPSTONE_EMULATED)

/// One thread an element of the result.
__global__ void direct(Call call) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t pixels = call.oh * call.ow;
  if (index >= call.n * call.c_out * pixels) return;
  const int64_t image = index / (call.c_out * pixels), out = index / pixels % call.c_out;
  const int64_t row0 = index % pixels / call.ow * kStep - kPad, column0 = index % call.ow * kStep - kPad;
  float sum = 0;
  for (int64_t in = 0; in < call.c_in; ++in)
    for (int r = 0; r < kKernel; ++r)
      for (int s = 0; s < kKernel; ++s) {
        const int64_t i = row0 + r, j = column0 + s;
        if (i < 0 || i >= call.h || j < 0 || j >= call.w) continue;
        sum += call.x[((image * call.c_in + in) * call.h + i) * call.w + j] *
               call.weight[(out * call.c_in + in) * kTaps + r * kKernel + s];
      }
  call.sums[index] = sum;
}

size_t scratch_bytes(int64_t, int64_t, int64_t, int64_t) { return 0; }

void convolve(const Call& call) {
  direct<<<blocks_for(call.n * call.c_out * call.oh * call.ow), kThreads, 0, call.stream>>>(call);
}

const char* convolution_label() {
  return "native direct conv (emulated: stands in for cuBLAS) + bias, ReLU and pool";
}

#else

constexpr size_t kCublasWorkspace = size_t{32} << 20;  // what NVIDIA recommends for Hopper
constexpr size_t kMostColumns = size_t{512}
                                << 20;  // bytes of unfolded input at a time, but at least one image

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
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

int64_t images_at_once(int64_t n, int64_t c_in, int64_t pixels) {
  const int64_t fit =
      static_cast<int64_t>(kMostColumns / (static_cast<size_t>(c_in * kTaps * pixels) * sizeof(float)));
  return fit < 1 ? 1 : fit < n ? fit : n;
}

size_t scratch_bytes(int64_t n, int64_t c_in, int64_t h, int64_t w) {
  const int64_t pixels = convolved(h) * convolved(w);
  return kCublasWorkspace +
         static_cast<size_t>(images_at_once(n, c_in, pixels) * c_in * kTaps * pixels) * sizeof(float);
}

/// columns[image, in * 121 + tap, pixel]; zero outside of the image. blockIdx.y is the image and input
/// channel.
__global__ void unfold(const float* __restrict__ x, float* __restrict__ columns, int h, int w, int oh,
                       int ow) {
  const int pixel = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (pixel >= oh * ow) return;
  const int row0 = pixel / ow * kStep - kPad, column0 = pixel % ow * kStep - kPad;
  const float* from = x + static_cast<int64_t>(blockIdx.y) * h * w;
  float* to = columns + static_cast<int64_t>(blockIdx.y) * kTaps * oh * ow + pixel;
  for (int tap = 0; tap < kTaps; ++tap) {
    const int i = row0 + tap / kKernel, j = column0 + tap % kKernel;
    to[static_cast<int64_t>(tap) * oh * ow] =
        i >= 0 && i < h && j >= 0 && j < w ? from[static_cast<int64_t>(i) * w + j] : 0.0f;
  }
}

void convolve(const Call& call) {
  const int64_t pixels = call.oh * call.ow, depth = call.c_in * kTaps;
  const int64_t chunk = images_at_once(call.n, call.c_in, pixels);
  float* columns = reinterpret_cast<float*>(static_cast<char*>(call.scratch) + kCublasWorkspace);
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), call.stream),
        "cublasSetStream");  // also resets the workspace, so it comes first
  check(cublasSetWorkspace(handle(), call.scratch, kCublasWorkspace), "cublasSetWorkspace");
  for (int64_t first = 0; first < call.n; first += chunk) {
    const int64_t images = call.n - first < chunk ? call.n - first : chunk;
    const dim3 grid(blocks_for(pixels), static_cast<unsigned>(images * call.c_in));
    unfold<<<grid, kThreads, 0, call.stream>>>(call.x + first * call.c_in * call.h * call.w, columns,
                                               static_cast<int>(call.h), static_cast<int>(call.w),
                                               static_cast<int>(call.oh), static_cast<int>(call.ow));
    // Row-major sums[c_out, pixels] = weight[c_out, depth] * columns[depth, pixels]; cuBLAS sees the
    // transposes.
    check(cublasSgemmStridedBatched_64(handle(), CUBLAS_OP_N, CUBLAS_OP_N, pixels, call.c_out, depth, &one,
                                       columns, pixels, depth * pixels, call.weight, depth, 0, &zero,
                                       call.sums + first * call.c_out * pixels, pixels, call.c_out * pixels,
                                       images),
          "cublasSgemmStridedBatched");
  }
}

const char* convolution_label() {
  static const std::string label = [] {
    int major = 0, minor = 0;
    check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
    check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
    return "im2col + cuBLAS " + std::to_string(major) + "." + std::to_string(minor) +
           ", fp32 (TF32 off) + bias, ReLU and pool";
  }();
  return label.c_str();
}

#endif

__global__ void add_bias_relu(Call call) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= call.n * call.c_out * call.oh * call.ow) return;
  const float v = call.sums[index] + call.bias[index / (call.oh * call.ow) % call.c_out];
  call.sums[index] = v < 0 ? 0.0f : v;
}

/// The largest of 3x3 pixels, every second row and column.
__global__ void pool(Call call, float* y, int64_t ph, int64_t pw) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= call.n * call.c_out * ph * pw) return;
  const int64_t plane = index / (ph * pw), row = index / pw % ph * 2, column = index % pw * 2;
  const float* from = call.sums + (plane * call.oh + row) * call.ow + column;
  float most = from[0];
  for (int k = 1; k < 9; ++k) {
    const float v = from[k / 3 * call.ow + k % 3];
    most = most > v || most != most ? most : v;
  }
  y[index] = most;
}

size_t sums_bytes(int64_t n, int64_t h, int64_t w, int64_t c_out) {
  return (static_cast<size_t>(n * c_out * convolved(h) * convolved(w)) * sizeof(float) + 255) / 256 * 256;
}

}  // namespace

extern "C" const char* baseline_label() { return convolution_label(); }

extern "C" size_t workspace_bytes(int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out) {
  return sums_bytes(n, h, w, c_out) + scratch_bytes(n, c_in, h, w);
}

extern "C" void launch(const float* x /*[n,c_in,h,w]*/, const float* weight /*[c_out,c_in,11,11]*/,
                       const float* bias /*[c_out]*/, float* y /*[n,c_out,ph,pw]*/, int64_t n, int64_t c_in,
                       int64_t h, int64_t w, int64_t c_out, void* workspace, cudaStream_t stream) {
  const int64_t oh = convolved(h), ow = convolved(w), ph = (oh - 3) / 2 + 1, pw = (ow - 3) / 2 + 1;
  const Call call{x,     weight, bias, static_cast<float*>(workspace),
                  n,     c_in,   h,    w,
                  c_out, oh,     ow,   static_cast<char*>(workspace) + sums_bytes(n, h, w, c_out),
                  stream};
  convolve(call);
  add_bias_relu<<<blocks_for(n * c_out * oh * ow), kThreads, 0, stream>>>(call);
  pool<<<blocks_for(n * c_out * ph * pw), kThreads, 0, stream>>>(call, y, ph, pw);
}
