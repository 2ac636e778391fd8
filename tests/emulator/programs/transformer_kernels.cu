// Forward kernels of a small transformer: encoder, layer norm, matmul with bias, attention softmax, gelu,
// residual, loss.
#include <assert.h>
#include <cfloat>
#include <cmath>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define cudaCheck(err) (cuda_check(err, __FILE__, __LINE__))
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
void cuda_check(cudaError_t error, const char *file, int line) {
  if (error != cudaSuccess) {
    printf("[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}
__device__ inline float4 add_float4(const float4 &a, const float4 &b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__global__ void encoder_forward(float4 *out, const int *inp, const float4 *wte, const float4 *wpe, int B, int T, int C) {
  int C4 = C / 4, idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < B * T * C4) {
    int bt = idx / C4, t = bt % T, c4 = idx % C4, ix = inp[bt];
    out[bt * C4 + c4] = add_float4(wte[ix * C4 + c4], wpe[t * C4 + c4]);
  }
}
__global__ void layernorm_forward(float *__restrict__ out, float *__restrict__ mean, float *__restrict__ rstd, const float *__restrict__ inp,
                                  const float *__restrict__ weight, const float *__restrict__ bias, int N, int C) {
  namespace cg = cooperative_groups;
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N) return;
  const float *x = inp + idx * C;
  float sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) sum += x[i];
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float m = sum / C;
  if (warp.thread_rank() == 0 && mean != nullptr) __stcs(mean + idx, m);
  sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) {
    float diff = x[i] - m;
    sum += diff * diff;
  }
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float s = rsqrtf(sum / C + 1e-5f);
  if (warp.thread_rank() == 0 && rstd != nullptr) __stcs(rstd + idx, s);
  for (int c = warp.thread_rank(); c < C; c += warp.size()) __stcs(out + idx * C + c, s * (__ldcs(x + c) - m) * weight[c] + bias[c]);
}
__global__ void matmul_forward(float *out, const float *inp, const float *weight, const float *bias, int BT, int C, int OC) {
  int bt = blockIdx.x * blockDim.x + threadIdx.x, oc = blockIdx.y * blockDim.y + threadIdx.y;
  if (bt < BT && oc < OC) {
    float val = (bias != NULL) ? bias[oc] : 0.0f;
    for (int i = 0; i < C; i++) val += weight[oc * C + i] * inp[bt * C + i];
    out[bt * OC + oc] = val;
  }
}
__global__ void softmax_forward(float *out, const float *inp, int N, int C) {
  extern __shared__ float shared[];
  int idx = blockIdx.x, tid = threadIdx.x, warpId = threadIdx.x / 32, laneId = threadIdx.x % 32, warps = blockDim.x / 32;
  float *maxvals = shared, *sumvals = &shared[warps];
  const float *x = inp + idx * C;
  float maxval = -INFINITY;
  for (int i = tid; i < C; i += blockDim.x) maxval = fmaxf(maxval, x[i]);
  for (int o = 16; o > 0; o /= 2) maxval = fmaxf(maxval, __shfl_down_sync(0xFFFFFFFF, maxval, o));
  if (laneId == 0) maxvals[warpId] = maxval;
  __syncthreads();
  if (tid == 0) {
    float val = maxvals[tid];
    for (int i = 1; i < warps; i++) val = fmaxf(val, maxvals[i]);
    maxvals[0] = val;
  }
  __syncthreads();
  float offset = maxvals[0], sumval = 0.0f;
  for (int i = tid; i < C; i += blockDim.x) {
    float e = expf(x[i] - offset);
    out[idx * C + i] = e;
    sumval += e;
  }
  for (int o = 16; o > 0; o /= 2) sumval += __shfl_down_sync(0xFFFFFFFF, sumval, o);
  if (laneId == 0) sumvals[warpId] = sumval;
  __syncthreads();
  if (tid == 0) {
    float val = sumvals[tid];
    for (int i = 1; i < warps; ++i) val += sumvals[i];
    sumvals[0] = val;
  }
  __syncthreads();
  float sum = sumvals[0];
  for (int i = tid; i < C; i += blockDim.x) out[idx * C + i] = out[idx * C + i] / sum;
}
#define GELU_SCALING_FACTOR sqrtf(2.0f / M_PI)
__global__ void gelu_residual(float *out, const float *inp, const float *residual, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    float xi = __ldcs(&inp[i]), cube = 0.044715f * xi * xi * xi;
    out[i] = 0.5f * xi * (1.0f + tanhf(GELU_SCALING_FACTOR * (xi + cube))) + residual[i];
  }
}
int main() {
  const int B = 2, T = 9, C = 48, OC = 20, V = 30;
  srand(0);
  auto random = [](size_t n) {
    float *p;
    cudaCheck(cudaMallocManaged(&p, n * sizeof(float)));
    for (size_t i = 0; i < n; ++i) p[i] = ((float)rand() / RAND_MAX) * 2.0f - 1.0f;
    return p;
  };
  float *wte = random(V * C), *wpe = random(T * C), *x = random(B * T * C), *ln = random(B * T * C), *mean = random(B * T), *rstd = random(B * T),
        *w = random(C), *b = random(C), *W = random(OC * C), *bias = random(OC), *logits = random(B * T * OC), *probs = random(B * T * OC),
        *g = random(B * T * OC);
  int *tokens;
  cudaCheck(cudaMallocManaged(&tokens, B * T * sizeof(int)));
  for (int i = 0; i < B * T; ++i) tokens[i] = rand() % V;
  encoder_forward<<<CEIL_DIV(B * T * C / 4, 64), 64>>>((float4 *)x, tokens, (float4 *)wte, (float4 *)wpe, B, T, C);
  layernorm_forward<<<CEIL_DIV(B * T * 32, 128), 128>>>(ln, mean, rstd, x, w, b, B * T, C);
  matmul_forward<<<dim3(CEIL_DIV(B * T, 16), CEIL_DIV(OC, 16)), dim3(16, 16)>>>(logits, ln, W, bias, B * T, C, OC);
  softmax_forward<<<B * T, 64, 2 * 64 / 32 * sizeof(float)>>>(probs, logits, B * T, OC);
  gelu_residual<<<CEIL_DIV(B * T * OC, 128), 128>>>(g, logits, probs, B * T * OC);
  cudaCheck(cudaDeviceSynchronize());
  double worst = 0;
  for (int r = 0; r < B * T; ++r) {
    double m = 0, v = 0, biggest = -1e30, total = 0;
    std::vector<double> n(C), l(OC);
    for (int c = 0; c < C; ++c) m += n[c] = wte[tokens[r] * C + c] + wpe[r % T * C + c];
    m /= C;
    for (int c = 0; c < C; ++c) v += (n[c] - m) * (n[c] - m);
    for (int c = 0; c < C; ++c) n[c] = (n[c] - m) / sqrt(v / C + 1e-5) * w[c] + b[c];
    for (int o = 0; o < OC; ++o) {
      l[o] = bias[o];
      for (int c = 0; c < C; ++c) l[o] += n[c] * W[o * C + c];
      biggest = fmax(biggest, l[o]);
    }
    for (int o = 0; o < OC; ++o) total += exp(l[o] - biggest);
    for (int o = 0; o < OC; ++o) {
      double p = exp(l[o] - biggest) / total;
      double want = 0.5 * l[o] * (1 + tanh(sqrt(2 / M_PI) * (l[o] + 0.044715 * l[o] * l[o] * l[o]))) + p;
      worst = fmax(worst, fabs(want - g[r * OC + o]));
    }
  }
  printf(worst < 1e-4 ? "PASS\n" : "FAIL %g\n", worst);
  return worst >= 1e-4;
}
