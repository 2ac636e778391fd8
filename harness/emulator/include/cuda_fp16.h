#pragma once
#pragma GCC system_header
// CUDA's own header, read as a host compiler reads it, and the functions that it then hides.
#include "capstone_emulator/host_view.h"
#include_next <cuda_fp16.h>
#include "capstone_emulator/device_view.h"
#include "capstone_emulator/half_functions.h"

template <>
inline constexpr bool capstone_emu::kCopiedAsBytes<__half2> = true;

CAPSTONE_HALF_FUNCTIONS(__half, __half2, __half2float, __float2half_rn, __halves2half2, __low2half, __high2half)
CAPSTONE_HALF_TO_INTEGERS(__half, __half2float, __half)
