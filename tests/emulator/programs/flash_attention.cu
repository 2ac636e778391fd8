// Attention in one pass over tiles of K and V, with an online softmax.
#include <cmath>
#include <cstdio>
#include <vector>
__global__ void forward_kernel(const float *Q, const float *K, const float *V, const int N, const int d, const int Tc, const int Tr, const int Bc,
                               const int Br, const float softmax_scale, float *l, float *m, float *O) {
  int tx = threadIdx.x, bx = blockIdx.x, by = blockIdx.y;
  int qkv_offset = (bx * gridDim.y * N * d) + (by * N * d), lm_offset = (bx * gridDim.y * N) + (by * N);
  extern __shared__ float sram[];
  int tile_size = Bc * d;
  float *Qi = sram, *Kj = &sram[tile_size], *Vj = &sram[tile_size * 2], *S = &sram[tile_size * 3];
  for (int j = 0; j < Tc; j++) {
    for (int x = 0; x < d; x++) {
      Kj[(tx * d) + x] = K[qkv_offset + (tile_size * j) + (tx * d) + x];
      Vj[(tx * d) + x] = V[qkv_offset + (tile_size * j) + (tx * d) + x];
    }
    __syncthreads();
    for (int i = 0; i < Tr; i++) {
      for (int x = 0; x < d; x++) Qi[(tx * d) + x] = Q[qkv_offset + (tile_size * i) + (tx * d) + x];
      float row_m_prev = m[lm_offset + (Br * i) + tx], row_l_prev = l[lm_offset + (Br * i) + tx], row_m = -INFINITY, row_l = 0;
      for (int y = 0; y < Bc; y++) {
        float sum = 0;
        for (int x = 0; x < d; x++) sum += Qi[(tx * d) + x] * Kj[(y * d) + x];
        sum *= softmax_scale;
        S[(Bc * tx) + y] = sum;
        if (sum > row_m) row_m = sum;
      }
      for (int y = 0; y < Bc; y++) {
        S[(Bc * tx) + y] = __expf(S[(Bc * tx) + y] - row_m);
        row_l += S[(Bc * tx) + y];
      }
      float row_m_new = max(row_m_prev, row_m);
      float row_l_new = (__expf(row_m_prev - row_m_new) * row_l_prev) + (__expf(row_m - row_m_new) * row_l);
      for (int x = 0; x < d; x++) {
        float pv = 0;
        for (int y = 0; y < Bc; y++) pv += S[(Bc * tx) + y] * Vj[(y * d) + x];
        float *o = &O[qkv_offset + (tile_size * i) + (tx * d) + x];
        *o = (1 / row_l_new) * ((row_l_prev * __expf(row_m_prev - row_m_new) * *o) + (__expf(row_m - row_m_new) * pv));
      }
      m[lm_offset + (Br * i) + tx] = row_m_new;
      l[lm_offset + (Br * i) + tx] = row_l_new;
    }
    __syncthreads();
  }
}
int main() {
  const int B = 2, nh = 2, N = 64, d = 16, Bc = 32, Br = 32, n = B * nh * N * d;
  float *Q, *K, *V, *O, *l, *m;
  for (float **p : {&Q, &K, &V, &O}) cudaMallocManaged(p, n * 4);
  for (float **p : {&l, &m}) cudaMallocManaged(p, B * nh * N * 4);
  for (int i = 0; i < n; ++i) Q[i] = sinf(i), K[i] = cosf(i * 0.7f), V[i] = sinf(i * 0.3f), O[i] = 0;
  for (int i = 0; i < B * nh * N; ++i) l[i] = 0, m[i] = -INFINITY;
  const int sram_size = (3 * Bc * d * sizeof(float)) + (Bc * Br * sizeof(float));
  int max_sram_size;
  cudaDeviceGetAttribute(&max_sram_size, cudaDevAttrMaxSharedMemoryPerBlock, 0);
  printf("Max shared memory: %d, requested shared memory: %d\n", max_sram_size, sram_size);
  forward_kernel<<<dim3(B, nh), dim3(Bc), sram_size>>>(Q, K, V, N, d, N / Bc, N / Br, Bc, Br, 1.0 / sqrt(d), l, m, O);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  double worst = 0;
  for (int h = 0; h < B * nh; ++h)
    for (int i = 0; i < N; ++i) {
      std::vector<double> p(N);
      double sum = 0;
      for (int j = 0; j < N; ++j) {
        double s = 0;
        for (int x = 0; x < d; ++x) s += Q[h * N * d + i * d + x] * K[h * N * d + j * d + x];
        sum += p[j] = exp(s / sqrt(d));
      }
      for (int x = 0; x < d; ++x) {
        double want = 0;
        for (int j = 0; j < N; ++j) want += p[j] / sum * V[h * N * d + j * d + x];
        worst = fmax(worst, fabs(want - O[h * N * d + i * d + x]));
      }
    }
  printf(worst < 1e-4 ? "PASS\n" : "FAIL %g\n", worst);
}
