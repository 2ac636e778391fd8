// cause: launch
// line: 28
// mistake: the block has w * h * 8 threads: more than 1024 for images of 16 x 16 and larger.
#include <cuda_runtime.h>

#include <cstdint>

__global__ void conv_image_per_block(const float* x, const float* weight, const float* bias,
                                     const float* scale, float* y, int c_in, int h, int w, int c_out) {
  const int img = blockIdx.x, px = threadIdx.x;
  for (int item = threadIdx.y + blockDim.y * threadIdx.z; item < h * c_out; item += blockDim.y * blockDim.z) {
    const int py = item % h, co = item / h;
    float acc = bias[co];
    for (int ci = 0; ci < c_in; ++ci)
      for (int ky = -1; ky <= 1; ++ky)
        for (int kx = -1; kx <= 1; ++kx)
          if ((unsigned)(py + ky) < (unsigned)h && (unsigned)(px + kx) < (unsigned)w)
            acc += x[((img * c_in + ci) * h + py + ky) * w + px + kx] *
                   weight[(co * c_in + ci) * 9 + (ky + 1) * 3 + kx + 1];
    y[((img * c_out + co) * h + py) * w + px] = fmaxf(acc * scale[co], 0.0f);
  }
}

extern "C" void launch(const float* x, const float* weight, const float* bias, const float* scale, float* y,
                       int64_t n, int64_t c_in, int64_t h, int64_t w, int64_t c_out, void* workspace,
                       cudaStream_t stream) {
  const dim3 block((unsigned)w, (unsigned)h, 8);
  conv_image_per_block<<<(unsigned)n, block, 0, stream>>>(x, weight, bias, scale, y, (int)c_in, (int)h,
                                                          (int)w, (int)c_out);
}
