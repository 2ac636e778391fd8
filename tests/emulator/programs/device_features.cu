// What the language offers in kernels: recursion, new, printf, assert, function pointers, lambdas, unions,
// constant and managed memory, symbols, classes with virtual-free polymorphism, templates.
#include <cassert>
#include <cstdio>
#include <cstring>

__constant__ float coefficients[4];
__device__ int counter = 5;
__managed__ int managed_value = 1;
__device__ volatile int flag;

typedef float (*Operation)(float, float);
__device__ float plus_op(float a, float b) { return a + b; }
__device__ float times_op(float a, float b) { return a * b; }
__device__ Operation table[2] = {plus_op, times_op};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

union Bits {
  float f;
  unsigned u;
};

template <typename T, int N>
struct Stack {
  T data[N];
  int top = 0;
  __host__ __device__ void push(T v) { data[top++] = v; }
  __host__ __device__ T pop() { return data[--top]; }
};

template <typename F>
__global__ void apply(float* out, F f) {
  out[threadIdx.x] = f(threadIdx.x);
}

struct Scale {
  float by;
  __device__ float operator()(int i) const { return by * i; }
};

__global__ void features(float* out) {
  assert(blockDim.x == 4);
  int* scratch = new int[8];
  for (int i = 0; i < 8; ++i) scratch[i] = i;
  out[0] = scratch[7];
  delete[] scratch;
  char* raw = (char*)malloc(16);
  memset(raw, 1, 16);
  out[1] = raw[15];
  free(raw);
  out[2] = fibonacci(10);
  out[3] = table[0](2, 3) * 10 + table[1](2, 3);
  Bits bits;
  bits.f = 1.f;
  out[4] = bits.u == 0x3f800000u;
  Stack<int, 4> stack;
  stack.push(3);
  stack.push(4);
  out[5] = stack.pop() * 10 + stack.pop();
  out[6] = coefficients[0] + coefficients[3];
  if (threadIdx.x == 0) {
    counter += 2;
    managed_value = 77;
    flag = 1;
    printf("block %d of %d says %s %.1f\n", blockIdx.x, gridDim.x, "hello", 1.5);
  }
  extern __shared__ unsigned char bytes[];
  float* floats = reinterpret_cast<float*>(bytes);
  double* doubles = reinterpret_cast<double*>(floats + 4);
  floats[threadIdx.x] = threadIdx.x;
  doubles[threadIdx.x] = threadIdx.x * 0.5;
  __syncthreads();
  if (threadIdx.x == 0) out[7] = floats[3] + float(doubles[3]);
}

int main() {
  float* out;
  cudaMalloc(&out, 64);
  const float c[4] = {1, 2, 3, 4};
  cudaMemcpyToSymbol(coefficients, c, sizeof c);
  features<<<1, 4, 4 * sizeof(float) + 4 * sizeof(double)>>>(out);
  float h[8], l[4], s[4];
  cudaError_t error = cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  const float want[8] = {7, 1, 55, 56, 1, 43, 5, 4.5f};
  bool ok = error == cudaSuccess && memcmp(h, want, sizeof h) == 0;
  int count = 0;
  cudaMemcpyFromSymbol(&count, counter, sizeof count);
  ok = ok && count == 7 && managed_value == 77;
  float k = 3;
  apply<<<1, 4>>>(out, [=] __device__(int i) { return k + i; });
  cudaMemcpy(l, out, sizeof l, cudaMemcpyDeviceToHost);
  apply<<<1, 4>>>(out, Scale{2});
  cudaMemcpy(s, out, sizeof s, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 4; ++i) ok = ok && l[i] == 3 + i && s[i] == 2 * i;
  void* address = nullptr;
  size_t bytes = 0;
  cudaGetSymbolAddress(&address, coefficients);
  cudaGetSymbolSize(&bytes, coefficients);
  float back = 0;
  cudaMemcpy(&back, (float*)address + 2, 4, cudaMemcpyDeviceToHost);
  ok = ok && bytes == 16 && back == 3;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
