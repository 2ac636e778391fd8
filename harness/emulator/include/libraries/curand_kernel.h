#pragma once
#pragma GCC system_header
// NVIDIA's own, as a host compiler reads it: the same words of each generator as on a GPU. What it includes comes
// first, for that changes the view back.
#include <curand.h>
#include <nv/target>

#include "../capstone_emulator/host_view.h"
#define __CUDA_ARCH__ CAPSTONE_CUDA_ARCH  // else it declares threadIdx itself
#include_next <curand_kernel.h>
#include "../capstone_emulator/device_view.h"
