// Graphs built node by node: kernels, copies, fills, host functions and child graphs, with dependencies;
// updates of nodes; kernels launched by their address; streams with priorities.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                                       \
  if (cudaError_t e = (x)) {                                                                           \
    fprintf(stderr, "%s:%d %s: %s\n", __FILE__, __LINE__, cudaGetErrorName(e), cudaGetErrorString(e)); \
    exit(1);                                                                                           \
  }

__global__ void add(int* p, int value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += value;
}
template <class T>
__global__ void __launch_bounds__(256) scale(T* p, T by) {
  p[blockIdx.x * blockDim.x + threadIdx.x] *= by;
}
namespace inner {
__global__ void set(int* p) { *p = 77; }
}  // namespace inner
static void CUDART_CB count(void* data) { ++*static_cast<int*>(data); }

static bool right = true;
static void expect(bool holds, const char* what) {
  if (!holds) printf("wrong: %s\n", what);
  right = right && holds;
}

int main() {
  const int n = 512;
  int *d, *pinned, called = 0;
  CHECK(cudaMalloc(&d, n * sizeof(int)));
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));

  // fill ─▶ add ─▶ join ─▶ scale ─▶ copy ─▶ host. The nodes are made in another order than they run in.
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill, adds, scales, copies, host, join;
  cudaMemsetParams fills = {};
  fills.dst = d;
  fills.elementSize = 4;
  fills.value = 5;
  fills.width = n;
  fills.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &fills));
  int by = 3, value = 2, size = n;
  void* scale_arguments[] = {&d, &by};
  cudaKernelNodeParams kernel = {};
  kernel.func = (void*)scale<int>;
  kernel.gridDim = dim3(2);
  kernel.blockDim = dim3(256);
  kernel.kernelParams = scale_arguments;
  CHECK(cudaGraphAddKernelNode(&scales, graph, nullptr, 0, &kernel));
  void* add_arguments[] = {&d, &value, &size};
  cudaKernelNodeParams added = {(void*)add, dim3(4), dim3(128), 0, add_arguments, nullptr};
  CHECK(cudaGraphAddKernelNode(&adds, graph, &fill, 1, &added));
  CHECK(cudaGraphAddEmptyNode(&join, graph, &adds, 1));
  CHECK(cudaGraphAddDependencies(graph, &join, &scales, nullptr, 1));
  CHECK(cudaGraphAddMemcpyNode1D(&copies, graph, &scales, 1, pinned, d, n * sizeof(int),
                                 cudaMemcpyDeviceToHost));
  cudaHostNodeParams counts = {count, &called};
  CHECK(cudaGraphAddHostNode(&host, graph, &copies, 1, &counts));
  value = 1000;  // the arguments were copied

  size_t nodes = 0, roots = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(copies, &type));
  expect(nodes == 6 && roots == 1 && type == cudaGraphNodeTypeMemcpy, "what the graph holds");

  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  cudaStream_t stream;
  int least, greatest, priority;
  unsigned flags;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 7));
  CHECK(cudaStreamGetPriority(stream, &priority));
  CHECK(cudaStreamGetFlags(stream, &flags));
  expect(least == 0 && greatest < least && priority == greatest && flags == cudaStreamNonBlocking,
         "priorities");
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  expect(called == 3 && pinned[0] == 21 && pinned[n - 1] == 21, "(5 + 2) * 3, three times");

  value = 10;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, adds, &added));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  expect(pinned[7] == 45, "an updated node");

  // A child graph, in a clone of a graph.
  cudaGraph_t outer, clone;
  CHECK(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t child, after;
  CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
  cudaKernelNodeParams sets = {};
  sets.func = reinterpret_cast<void*>(&inner::set);
  sets.gridDim = sets.blockDim = dim3(1);
  void* set_arguments[] = {&pinned};
  sets.kernelParams = set_arguments;
  CHECK(cudaGraphAddKernelNode(&after, outer, &child, 1, &sets));
  CHECK(cudaGraphClone(&clone, outer));
  cudaGraphExec_t nested;
  CHECK(cudaGraphInstantiateWithFlags(&nested, clone, 0));
  CHECK(cudaGraphDestroy(outer));
  CHECK(cudaGraphLaunch(nested, stream));
  CHECK(cudaStreamSynchronize(stream));
  expect(called == 5 && pinned[0] == 77 && pinned[1] == 21, "a child graph in a clone");

  // What is wrong is refused.
  CHECK(cudaGraphAddDependencies(graph, &host, &fill, nullptr, 1));
  cudaGraphExec_t never;
  expect(cudaGraphInstantiate(&never, graph, 0) != cudaSuccess, "nodes that wait for each other");
  kernel.func = pinned;
  expect(cudaGraphAddKernelNode(&adds, clone, nullptr, 0, &kernel) == cudaErrorInvalidDeviceFunction,
         "no kernel");
  cudaGetLastError();

  // A kernel by its address, and a capture that replaces an instantiated one.
  const void* address = (const void*)add;
  value = 4;
  CHECK(cudaLaunchKernel(address, dim3(4), dim3(128), add_arguments, 0, stream));
  CHECK(cudaMemcpyAsync(pinned, d, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  expect(pinned[3] == 25, "a kernel launched by its address");
  cudaGraphExec_t captured = nullptr;
  for (int round = 1; round <= 2; ++round) {
    cudaGraph_t recorded;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<4, 128, 0, stream>>>(d, round, n);
    CHECK(cudaStreamEndCapture(stream, &recorded));
    cudaGraphExecUpdateResultInfo info;
    if (round == 1) CHECK(cudaGraphInstantiate(&captured, recorded, 0));
    if (round == 2) CHECK(cudaGraphExecUpdate(captured, recorded, &info));
    CHECK(cudaGraphLaunch(captured, stream));
    CHECK(cudaGraphDestroy(recorded));
  }
  CHECK(cudaMemcpyAsync(pinned, d, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  expect(pinned[3] == 28, "an updated graph");
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphExecDestroy(nested));
  CHECK(cudaGraphExecDestroy(captured));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(clone));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(d));
  CHECK(cudaFreeHost(pinned));
  puts(right ? "PASS" : "FAIL");
  return !right;
}
