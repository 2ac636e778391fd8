#pragma once
// What the parts of the runtime API share about streams.
#include <cuda_runtime.h>

#include <functional>

namespace capstone_emu {

/// Does the work now, or keeps it when the stream is being captured into a graph. All work of a stream is complete when it
/// was asked for.
cudaError_t enqueue(cudaStream_t stream, std::function<cudaError_t()> work);

/// Leaves an error for cudaGetLastError().
cudaError_t remember(cudaError_t error);

}  // namespace capstone_emu
