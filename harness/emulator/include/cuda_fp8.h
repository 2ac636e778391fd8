#pragma once
#pragma GCC system_header
// CUDA's own header, read as a host compiler reads it.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include "capstone_emulator/host_view.h"
#include_next <cuda_fp8.h>
#include "capstone_emulator/device_view.h"
