// Streams with events between them, host functions, a captured graph that is launched several times.
#include <cstdio>
#include <cstdlib>

#define CHECK(x)                                                                                          \
  if (cudaError_t e = (x)) {                                                                              \
    fprintf(stderr, "%s:%d %s: %s\n", __FILE__, __LINE__, cudaGetErrorName(e), cudaGetErrorString(e));    \
    exit(1);                                                                                              \
  }

__global__ void add(int* p, int value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += value;
}
static int called = 0;
static void CUDART_CB on_host(void* data) { ++*static_cast<int*>(data); }
static void CUDART_CB on_done(cudaStream_t, cudaError_t status, void*) { called += status == cudaSuccess ? 10 : 100; }

int main() {
  const int n = 1000;
  int *d, *pinned;
  CHECK(cudaMalloc(&d, n * sizeof(int)));
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  cudaStream_t a, b;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  cudaEvent_t start, stop, forked, joined;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  CHECK(cudaMemsetAsync(d, 0, n * sizeof(int), a));
  CHECK(cudaEventRecord(start, a));
  add<<<(n + 255) / 256, 256, 0, a>>>(d, 1, n);
  CHECK(cudaEventRecord(stop, a));
  CHECK(cudaLaunchHostFunc(a, on_host, &called));
  CHECK(cudaStreamAddCallback(a, on_done, nullptr, 0));
  CHECK(cudaEventSynchronize(stop));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, start, stop));

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  add<<<(n + 255) / 256, 256, 0, a>>>(d, 2, n);
  CHECK(cudaEventRecord(forked, a));
  CHECK(cudaStreamWaitEvent(b, forked, 0));
  add<<<(n + 255) / 256, 256, 0, b>>>(d, 3, n);
  CHECK(cudaEventRecord(joined, b));
  CHECK(cudaStreamWaitEvent(a, joined, 0));
  CHECK(cudaMemcpyAsync(pinned, d, n * sizeof(int), cudaMemcpyDeviceToHost, a));
  CHECK(cudaStreamEndCapture(a, &graph));
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 4; ++i) CHECK(cudaGraphLaunch(exec, a));
  CHECK(cudaStreamSynchronize(a));
  bool ok = ms >= 0 && called == 11 && nodes == 3 && pinned[0] == 21 && pinned[n - 1] == 21 && cudaStreamQuery(a) == cudaSuccess;
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(d));
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
