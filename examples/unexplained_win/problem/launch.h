// What a kernel for `sgemm` defines. Generated from problem.yaml.
// Tensors are contiguous and row-major, the first element of each 256-byte aligned; rows need not be aligned.
// Work may fork to other streams, but is joined before the next operation on `stream`.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

extern "C" void launch(
    const float* a /* [m, k] */,
    const float* b /* [k, n] */,
    float* c /* [m, n] output */,
    int64_t m,
    int64_t k,
    int64_t n,
    void* workspace,
    cudaStream_t stream);

/// Optional: bytes of scratch that launch() needs at these sizes. Without it `workspace` is null.
extern "C" size_t workspace_bytes(int64_t m, int64_t k, int64_t n);
