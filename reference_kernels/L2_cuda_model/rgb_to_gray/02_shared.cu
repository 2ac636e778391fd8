// Rung 2: the block fetches its bytes as words and picks them apart in shared memory.
//
// Changed     a block owns 1024 pixels, 3072 bytes. Its threads copy them to shared memory as three 4-byte
//             words each, side by side; then every thread takes four pixels out of it, a block's width apart.
// Why         three word loads replace twelve byte loads of global memory. The bytes are still picked one by
//             one, but from shared memory: a lane's three bytes lie in 24 words of the warp, so no two words
//             meet in a bank.
// Prediction  a quarter of the global load instructions: 1.2x to 1.6x rung 1.
//
// Shapes      rgb [h, w, 3], gray [h, w], uint8; any sizes; rgb on 4 bytes.
// Launch      <<<ceil(h w / 1024), 256>>>.
// Resources   about 20 registers; 3 KB of shared memory.
// Cost        7 h w integer operations; 4 h w bytes.
// Divides     whole blocks go by words; the last one, if it is ragged, by bytes.
// Source      staging through shared memory as in the CUDA C++ Best Practices Guide.
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256, kPixels = 4 * kThreads;  // of a block

__global__ void rgb_to_gray(const uint8_t* __restrict__ rgb, uint8_t* __restrict__ gray, int64_t pixels) {
  __shared__ uint32_t words[3 * kPixels / 4];
  uint8_t* bytes = reinterpret_cast<uint8_t*>(words);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPixels;  // of the block
  const int mine = static_cast<int>(pixels - first < kPixels ? pixels - first : kPixels);
  const int thread = threadIdx.x;

  if (mine == kPixels) {
    const uint32_t* from = reinterpret_cast<const uint32_t*>(rgb + 3 * first);
    for (int i = 0; i < 3; ++i) words[i * kThreads + thread] = from[i * kThreads + thread];
  } else {
    for (int i = thread; i < 3 * mine; i += kThreads) bytes[i] = rgb[3 * first + i];
  }
  __syncthreads();
  for (int i = thread; i < mine; i += kThreads) {
    const int r = bytes[3 * i], g = bytes[3 * i + 1], b = bytes[3 * i + 2];
    gray[first + i] = static_cast<uint8_t>((77 * r + 150 * g + 29 * b + 128) >> 8);
  }
}

extern "C" void launch(const uint8_t* rgb /*[h,w,3]*/, uint8_t* gray /*[h,w]*/, int64_t h, int64_t w, void* /*workspace*/,
                       cudaStream_t stream) {
  const int64_t pixels = h * w;
  rgb_to_gray<<<static_cast<unsigned>((pixels + kPixels - 1) / kPixels), kThreads, 0, stream>>>(rgb, gray, pixels);
}
