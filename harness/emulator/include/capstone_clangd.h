#pragma once
// Lets clangd read a kernel, with any clang and any version of CUDA's headers: clang's own CUDA mode accepts
// only the versions that it knows. Never compiled into a program; compile_commands.json names it.
#define __constinit
#define CAPSTONE_EMULATED 1
#define CAPSTONE_CUDA_ARCH 900
// clang's wrapper of this header does not fit what is read below. Most of it comes with the parts.
#define _GLIBCXX_ALGORITHM 1
constexpr bool observed_by_hooks = false;
#define capstone_emu_device
#define capstone_emu_shared
#define capstone_emu_global __attribute__((global))
#define capstone_emu_launch_bounds(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define capstone_emu_cluster_dims(...)
// A kernel may call every function of these, which are host functions to clang.
#pragma clang force_cuda_host_device begin
#include <bits/algorithmfwd.h>
#include <bits/stl_algobase.h>
#include <capstone_emulator.h>
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#pragma clang force_cuda_host_device end
#undef capstone_emu_device
#define capstone_emu_device __attribute__((host)) __attribute__((device))
// clang turns kernel<<<grid, block>>>() into calls of these.
int cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, cudaStream_t = 0);
