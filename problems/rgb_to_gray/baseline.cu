// Native baseline: RGB to grey as an image library's portable kernel does it: one pixel a thread, over a grid of rows.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace {

constexpr int kWidth = 64, kHeight = 4;  // of a block, pixels

__global__ void to_gray(const uint8_t* __restrict__ rgb, uint8_t* __restrict__ gray, int64_t h, int64_t w) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWidth + threadIdx.x;
  if (column >= w) return;
  for (int64_t row = static_cast<int64_t>(blockIdx.y) * kHeight + threadIdx.y; row < h;
       row += static_cast<int64_t>(gridDim.y) * kHeight) {
    const uint8_t* pixel = rgb + 3 * (row * w + column);
    gray[row * w + column] = static_cast<uint8_t>((77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2] + 128) >> 8);
  }
}

}  // namespace

extern "C" const char* baseline_label() { return "native RGB to grey, one pixel a thread"; }

extern "C" void launch(const uint8_t* rgb /*[h,w,3]*/, uint8_t* gray /*[h,w]*/, int64_t h, int64_t w, void* /*workspace*/,
                       cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((w + kWidth - 1) / kWidth),
                  static_cast<unsigned>(std::min<int64_t>((h + kHeight - 1) / kHeight, 65535)));
  to_gray<<<grid, dim3(kWidth, kHeight), 0, stream>>>(rgb, gray, h, w);
}
