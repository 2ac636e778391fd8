// mma.sync in many shapes and types, each compared with a plain product; also WMMA.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <cstdint>
#include <cstdio>

__device__ float af(int r, int k) { return float((r * 3 + k * 5) % 7 - 3); }
__device__ float bf(int k, int c) { return float((k * 2 + c * 3) % 5 - 2); }
__device__ uint32_t pack(float low, float high) {
  __half2 h = __floats2half2_rn(low, high);
  return *reinterpret_cast<uint32_t*>(&h);
}
__device__ float dot(int r, int c, int depth) {
  float s = 0;
  for (int k = 0; k < depth; ++k) s += af(r, k) * bf(k, c);
  return s;
}
__device__ int failures;
__device__ void expect(bool ok, int test) {
  if (!ok && atomicAdd(&failures, 1) < 5) printf("shape %d is wrong in lane %d\n", test, threadIdx.x);
}

__global__ void shapes() {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  {  // m16n8k16 f16, f32 accumulators
    uint32_t a[4] = {pack(af(g, 2 * t), af(g, 2 * t + 1)), pack(af(g + 8, 2 * t), af(g + 8, 2 * t + 1)),
                     pack(af(g, 2 * t + 8), af(g, 2 * t + 9)), pack(af(g + 8, 2 * t + 8), af(g + 8, 2 * t + 9))};
    uint32_t b[2] = {pack(bf(2 * t, g), bf(2 * t + 1, g)), pack(bf(2 * t + 8, g), bf(2 * t + 9, g))};
    float d[4];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};\n"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(1.f), "f"(1.f), "f"(1.f), "f"(1.f));
    for (int i = 0; i < 4; ++i) expect(d[i] == dot(g + i / 2 * 8, 2 * t + i % 2, 16) + 1, 0);
    uint32_t h[2];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};\n"
                 : "=r"(h[0]), "=r"(h[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(0), "r"(0));
    expect(h[1] == pack(dot(g + 8, 2 * t, 16), dot(g + 8, 2 * t + 1, 16)), 1);
  }
  {  // m16n8k8 tf32
    uint32_t a[4] = {__float_as_uint(af(g, t)), __float_as_uint(af(g + 8, t)), __float_as_uint(af(g, t + 4)), __float_as_uint(af(g + 8, t + 4))};
    uint32_t b[2] = {__float_as_uint(bf(t, g)), __float_as_uint(bf(t + 4, g))};
    float d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) expect(d[i] == dot(g + i / 2 * 8, 2 * t + i % 2, 8), 2);
  }
  {  // m8n8k4 f64
    double d[2] = {0, 0};
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};\n"
                 : "+d"(d[0]), "+d"(d[1]) : "d"(double(af(g, t))), "d"(double(bf(t, g))));
    for (int i = 0; i < 2; ++i) expect(d[i] == dot(g, 2 * t + i, 4), 3);
  }
  {  // m16n8k32 s8 and m8n8k32 s4
    uint32_t a[4] = {}, b[2] = {};
    for (int i = 0; i < 4; ++i) {
      for (int r = 0; r < 4; ++r) a[r] |= uint32_t(uint8_t(int8_t(af(g + r % 2 * 8, r / 2 * 16 + 4 * t + i)))) << (8 * i);
      for (int r = 0; r < 2; ++r) b[r] |= uint32_t(uint8_t(int8_t(bf(r * 16 + 4 * t + i, g)))) << (8 * i);
    }
    int d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) expect(d[i] == int(dot(g + i / 2 * 8, 2 * t + i % 2, 32)), 4);
    uint32_t p = 0, q = 0;
    for (int i = 0; i < 8; ++i) {
      p |= (uint32_t(int(af(g, 8 * t + i))) & 15u) << (4 * i);
      q |= (uint32_t(int(bf(8 * t + i, g))) & 15u) << (4 * i);
    }
    int e[2] = {};
    asm volatile("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%0,%1}, {%2}, {%3}, {%0,%1};\n" : "+r"(e[0]), "+r"(e[1]) : "r"(p), "r"(q));
    for (int i = 0; i < 2; ++i) expect(e[i] == int(dot(g, 2 * t + i, 32)), 5);
  }
  {  // m16n8k32 e4m3: small whole numbers are exact
    auto fp8 = [](float v) -> uint32_t {
      uint16_t two;
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.f), "f"(v));
      return two & 0xff;
    };
    uint32_t a[4] = {}, b[2] = {};
    for (int i = 0; i < 4; ++i) {
      for (int r = 0; r < 4; ++r) a[r] |= fp8(af(g + r % 2 * 8, r / 2 * 16 + 4 * t + i)) << (8 * i);
      for (int r = 0; r < 2; ++r) b[r] |= fp8(bf(r * 16 + 4 * t + i, g)) << (8 * i);
    }
    float d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) expect(d[i] == dot(g + i / 2 * 8, 2 * t + i % 2, 32), 6);
  }
}

using namespace nvcuda;
template <int M, int N, int K>
__global__ void wmma_half(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, M, N, K, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, M, N, K, float> fc;
  wmma::fill_fragment(fc, 0.f);
  wmma::load_matrix_sync(fa, a, K);
  wmma::load_matrix_sync(fb, b, K);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2;
  wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
}
__global__ void wmma_double(const double* a, const double* b, double* c) {
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> fc;
  wmma::fill_fragment(fc, 0.0);
  wmma::load_matrix_sync(fa, a, 4);
  wmma::load_matrix_sync(fb, b, 8);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
}

template <int M, int N, int K>
bool check_wmma() {
  half *a, *b;
  float* c;
  cudaMallocManaged(&a, M * K * 2);
  cudaMallocManaged(&b, N * K * 2);
  cudaMallocManaged(&c, M * N * 4);
  for (int i = 0; i < M * K; ++i) a[i] = __float2half(float(i % 9 - 4));
  for (int i = 0; i < N * K; ++i) b[i] = __float2half(float(i % 5 - 2));
  wmma_half<M, N, K><<<1, 32>>>(a, b, c);
  if (cudaDeviceSynchronize() != cudaSuccess) return false;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float want = 0;
      for (int k = 0; k < K; ++k) want += __half2float(a[i * K + k]) * __half2float(b[j * K + k]);
      if (c[i * N + j] != 2 * want) return false;
    }
  return true;
}

int main() {
  shapes<<<1, 32>>>();
  int bad = -1;
  cudaMemcpyFromSymbol(&bad, failures, sizeof bad);
  bool ok = bad == 0 && check_wmma<16, 16, 16>() && check_wmma<32, 8, 16>() && check_wmma<8, 32, 16>();
  double *a, *b, *c;
  cudaMallocManaged(&a, 32 * 8);
  cudaMallocManaged(&b, 32 * 8);
  cudaMallocManaged(&c, 64 * 8);
  for (int i = 0; i < 32; ++i) a[i] = i * 0.1, b[i] = i * 0.3;
  wmma_double<<<1, 32>>>(a, b, c);
  cudaDeviceSynchronize();
  for (int i = 0; i < 64; ++i) {
    double want = 0;
    for (int k = 0; k < 4; ++k) want += a[i / 8 * 4 + k] * b[k * 8 + i % 8];
    ok = ok && c[i] > want - 1e-12 && c[i] < want + 1e-12;
  }
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
