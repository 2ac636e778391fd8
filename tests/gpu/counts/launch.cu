// Runs one file of kernels/ once on a GPU, for a profiler: the same launches as under the emulator.
//   nvcc -std=c++17 -O3 -lineinfo -arch=sm_90a -DKERNEL_FILE='"kernels/copy.cu"' launch.cu -o launch
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define WEAK __attribute__((weak))
#pragma GCC diagnostic ignored "-Waddress"  // where the file has one, the address is known not to be null
extern "C" WEAK size_t workspace_bytes(int64_t);

#include KERNEL_FILE

namespace {

constexpr int64_t kElements = 65536;  // `emulate` in problem/problem.yaml

void* zeroed(size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess || cudaMemset(memory, 0, bytes) != cudaSuccess) {
    std::fprintf(stderr, "counts: no GPU memory: %s\n", cudaGetErrorString(cudaGetLastError()));
    std::exit(2);
  }
  return memory;
}

}  // namespace

int main() {
  auto* x = static_cast<float*>(zeroed(kElements * sizeof(float)));
  auto* y = static_cast<float*>(zeroed(kElements * sizeof(float)));
  void* workspace = workspace_bytes != nullptr ? zeroed(workspace_bytes(kElements)) : nullptr;
  launch(x, y, kElements, workspace, nullptr);
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) std::fprintf(stderr, "counts: %s: %s\n", KERNEL_FILE, cudaGetErrorString(status));
  return status == cudaSuccess ? 0 : 1;
}
