#pragma once
// What the parts of the runtime API share about streams, graphs and arrays.
#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <vector>

namespace capstone_emu {

using Work = std::function<cudaError_t()>;

/// Does the work now, behind the kernels that wait in the stream, or records it while the stream is being
/// captured into a graph.
cudaError_t enqueue(cudaStream_t stream, Work work);

/// Leaves an error for cudaGetLastError().
cudaError_t remember(cudaError_t error);

struct GraphNode {
  cudaGraphNodeType type;  ///< cudaGraphNodeTypeCount: captured, so that only its order is known
  Work work;               ///< empty: nothing is done
  std::vector<GraphNode*> before{};
};
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes{};

  /// What a stream does runs behind what was captured before it.
  void add_captured(Work work);
  /// The nodes in an order that respects every dependency; empty where they wait for each other. Nodes that
  /// may run in any order run as they were made, or the other way round where streams are late.
  std::vector<GraphNode*> in_order() const;
};
std::unique_ptr<Graph> copy_of(const Graph& graph);

/// The memory of a CUDA array: its extents count elements. @param element  [B]
cudaPitchedPtr memory_of(cudaArray_const_t array, unsigned& element);

}  // namespace capstone_emu
