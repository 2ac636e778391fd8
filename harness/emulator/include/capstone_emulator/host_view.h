// Takes back what device_view.h defines, for a header of CUDA's that a host compiler is to understand.
#pragma GCC system_header
#undef __CUDACC__
#undef __NVCC__
#undef __CUDACC_VER_MAJOR__
#undef __CUDACC_VER_MINOR__
#undef __CUDA_ARCH__
#undef __device__
#define __device__
#undef __global__
#define __global__
