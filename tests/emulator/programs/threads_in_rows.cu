// Threads that wait among threads that do not: the emulator runs those behind each other that do
// not wait, and has to know which one runs as soon as one does.
#include <cstdio>
#include <vector>

struct Counter {
  int value;
  int step;
};

// A parameter and a local array are each thread's own, whoever ran before.
__global__ void own_parameters(Counter counter, int n, int* out) {
  int local[4] = {0, 0, 0, 0};
  const int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  for (int k = 0; k <= i % 3; ++k) {
    counter.value += counter.step;
    local[k] += counter.value;
    ++n;
  }
  out[blockIdx.x * n - blockIdx.x * (i % 3 + 1) + i] = local[0] + local[1] + local[2] + n + i;
}

// One thread in the middle of each warp exchanges with the last one; the others go on without it.
__global__ void some_exchange(int* out) {
  const unsigned lane = threadIdx.x % 32;
  int value = static_cast<int>(threadIdx.x);
  if (lane == 13 || lane == 31) value = 1000 * __shfl_sync(1u << 13 | 1u << 31, value, lane == 13 ? 31 : 13);
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

// The first half leaves; the others meet at a barrier, and at a second one after more have left.
__global__ void half_leaves(int* out) {
  __shared__ int sum;
  if (threadIdx.x < blockDim.x / 2) return;
  if (threadIdx.x == blockDim.x / 2) sum = 0;
  __syncthreads();
  atomicAdd(&sum, static_cast<int>(threadIdx.x));
  if (threadIdx.x % 2) return;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// A lock: whoever holds it sees a counter that no other thread changes.
__global__ void lock_and_count(int* lock, int* count) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      const int before = *static_cast<volatile int*>(count);
      __threadfence();
      *static_cast<volatile int*>(count) = before + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// The last thread of the block waits for a flag of the first one of the next block.
__global__ void waits_for_later_block(int* flag, int* out) {
  const int last = static_cast<int>(blockDim.x) - 1;
  if (blockIdx.x == 0 && threadIdx.x == last)
    while (atomicAdd(flag, 0) == 0) {
    }
  if (blockIdx.x == 1 && threadIdx.x == 0) atomicExch(flag, 1);
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(threadIdx.x);
}

bool fail(const char* what, int i, int got, int wanted) {
  if (got != wanted) std::printf("%s: %d is %d, not %d\n", what, i, got, wanted);
  return got != wanted;
}

int main() {
  constexpr int kThreads = 192, kBlocks = 5;
  int *out, *words;
  cudaMallocManaged(&out, kBlocks * kThreads * sizeof(int));
  cudaMallocManaged(&words, 3 * sizeof(int));
  bool bad = false;

  own_parameters<<<kBlocks, dim3(8, 6, 4)>>>(Counter{10, 2}, kThreads, out);
  cudaDeviceSynchronize();
  for (int b = 0; b < kBlocks; ++b)
    for (int i = 0; i < kThreads; ++i) {
      int wanted = i;
      for (int k = 0; k <= i % 3; ++k) wanted += 12 + 2 * k;
      bad |= fail("own_parameters", b * kThreads + i, out[b * kThreads + i], wanted + kThreads + i % 3 + 1);
    }

  some_exchange<<<kBlocks, kThreads>>>(out);
  cudaDeviceSynchronize();
  for (int i = 0; i < kBlocks * kThreads; ++i) {
    const int t = i % kThreads, lane = t % 32;
    bad |= fail("some_exchange", i, out[i], lane == 13 ? 1000 * (t + 18) : lane == 31 ? 1000 * (t - 18) : t);
  }

  half_leaves<<<kBlocks, kThreads>>>(out);
  cudaDeviceSynchronize();
  for (int i = 0; i < kBlocks * kThreads; ++i)
    if (i % kThreads >= kThreads / 2 && i % 2 == 0)
      bad |= fail("half_leaves", i, out[i], (kThreads / 2 + kThreads - 1) * kThreads / 4);

  words[0] = words[1] = words[2] = 0;
  lock_and_count<<<2, 64>>>(words, words + 1);
  cudaDeviceSynchronize();
  bad |= fail("lock_and_count", 0, words[1], 2 * 64);

  waits_for_later_block<<<kBlocks, kThreads>>>(words + 2, out);
  cudaDeviceSynchronize();
  for (int i = 0; i < kBlocks * kThreads; ++i) bad |= fail("waits_for_later_block", i, out[i], i % kThreads);

  if (const cudaError_t error = cudaGetLastError()) return std::puts(cudaGetErrorString(error)), 1;
  std::puts(bad ? "FAIL" : "PASS");
  return bad;
}
