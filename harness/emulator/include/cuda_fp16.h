#pragma once
#pragma GCC system_header
// CUDA's own header, read as a host compiler reads it, and the functions that it then hides.
#include "capstone_emulator/host_view.h"
#include_next <cuda_fp16.h>
#include "capstone_emulator/device_view.h"
#include "capstone_emulator/half_functions.h"

CAPSTONE_HALF_FUNCTIONS(__half, __half2, __half2float, __float2half_rn, __halves2half2, __low2half, __high2half)

static inline __half hsin(__half a) { return __float2half_rn(sinf(__half2float(a))); }
static inline __half hcos(__half a) { return __float2half_rn(cosf(__half2float(a))); }
