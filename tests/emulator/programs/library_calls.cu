// cuBLAS and cuRAND as public code calls them: each result against a plain loop, or against what its
// distribution must show.
#include <cublas_v2.h>
#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                \
  if (int e = (int)(x)) {                                       \
    fprintf(stderr, "%s:%d error %d\n", __FILE__, __LINE__, e); \
    exit(1);                                                    \
  }

static bool right = true;
static void expect(bool holds, const char* what) {
  if (!holds) printf("wrong: %s\n", what);
  right = right && holds;
}
static bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance; }

__global__ void draw(float* uniform, float* normal, unsigned* words) {
  curandState state;
  curand_init(1234, threadIdx.x, 0, &state);
  curandStatePhilox4_32_10_t philox;
  curand_init(0, 0, threadIdx.x, &philox);
  words[threadIdx.x] = curand(&philox);
  for (int i = 0; i < 16; ++i) {
    uniform[threadIdx.x * 16 + i] = curand_uniform(&state);
    normal[threadIdx.x * 16 + i] = curand_normal(&state);
  }
}
__global__ void later(float* x) { x[threadIdx.x] *= 2; }

template <class T>
static std::vector<T> product(const std::vector<T>& a, bool turn_a, const std::vector<T>& b, bool turn_b,
                              int m, int n, int k) {
  std::vector<T> c(m * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int l = 0; l < k; ++l)
        c[j * m + i] += a[turn_a ? i * k + l : l * m + i] * b[turn_b ? l * n + j : j * k + l];
  return c;
}

int main() {
  // Products of 70 x 35 x 90, all four ways: more than one tile each way.
  const int m = 70, n = 35, k = 90;
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cublasSetStream(handle, stream));
  std::vector<float> a(m * k), b(k * n), c(m * n, 1.0f);
  for (int i = 0; i < m * k; ++i) a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < k * n; ++i) b[i] = (float)(i % 5 - 2);
  float *da, *db, *dc;
  CHECK(cudaMalloc(&da, a.size() * 4));
  CHECK(cudaMalloc(&db, b.size() * 4));
  CHECK(cudaMalloc(&dc, c.size() * 4));
  CHECK(cublasSetMatrix(m, k, 4, a.data(), m, da, m));
  CHECK(cublasSetVector(k * n, 4, b.data(), 1, db, 1));
  const float alpha = 2, beta = -1, one = 1, zero = 0;
  for (int way = 0; way < 4; ++way) {
    const bool turn_a = way & 1, turn_b = way & 2;
    CHECK(cudaMemcpy(dc, c.data(), c.size() * 4, cudaMemcpyHostToDevice));
    CHECK(cublasSgemm(handle, turn_a ? CUBLAS_OP_T : CUBLAS_OP_N, turn_b ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k,
                      &alpha, da, turn_a ? k : m, db, turn_b ? n : k, &beta, dc, m));
    std::vector<float> got(m * n);
    CHECK(cublasGetMatrix(m, n, 4, dc, m, got.data(), m));
    const std::vector<float> want = product(a, turn_a, b, turn_b, m, n, k);
    bool same = true;
    for (int i = 0; i < m * n; ++i) same = same && got[i] == 2 * want[i] - 1;
    expect(same, "cublasSgemm");
  }
  expect(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, da, m - 1, db, k, &zero, dc, m) ==
             CUBLAS_STATUS_INVALID_VALUE,
         "a leading dimension that is too small");

  // beta == 0 does not read C, which holds NaN; half times half gives float; batches.
  __half* halves;
  float *sums, *batch;
  CHECK(cudaMallocManaged(&halves, 64 * sizeof(__half)));
  CHECK(cudaMallocManaged(&sums, 64 * 4));
  CHECK(cudaMallocManaged(&batch, 64 * 4));
  for (int i = 0; i < 64; ++i) halves[i] = __float2half((float)(i % 3)), sums[i] = NAN, batch[i] = (float)i;
  CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, halves, CUDA_R_16F, 8, halves,
                     CUDA_R_16F, 8, &zero, sums, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  later<<<1, 64, 0, stream>>>(sums);  // behind the product
  CHECK(cudaStreamSynchronize(stream));
  bool same = true;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int l = 0; l < 8; ++l) sum += (float)((l * 8 + i) % 3) * ((j * 8 + l) % 3);
      same = same && sums[j * 8 + i] == 2 * sum;
    }
  expect(same, "cublasGemmEx");
  CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, batch, 2, 4, batch + 32, 2,
                                  0, &zero, sums, 2, 4, 8));
  CHECK(cudaStreamSynchronize(stream));
  same = true;
  for (int l = 0; l < 8; ++l)
    same = same && sums[4 * l] == 4 * l * 32 + (4 * l + 2) * 33 &&
           sums[4 * l + 3] == (4 * l + 1) * 34 + (4 * l + 3) * 35;
  expect(same, "cublasSgemmStridedBatched");

  // Vectors, in double; a result on the device.
  double *x, *y, *result;
  CHECK(cudaMallocManaged(&x, 5000 * 8));
  CHECK(cudaMallocManaged(&y, 5000 * 8));
  CHECK(cudaMallocManaged(&result, 8));
  for (int i = 0; i < 5000; ++i) x[i] = i % 10, y[i] = 1;
  const double three = 3, half = 0.5, none = 0;
  double dot, norm, total;
  int largest;
  CHECK(cublasDaxpy(handle, 5000, &three, x, 1, y, 1));
  CHECK(cublasDscal(handle, 2500, &half, y, 2));
  CHECK(cublasDdot(handle, 5000, x, 1, y, 1, &dot));
  CHECK(cublasDnrm2(handle, 10, x, 1, &norm));
  CHECK(cublasDasum(handle, 10, x, 1, &total));
  CHECK(cublasIdamax(handle, 25, x, 1, &largest));
  double want = 0;
  for (int i = 0; i < 5000; ++i) want += i % 10 * (i % 2 ? 1 : 0.5) * (3 * (i % 10) + 1);
  expect(near(dot, want, 1e-6) && near(norm, std::sqrt(285.0), 1e-12) && total == 45 && largest == 10,
         "vectors");
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  CHECK(cublasDasum(handle, 10, x, 1, result));
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  CHECK(cublasDgemv(handle, CUBLAS_OP_T, 10, 3, &half, x, 10, x, 1, &none, y, 1));
  CHECK(cudaDeviceSynchronize());
  expect(*result == 45 && y[0] == 142.5 && y[2] == 142.5, "cublasDgemv, and a result on the device");
  CHECK(cublasDestroy(handle));

  // cuRAND, host interface.
  const int count = 20000;
  float *uniform, *normal;
  unsigned* words;
  CHECK(cudaMallocManaged(&uniform, count * 4));
  CHECK(cudaMallocManaged(&normal, count * 4));
  CHECK(cudaMallocManaged(&words, count * 4));
  curandGenerator_t generator;
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 42));
  CHECK(curandGenerateUniform(generator, uniform, count));
  CHECK(curandGenerateNormal(generator, normal, count, 5, 2));
  CHECK(curandGeneratePoisson(generator, words, 2000, 3.0));
  CHECK(cudaDeviceSynchronize());
  double mean = 0, mean_normal = 0, square = 0, mean_poisson = 0;
  bool in_range = true;
  for (int i = 0; i < count; ++i) {
    in_range = in_range && uniform[i] > 0 && uniform[i] <= 1;
    mean += uniform[i] / count;
    mean_normal += normal[i] / count;
    square += (normal[i] - 5.0) * (normal[i] - 5.0) / count;
  }
  for (int i = 0; i < 2000; ++i) mean_poisson += words[i] / 2000.0;
  expect(in_range && near(mean, 0.5, 0.01) && near(mean_normal, 5, 0.06) && near(square, 4, 0.2) &&
             near(mean_poisson, 3, 0.2),
         "distributions");
  const float first = uniform[0], second = uniform[1];
  CHECK(curandGenerateUniform(generator, uniform, 2));
  CHECK(cudaDeviceSynchronize());
  expect(uniform[0] != first, "the sequence goes on");
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 42));
  CHECK(curandGenerateUniform(generator, uniform, 2));
  CHECK(cudaDeviceSynchronize());
  expect(uniform[0] == first && uniform[1] == second, "the same seed gives the same numbers");
  expect(curandGenerateNormal(generator, normal, 3, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE,
         "odd lengths");
  CHECK(curandDestroyGenerator(generator));

  // cuRAND, device interface. The first words of Philox4x32-10 for key 0 and counter 0 are published with it.
  draw<<<1, 64>>>(uniform, normal, words);
  CHECK(cudaDeviceSynchronize());
  mean = mean_normal = 0;
  for (int i = 0; i < 1024; ++i) mean += uniform[i] / 1024, mean_normal += normal[i] / 1024;
  expect(near(mean, 0.5, 0.04) && near(mean_normal, 0, 0.15), "numbers made in a kernel");
  expect(words[0] == 0x6627e8d5u && words[1] == 0xe169c58du && words[2] == 0xbc57ac4cu &&
             words[3] == 0x9b00dbd8u,
         "Philox4x32-10");
  puts(right ? "PASS" : "FAIL");
  return !right;
}
