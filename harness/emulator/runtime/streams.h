#pragma once
// What the parts of the runtime API share about streams.
#include <cuda_runtime.h>

#include <functional>

namespace capstone_emu {

/// Does the work now, behind the kernels that wait in the stream, or records it while the stream is being
/// captured into a graph.
cudaError_t enqueue(cudaStream_t stream, std::function<cudaError_t()> work);

/// Leaves an error for cudaGetLastError().
cudaError_t remember(cudaError_t error);

}  // namespace capstone_emu
