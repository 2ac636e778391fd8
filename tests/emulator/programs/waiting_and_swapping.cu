// How programs wait for another thread and build atomics: with a for that has only a condition, around a
// barrier, through PTX with an order, in a loop of atomicCAS that begins with a plain read. Also some
// spellings of launches and shared variables.
#include <cstdint>
#include <cstdio>

__device__ int load_acquire(const int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ void store_release(int* p, int v) { asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ uint64_t load_relaxed(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ void store_relaxed(uint64_t* p, uint64_t v) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }

// How the Programming Guide builds an atomic that CUDA lacks.
__device__ double add(double* address, double value) {
  unsigned long long int *word = (unsigned long long int*)address, old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
__device__ float maximum(float* address, float value) {
  int *word = (int*)address, old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}

__device__ volatile int passed[4];
__global__ void in_turns(int* out) {  // warp 3 first, warp 0 last
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32) return;
  if (warp < 3) {
    for (; passed[warp + 1] == 0;);
    __threadfence();
  }
  out[warp] = warp < 3 ? out[warp + 1] + 1 : 1;
  __threadfence();
  passed[warp] = 1;
}

// Block b continues when b - 1 is done; all its threads ask together.
__global__ void turnstile(int* next, int* order) {
  int seen = -1;
  while (__syncthreads_and(seen != (int)blockIdx.x))
    if (threadIdx.x == 0) seen = load_acquire(next);
  if (threadIdx.x == 0) {
    order[blockIdx.x] = blockIdx.x ? order[blockIdx.x - 1] + 1 : 1;
    store_release(next, blockIdx.x + 1);
  }
}

// A state and a value in one word, as in decoupled look-back.
__global__ void look_back(uint64_t* state, unsigned* ticket, unsigned* out) {
  if (threadIdx.x) return;
  const unsigned block = atomicAdd(ticket, 1u);
  unsigned before = 0;
  for (int at = (int)block - 1; at >= 0;) {
    const uint64_t word = load_relaxed(&state[at]);
    if (word >> 32 == 0) continue;
    before += (unsigned)word;
    break;
  }
  store_relaxed(&state[block], uint64_t{1} << 32 | (before + block));
  out[block] = before + block;
}

struct Span {
  const float* from;
  int count;
};
__global__ void reduce(Span span, double* sum, float* largest) {
  __shared__ float rows[4][8];
  __shared__ float (*first)[8];
  __shared__ volatile int any;
  if (threadIdx.x == 0) first = rows, any = 0;
  __syncthreads();
  rows[threadIdx.x / 8 % 4][threadIdx.x % 8] = 1;
  any = 1;  // all of them
  __syncthreads();
  for (int i = threadIdx.x; i < span.count; i += blockDim.x) {
    add(sum, span.from[i] * first[i / 8 % 4][i % 8]);
    maximum(largest, any ? span.from[i] : 0);
  }
}

int main() {
  int *next, *order, *turns;
  uint64_t* state;
  unsigned *ticket, *out;
  double* sum;
  float *x, *largest;
  cudaMallocManaged(&next, sizeof(int));
  cudaMallocManaged(&order, 64 * sizeof(int));
  cudaMallocManaged(&turns, 4 * sizeof(int));
  cudaMallocManaged(&state, 64 * sizeof(uint64_t));
  cudaMallocManaged(&ticket, sizeof(unsigned));
  cudaMallocManaged(&out, 64 * sizeof(unsigned));
  cudaMallocManaged(&sum, sizeof(double));
  cudaMallocManaged(&x, 64 * sizeof(float));
  cudaMallocManaged(&largest, sizeof(float));
  *next = 0, *ticket = 0, *sum = 0, *largest = 0;
  for (int i = 0; i < 64; ++i) state[i] = 0, order[i] = 0, out[i] = 0, x[i] = i;
  in_turns<<<1, 128>>>(turns);
  turnstile<<<12, 64>>>(next, order);
  look_back<<<16, 32>>>(state, ticket, out);
  reduce<<<1, 32>>>({x, 64}, sum, largest);
  bool ok = cudaDeviceSynchronize() == cudaSuccess && *sum == 2016 && *largest == 63 && turns[0] == 4;
  for (int i = 0; i < 12; ++i) ok = ok && order[i] == i + 1;
  for (unsigned i = 0; i < 16; ++i) ok = ok && out[i] == i * (i + 1) / 2;
  printf(ok ? "PASS\n" : "FAIL\n");
  return !ok;
}
