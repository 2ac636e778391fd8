// Transposition: direct, through a padded tile, with several rows a thread, on a ragged size.
#include <cstdio>
#include <vector>
const int TILE_DIM = 32, BLOCK_ROWS = 8;
__global__ void naive(float *odata, const float *idata, int w, int h) {
  int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < w && y + j < h) odata[x * h + y + j] = idata[(y + j) * w + x];
}
__global__ void tiled(float *odata, const float *idata, int w, int h) {
  __shared__ float tile[TILE_DIM][TILE_DIM + 1];
  int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * TILE_DIM + threadIdx.x;
  y = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < h && y + j < w) odata[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
int main() {
  const int w = 100, h = 70;
  std::vector<float> in(w * h), out(w * h);
  for (int i = 0; i < w * h; ++i) in[i] = i;
  float *di, *dout;
  cudaMalloc(&di, in.size() * 4);
  cudaMalloc(&dout, in.size() * 4);
  cudaMemcpy(di, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
  dim3 grid((w + TILE_DIM - 1) / TILE_DIM, (h + TILE_DIM - 1) / TILE_DIM), block(TILE_DIM, BLOCK_ROWS);
  void (*kernels[])(float *, const float *, int, int) = {naive, tiled};
  for (auto kernel : kernels) {
    cudaMemset(dout, 0, in.size() * 4);
    kernel<<<grid, block>>>(dout, di, w, h);
    cudaMemcpy(out.data(), dout, in.size() * 4, cudaMemcpyDeviceToHost);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x)
        if (out[x * h + y] != in[y * w + x]) return puts("FAIL"), 1;
  }
  puts("PASS");
}
