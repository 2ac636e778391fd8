// What a kernel for `scale_rows` defines. Generated from problem.yaml.
// Tensors are contiguous and row-major, the first element of each 256-byte aligned; rows need not be aligned.
// Work may fork to other streams, but is joined before the next operation on `stream`.
#pragma once
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp4.h>

#include <cstddef>
#include <cstdint>

extern "C" void launch(
    const float* x /* [rows, 2*cols] */,
    const __half* half /* [rows] */,
    const int32_t* index /* [rows] */,
    const int64_t* start /* [groups + 1] */,
    const uint8_t* mask /* [cols] */,
    const __nv_fp8_e4m3* kind /* [cols] */,
    const int32_t* pages /* [rows] */,
    const __nv_bfloat16* w /* [cols] parameter */,
    const uint8_t* ints /* [rows, 2*cols] parameter; int4x2: two a byte, the first in the low half */,
    const __nv_fp8_e8m0* powers /* [rows] */,
    __nv_fp4x2_e2m1* codes /* [rows, cols] output; e2m1x2: two a byte, the first in the low half */,
    float* state /* [rows] inout */,
    float* y /* [rows, cols] output */,
    float eps /* 1.0e-5 */,
    int32_t width /* cols / 4 */,
    int64_t rows,
    int64_t cols,
    int64_t groups,
    const void* prepared,
    void* workspace,
    cudaStream_t stream);

/// Optional: bytes of scratch that launch() needs at these sizes. Without it `workspace` is null.
extern "C" size_t workspace_bytes(int64_t rows, int64_t cols, int64_t groups);

/// Bytes of `prepared` at these sizes.
extern "C" size_t prepared_bytes(int64_t rows, int64_t cols, int64_t groups);

/// Repacks the parameters once, untimed; launch() receives the result.
extern "C" void prepare(
    const __nv_bfloat16* w /* [cols] parameter */,
    const uint8_t* ints /* [rows, 2*cols] parameter; int4x2: two a byte, the first in the low half */,
    int64_t rows,
    int64_t cols,
    int64_t groups,
    void* prepared,
    cudaStream_t stream);
