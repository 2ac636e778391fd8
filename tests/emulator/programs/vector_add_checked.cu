// The first program of every course: grid-stride vector addition with checked calls and event timing.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                        \
  do {                                                                                          \
    cudaError_t err__ = call;                                                                   \
    if (err__ != cudaSuccess) {                                                                 \
      fprintf(stderr, "CUDA error at %s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err__)); \
      exit(EXIT_FAILURE);                                                                       \
    }                                                                                           \
  } while (0)

__global__ void vectorAdd(const float *__restrict__ A, const float *__restrict__ B, float *C, int numElements) {
  for (int i = blockDim.x * blockIdx.x + threadIdx.x; i < numElements; i += blockDim.x * gridDim.x) C[i] = A[i] + B[i] + 0.0f;
}

int main(void) {
  int numElements = 50000, device = 0;
  size_t size = numElements * sizeof(float);
  cudaDeviceProp deviceProp;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaGetDeviceProperties(&deviceProp, device));
  printf("GPU \"%s\" with compute capability %d.%d\n", deviceProp.name, deviceProp.major, deviceProp.minor);
  float *h_A = (float *)malloc(size), *h_B = (float *)malloc(size), *h_C = (float *)malloc(size);
  for (int i = 0; i < numElements; ++i) {
    h_A[i] = rand() / (float)RAND_MAX;
    h_B[i] = rand() / (float)RAND_MAX;
  }
  float *d_A = NULL, *d_B = NULL, *d_C = NULL;
  CUDA_CHECK(cudaMalloc((void **)&d_A, size));
  CUDA_CHECK(cudaMalloc((void **)&d_B, size));
  CUDA_CHECK(cudaMalloc((void **)&d_C, size));
  CUDA_CHECK(cudaMemcpy(d_A, h_A, size, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d_B, h_B, size, cudaMemcpyHostToDevice));
  cudaEvent_t start, stop;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  CUDA_CHECK(cudaEventRecord(start));
  vectorAdd<<<32 * deviceProp.multiProcessorCount, 256>>>(d_A, d_B, d_C, numElements);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaEventRecord(stop));
  CUDA_CHECK(cudaEventSynchronize(stop));
  float msec = 0;
  CUDA_CHECK(cudaEventElapsedTime(&msec, start, stop));
  CUDA_CHECK(cudaMemcpy(h_C, d_C, size, cudaMemcpyDeviceToHost));
  for (int i = 0; i < numElements; ++i)
    if (fabs(h_A[i] + h_B[i] - h_C[i]) > 1e-5) {
      fprintf(stderr, "Result verification failed at element %d!\n", i);
      exit(EXIT_FAILURE);
    }
  CUDA_CHECK(cudaFree(d_A));
  CUDA_CHECK(cudaFree(d_B));
  CUDA_CHECK(cudaFree(d_C));
  free(h_A); free(h_B); free(h_C);
  CUDA_CHECK(cudaDeviceReset());
  printf("PASS\n");
  return 0;
}
