#pragma once
#pragma GCC system_header
// CUDA's own header, read as a host compiler reads it, and the functions that it then hides.
#include <cuda_fp16.h>

#include "capstone_emulator/host_view.h"
#include_next <cuda_bf16.h>
#include "capstone_emulator/device_view.h"
#include "capstone_emulator/half_functions.h"

template <>
inline constexpr bool capstone_emu::kCopiedAsBytes<__nv_bfloat162> = true;

CAPSTONE_HALF_FUNCTIONS(__nv_bfloat16, __nv_bfloat162, __bfloat162float, __float2bfloat16_rn, __halves2bfloat162,
                        __low2bfloat16, __high2bfloat16)
CAPSTONE_HALF_TO_INTEGERS(__nv_bfloat16, __bfloat162float, __bfloat16)

#define CAPSTONE_INTEGER_TO_BFLOAT(name, Integer)                                                                            \
  static inline __nv_bfloat16 name##2bfloat16_rz(Integer value) { return __ushort_as_bfloat16(capstone_emu::integer_to_bfloat<'z'>(value)); } \
  static inline __nv_bfloat16 name##2bfloat16_rd(Integer value) { return __ushort_as_bfloat16(capstone_emu::integer_to_bfloat<'d'>(value)); } \
  static inline __nv_bfloat16 name##2bfloat16_ru(Integer value) { return __ushort_as_bfloat16(capstone_emu::integer_to_bfloat<'u'>(value)); }
CAPSTONE_INTEGER_TO_BFLOAT(__int, int)
CAPSTONE_INTEGER_TO_BFLOAT(__uint, unsigned)
CAPSTONE_INTEGER_TO_BFLOAT(__short, short)
CAPSTONE_INTEGER_TO_BFLOAT(__ushort, unsigned short)
CAPSTONE_INTEGER_TO_BFLOAT(__ll, long long)
CAPSTONE_INTEGER_TO_BFLOAT(__ull, unsigned long long)
#undef CAPSTONE_INTEGER_TO_BFLOAT
