// Graphs: built node by node, or captured from streams (cuda_streams.cpp). See cuda_api.cpp for how this is
// compiled.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "include/capstone_emulator/core.h"
#include "runtime/stream_order.h"
#include "runtime/streams.h"

using capstone_emu::copy_of;
using capstone_emu::Graph;
using capstone_emu::GraphNode;
using capstone_emu::remember;
using capstone_emu::Work;

namespace {

/// What launching does, in order. Updates of nodes find their work by the node.
struct Executable {
  std::vector<std::pair<const GraphNode*, Work>> steps;
};

struct Kernel {
  std::string name;
  capstone_emu::KeptLaunch (*keep)(const capstone_emu::LaunchConfig&, void*, void**);
};
std::mutex g_kernels_mutex;
std::map<void*, Kernel>& kernels() {
  static auto* all = new std::map<void*, Kernel>;
  return *all;
}
const Kernel* kernel_at(void* address) {
  std::lock_guard lock(g_kernels_mutex);
  const auto found = kernels().find(address);
  return found == kernels().end() ? nullptr : &found->second;
}

Graph* graph_of(cudaGraph_t handle) { return reinterpret_cast<Graph*>(handle); }
GraphNode* node_of(cudaGraphNode_t handle) { return reinterpret_cast<GraphNode*>(handle); }
Executable* executable_of(cudaGraphExec_t handle) { return reinterpret_cast<Executable*>(handle); }

bool has(const Graph& graph, const GraphNode* node) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto& one) { return one.get() == node; });
}

cudaError_t add(cudaGraphNode_t* result, cudaGraph_t graph, const cudaGraphNode_t* before, std::size_t count,
                cudaGraphNodeType type, Work work) {
  if (!result || !graph || (count && !before)) return remember(cudaErrorInvalidValue);
  auto node = std::make_unique<GraphNode>(GraphNode{type, std::move(work)});
  for (std::size_t i = 0; i < count; ++i) {
    if (!has(*graph_of(graph), node_of(before[i]))) return remember(cudaErrorInvalidValue);
    node->before.push_back(node_of(before[i]));
  }
  *result = reinterpret_cast<cudaGraphNode_t>(node.get());
  graph_of(graph)->nodes.push_back(std::move(node));
  return cudaSuccess;
}

/// One node becomes ready when those before it are done.
std::vector<std::pair<const GraphNode*, Work>> steps_of(const Graph& graph) {
  std::vector<std::pair<const GraphNode*, Work>> steps;
  for (const GraphNode* node : graph.in_order()) steps.emplace_back(node, node->work);
  return steps;
}

// ---- the work of each kind of node
// --------------------------------------------------------------------------

cudaError_t kernel_work(const cudaKernelNodeParams* params, Work& work) {
  if (!params || params->extra) return params ? cudaErrorNotSupported : cudaErrorInvalidValue;
  const Kernel* const kernel = kernel_at(params->func);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  auto index = [](dim3 d) { return capstone_emu::Index3{d.x, d.y, d.z}; };
  capstone_emu::LaunchConfig config{
      kernel->name.c_str(),   "a graph", 0, index(params->gridDim), index(params->blockDim),
      params->sharedMemBytes, false};
  const capstone_emu::KeptLaunch kept = kernel->keep(config, params->func, params->kernelParams);
  if (!kept.arguments) return cudaErrorInvalidValue;
  config.argument_bytes = kept.bytes;
  work = [config, body = kept.body, frame = std::shared_ptr<void>(kept.arguments, kept.destroy)] {
    run_grid(config, body, frame.get());
    return static_cast<cudaError_t>(capstone_emu::last_error());
  };
  return cudaSuccess;
}

cudaError_t memset_work(const cudaMemsetParams* params, Work& work) {
  if (!params || !params->dst || params->height == 0 ||
      (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4))
    return cudaErrorInvalidValue;
  work = [p = *params]() -> cudaError_t {
    const std::size_t row_bytes = p.width * p.elementSize;
    for (std::size_t row = 0; row < p.height; ++row) {
      char* const to = static_cast<char*>(p.dst) + row * p.pitch;
      if (p.elementSize == 1) {
        if (const cudaError_t error = cudaMemset(to, static_cast<int>(p.value), row_bytes)) return error;
        continue;
      }
      if (!capstone_emu::may_set(to, row_bytes)) return remember(cudaErrorInvalidValue);
      const capstone_emu::DeviceMemoryUse use;
      for (std::size_t i = 0; i < p.width; ++i) std::memcpy(to + i * p.elementSize, &p.value, p.elementSize);
      capstone_emu::memory_written(to, row_bytes);
    }
    return cudaSuccess;
  };
  return cudaSuccess;
}

cudaError_t host_work(const cudaHostNodeParams* params, Work& work) {
  if (!params || !params->fn) return cudaErrorInvalidValue;
  work = [p = *params] {
    p.fn(p.userData);
    return cudaSuccess;
  };
  return cudaSuccess;
}

cudaError_t copy_work(const cudaMemcpy3DParms* params, Work& work) {
  if (!params) return cudaErrorInvalidValue;
  work = [p = *params] { return cudaMemcpy3D(&p); };
  return cudaSuccess;
}

cudaError_t child_work(cudaGraph_t child, Work& work) {
  if (!child) return cudaErrorInvalidValue;
  work = [steps = steps_of(*graph_of(child))]() -> cudaError_t {
    for (const auto& [node, step] : steps)
      if (const cudaError_t error = step ? step() : cudaSuccess) return error;
    return cudaSuccess;
  };
  return cudaSuccess;
}

cudaError_t change(cudaGraphNode_t node, cudaGraphNodeType type, cudaError_t error, Work&& work) {
  if (error || !node || node_of(node)->type != type) return remember(error ? error : cudaErrorInvalidValue);
  node_of(node)->work = std::move(work);
  return cudaSuccess;
}
cudaError_t change(cudaGraphExec_t executable, cudaGraphNode_t node, cudaError_t error, Work&& work) {
  if (error || !executable) return remember(error ? error : cudaErrorInvalidValue);
  for (auto& [known, step] : executable_of(executable)->steps) {
    if (known != node_of(node)) continue;
    step = std::move(work);
    return cudaSuccess;
  }
  return remember(cudaErrorInvalidValue);
}

cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph) {
  if (!executable || !graph) return remember(cudaErrorInvalidValue);
  auto made = std::make_unique<Executable>(Executable{steps_of(*graph_of(graph))});
  if (made->steps.size() != graph_of(graph)->nodes.size()) return remember(cudaErrorInvalidValue);
  *executable = reinterpret_cast<cudaGraphExec_t>(made.release());
  return cudaSuccess;
}

/// As on the device, `result` may be null to ask for the number alone.
template <class Wanted>
cudaError_t list_nodes(const Graph& graph, cudaGraphNode_t* result, std::size_t* count, Wanted wanted) {
  std::size_t found = 0;
  for (const auto& node : graph.nodes) {
    if (!wanted(*node)) continue;
    if (result && found < *count) result[found] = reinterpret_cast<cudaGraphNode_t>(node.get());
    ++found;
  }
  *count = found;
  return cudaSuccess;
}

cudaError_t add_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                      std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!has(*graph_of(graph), node_of(from[i])) || !has(*graph_of(graph), node_of(to[i])))
      return remember(cudaErrorInvalidValue);
    node_of(to[i])->before.push_back(node_of(from[i]));
  }
  return cudaSuccess;
}

}  // namespace

namespace capstone_emu {

void Graph::add_captured(Work work) {
  auto node = std::make_unique<GraphNode>(GraphNode{cudaGraphNodeTypeCount, std::move(work)});
  if (!nodes.empty()) node->before.push_back(nodes.back().get());
  nodes.push_back(std::move(node));
}

std::vector<GraphNode*> Graph::in_order() const {
  std::vector<GraphNode*> order, left;
  for (const auto& node : nodes) left.push_back(node.get());
  if (streams_are_late()) std::reverse(left.begin(), left.end());
  while (!left.empty()) {
    const auto ready = std::find_if(left.begin(), left.end(), [&](const GraphNode* node) {
      return std::none_of(node->before.begin(), node->before.end(), [&](GraphNode* one) {
        return std::find(left.begin(), left.end(), one) != left.end();
      });
    });
    if (ready == left.end()) return {};  // a circle
    order.push_back(*ready);
    left.erase(ready);
  }
  return order;
}

std::unique_ptr<Graph> copy_of(const Graph& graph) {
  auto copy = std::make_unique<Graph>();
  std::map<const GraphNode*, GraphNode*> copied;
  for (const auto& node : graph.nodes) {
    copy->nodes.push_back(std::make_unique<GraphNode>(GraphNode{node->type, node->work}));
    copied[node.get()] = copy->nodes.back().get();
  }
  for (const auto& node : graph.nodes)
    for (const GraphNode* before : node->before) copied[node.get()]->before.push_back(copied[before]);
  return copy;
}

void know_kernel(void* kernel, const char* name, KeptLaunch (*keep)(const LaunchConfig&, void*, void**)) {
  std::lock_guard lock(g_kernels_mutex);
  kernels().insert({kernel, {name, keep}});
}

}  // namespace capstone_emu

extern "C" {

/// A kernel by its bare address: the rewriter has seen where it was taken.
cudaError_t cudaLaunchKernel(const void* address, dim3 grid, dim3 block, void** arguments,
                             size_t dynamic_shared, cudaStream_t stream) {
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(address);
  params.gridDim = grid;
  params.blockDim = block;
  params.sharedMemBytes = static_cast<unsigned>(dynamic_shared);
  params.kernelParams = arguments;
  Work work;
  if (const cudaError_t error = kernel_work(&params, work)) return remember(error);
  return capstone_emu::enqueue(stream, std::move(work));
}

// ---- building ---------------------------------------------------------------------------------------------
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  if (!graph) return remember(cudaErrorInvalidValue);
  *graph = reinterpret_cast<cudaGraph_t>(new Graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph_of(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t graph) {
  if (!copy || !graph) return remember(cudaErrorInvalidValue);
  *copy = reinterpret_cast<cudaGraph_t>(copy_of(*graph_of(graph)).release());
  return cudaSuccess;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                   size_t count, const cudaKernelNodeParams* params) {
  Work work;
  if (const cudaError_t error = kernel_work(params, work)) return remember(error);
  return add(node, graph, before, count, cudaGraphNodeTypeKernel, std::move(work));
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                   size_t count, const cudaMemcpy3DParms* params) {
  Work work;
  if (const cudaError_t error = copy_work(params, work)) return remember(error);
  return add(node, graph, before, count, cudaGraphNodeTypeMemcpy, std::move(work));
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                     size_t count, void* to, const void* from, size_t bytes,
                                     cudaMemcpyKind kind) {
  return add(node, graph, before, count, cudaGraphNodeTypeMemcpy,
             [=] { return cudaMemcpyAsync(to, from, bytes, kind, nullptr); });
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                   size_t count, const cudaMemsetParams* params) {
  Work work;
  if (const cudaError_t error = memset_work(params, work)) return remember(error);
  return add(node, graph, before, count, cudaGraphNodeTypeMemset, std::move(work));
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                 size_t count, const cudaHostNodeParams* params) {
  Work work;
  if (const cudaError_t error = host_work(params, work)) return remember(error);
  return add(node, graph, before, count, cudaGraphNodeTypeHost, std::move(work));
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* before, size_t count, cudaGraph_t child) {
  Work work;
  if (const cudaError_t error = child_work(child, work)) return remember(error);
  return add(node, graph, before, count, cudaGraphNodeTypeGraph, std::move(work));
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                  size_t count) {
  return add(node, graph, before, count, cudaGraphNodeTypeEmpty, nullptr);
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* before, size_t count, cudaEvent_t event) {
  return add(node, graph, before, count, cudaGraphNodeTypeEventRecord,
             [event] { return cudaEventRecord(event, nullptr); });
}
#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*, size_t count) {
  return add_edges(graph, from, to, count);
}
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t count) {
  return add_edges(graph, from, to, count);
}
#endif

// ---- asking and changing ----------------------------------------------------------------------------------
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return list_nodes(*graph_of(graph), nodes, count, [](const GraphNode&) { return true; });
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return list_nodes(*graph_of(graph), nodes, count,
                    [](const GraphNode& node) { return node.before.empty(); });
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node_of(node)->type;
  return *type == cudaGraphNodeTypeCount ? remember(cudaErrorNotSupported) : cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  Work work;
  const cudaError_t error = kernel_work(params, work);
  return change(node, cudaGraphNodeTypeKernel, error, std::move(work));
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  Work work;
  const cudaError_t error = memset_work(params, work);
  return change(node, cudaGraphNodeTypeMemset, error, std::move(work));
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  Work work;
  const cudaError_t error = kernel_work(params, work);
  return change(executable, node, error, std::move(work));
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  Work work;
  const cudaError_t error = memset_work(params, work);
  return change(executable, node, error, std::move(work));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes, cudaMemcpyKind kind) {
  return change(executable, node, cudaSuccess,
                [=] { return cudaMemcpyAsync(to, from, bytes, kind, nullptr); });
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
  Work work;
  const cudaError_t error = host_work(params, work);
  return change(executable, node, error, std::move(work));
}

// ---- running ----------------------------------------------------------------------------------------------
#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return instantiate(executable, graph);
}
/// The new graph has the same nodes in the same places: so it was captured, or built, in the same way.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  auto& steps = executable_of(executable)->steps;
  auto fresh = steps_of(*graph_of(graph));
  const bool same = std::equal(steps.begin(), steps.end(), fresh.begin(), fresh.end(),
                               [](const auto& a, const auto& b) { return !a.second == !b.second; });
  if (info) *info = {};
  if (info) info->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  if (!same) return remember(cudaErrorGraphExecUpdateFailure);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].second = std::move(fresh[i].second);
  return cudaSuccess;
}
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*, char*,
                                 size_t) {
  return instantiate(executable, graph);
}
#endif
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  return instantiate(executable, graph);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (!executable) return remember(cudaErrorInvalidValue);
  const capstone_emu::WorkOfStream nodes(stream);
  for (const auto& [node, work] : executable_of(executable)->steps)
    if (const cudaError_t error = work ? capstone_emu::enqueue(stream, work) : cudaSuccess) return error;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable_of(executable);
  return cudaSuccess;
}

}  // extern "C"
