// Takes back what device_view.h defines, for a header of CUDA that is read as a host compiler reads it.
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
