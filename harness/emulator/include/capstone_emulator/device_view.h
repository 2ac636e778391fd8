// From here on the source sees what it sees under nvcc. No include guard: those headers of CUDA that must not
// see it are wrapped between host_view.h and this.
#pragma GCC system_header
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ (CUDART_VERSION / 1000)
#define __CUDACC_VER_MINOR__ (CUDART_VERSION % 1000 / 10)
#define __CUDA_ARCH__ CAPSTONE_CUDA_ARCH
#undef __device__
#define __device__ capstone_emu_device
#undef __global__
#define __global__ capstone_emu_global
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
