// What a kernel for `bias_gelu_layernorm` defines. Generated from problem.yaml.
// Tensors are contiguous and row-major, the first element of each 256-byte aligned; rows need not be aligned.
// Work may fork to other streams, but is joined before the next operation on `stream`.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

extern "C" void launch(
    const float* x /* [rows, cols] */,
    const float* residual /* [rows, cols] */,
    const float* bias /* [cols] parameter */,
    const float* gamma /* [cols] parameter */,
    const float* beta /* [cols] parameter */,
    float* y /* [rows, cols] output */,
    float eps /* 1.0e-5 */,
    int64_t rows,
    int64_t cols,
    void* workspace,
    cudaStream_t stream);

/// Optional: bytes of scratch that launch() needs at these sizes. Without it `workspace` is null.
extern "C" size_t workspace_bytes(int64_t rows, int64_t cols);
