#pragma once
#pragma GCC system_header
// Included before every candidate on the emulated backend: CUDA's own headers as a host compiler sees them,
// then what nvcc would add. The rewriter gives meaning to the names that start with capstone_emu_.
#include <assert.h>
#include <bits/stl_algobase.h>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <math.h>

#include <cuda_runtime.h>

#undef __shared__
#define __shared__ capstone_emu_shared
#undef __global__
#define __global__ capstone_emu_global
#undef __device__
#define __device__ capstone_emu_device
#undef __host__
#define __host__
#undef __constant__
#define __constant__
#undef __managed__
#define __managed__
#undef __grid_constant__
#define __grid_constant__
#undef __launch_bounds__
#define __launch_bounds__(...) capstone_emu_launch_bounds(__VA_ARGS__)
#undef __cluster_dims__
#define __cluster_dims__(...) capstone_emu_cluster_dims(__VA_ARGS__)
#undef __maxnreg__
#define __maxnreg__(...)
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#undef __noinline__
#define __noinline__  // nothing: libstdc++ writes __attribute__((__noinline__)), and it is a hint anyway
#ifndef __align__
#define __align__(n) __attribute__((aligned(n)))
#endif
#define __builtin_assume(...) static_cast<void>(sizeof(static_cast<bool>(__VA_ARGS__)))  // not evaluated, as by nvcc

#include "capstone_emulator/execution.h"
#include "capstone_emulator/synchronisation.h"
#include "capstone_emulator/atomics.h"
#include "capstone_emulator/intrinsics.h"
#include "capstone_emulator/symbols.h"
#include "capstone_emulator/textures.h"
#include "capstone_emulator/ptx.h"
#include "capstone_emulator/ptx_async.h"
#include "capstone_emulator/ptx_mma.h"
#include "capstone_emulator/ptx_tcgen05.h"

#include "capstone_emulator/device_view.h"

#if CUDART_VERSION >= 13000  // names of CUDA 3, which public code still calls and CUDA 13 no longer declares
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }

// Properties that CUDA 13 removed.
namespace capstone_emu {
struct DeviceProperties : cudaDeviceProp {
  int clockRate, memoryClockRate;  // [kHz]
  int deviceOverlap, kernelExecTimeoutEnabled, computeMode, maxTexture1DLinear, singleToDoublePrecisionPerfRatio,
      cooperativeMultiDeviceLaunch;
};
}  // namespace capstone_emu
inline cudaError_t cudaGetDeviceProperties(capstone_emu::DeviceProperties* properties, int device) {
  *properties = {};
  properties->clockRate = properties->memoryClockRate = 1000000;
  properties->deviceOverlap = properties->cooperativeMultiDeviceLaunch = 1;
  properties->maxTexture1DLinear = 1 << 27;
  properties->singleToDoublePrecisionPerfRatio = 2;
  return ::cudaGetDeviceProperties(static_cast<cudaDeviceProp*>(properties), device);
}
#define cudaDeviceProp capstone_emu::DeviceProperties
#endif

extern "C" {
__attribute__((weak)) extern const int capstone_emu_arch;  // each source of a program has it
const int capstone_emu_arch = __CUDA_ARCH__;
}
