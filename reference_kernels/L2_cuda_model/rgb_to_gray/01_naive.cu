// Rung 1: one thread, one pixel.
//
// Changed     nothing yet: the rule, for one pixel; the image is one long list of pixels.
// Why         the beginning of the ladder. Every byte fetched is used, if not at once: a warp's three loads
//             touch the same 96 bytes, and the L1 cache answers the second and the third.
// Prediction  four memory instructions for 32 pixels, 128 bytes: issue and L1 are the limit; 30 to 50 % of a
//             copy.
//
// Shapes      rgb [h, w, 3], gray [h, w], uint8; any sizes.
// Launch      <<<ceil(h w / 256), 256>>>.
// Resources   about 12 registers, no shared memory.
// Cost        7 h w integer operations; 4 h w bytes.
// Divides     no divisibility is required: threads past the end leave.
// Source      the rule is ITU-R BT.601's luma in eight-bit fixed point.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__global__ void rgb_to_gray(const uint8_t* __restrict__ rgb, uint8_t* __restrict__ gray, int64_t pixels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= pixels) return;
  const int r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
  gray[i] = static_cast<uint8_t>((77 * r + 150 * g + 29 * b + 128) >> 8);
}

extern "C" void launch(const uint8_t* rgb /*[h,w,3]*/, uint8_t* gray /*[h,w]*/, int64_t h, int64_t w, void* /*workspace*/,
                       cudaStream_t stream) {
  const int64_t pixels = h * w;
  rgb_to_gray<<<static_cast<unsigned>((pixels + kThreads - 1) / kThreads), kThreads, 0, stream>>>(rgb, gray, pixels);
}
