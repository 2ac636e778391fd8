#pragma once
#pragma GCC system_header
// CUDA's own header, read as a host compiler reads it, and the functions that it then hides.
#include <cuda_fp16.h>

#include "capstone_emulator/host_view.h"
#include_next <cuda_bf16.h>
#include "capstone_emulator/device_view.h"
#include "capstone_emulator/half_functions.h"

CAPSTONE_HALF_FUNCTIONS(__nv_bfloat16, __nv_bfloat162, __bfloat162float, __float2bfloat16_rn, __halves2bfloat162,
                        __low2bfloat16, __high2bfloat16)
