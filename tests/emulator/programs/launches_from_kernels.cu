// Kernels that launch kernels, as CUDA 12 has it: the children run when the parent has ended, at the latest, and
// before what comes behind it in its stream.
#include <cstdio>

__device__ int sum;

__global__ void add(int value) { atomicAdd(&sum, value); }
__device__ void add_all(int n) { add<<<1, n>>>(1); }

__global__ void tree(int* visited, int depth) {
  if (threadIdx.x == 0) atomicAdd(visited + depth, 1);
  if (depth < 3 && threadIdx.x < 2) tree<<<1, 32>>>(visited, depth + 1);
  if (depth == 3 && threadIdx.x == 0) add_all(4);
}

__global__ void read(int* out) { *out = sum; }

int main() {
  int *visited, *out;
  cudaMallocManaged(&visited, 4 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  tree<<<2, 32>>>(visited, 0);
  read<<<1, 1>>>(out);
  bool right = cudaDeviceSynchronize() == cudaSuccess;
  for (int depth = 0; depth < 4; ++depth) right = right && visited[depth] == 2 << depth;
  printf(right && *out == 16 * 4 ? "PASS\n" : "FAIL\n");
}
