// Atomic functions with order and scope, virtual memory management, attributes of streams, clock() in a
// kernel, and names that hide a dynamic shared array of namespace scope.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      std::printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                       \
    }                                                                 \
  } while (0)

extern __shared__ int values[];

__device__ int sum_of(const int* values, int n) {  // a parameter, not the array
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i];
  return sum;
}

__global__ void reversed(int* out) {
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

__global__ void hidden(int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = 2;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = sum_of(values, 32);
  {
    int values = 5;
    out[1] = values * 2;
  }
}

// Passes a number on from block to block: written plainly, published with release, awaited with acquire.
__global__ void relay(int* number, int* turn, float* total) {
  if (threadIdx.x == 0) {
    while (__nv_atomic_load_n(turn, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) != int(blockIdx.x)) {}
    *number = 3 * *number + 1;
    __nv_atomic_store_n(turn, int(blockIdx.x) + 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  }
  __nv_atomic_add(total, 0.5f, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  if (threadIdx.x == 1) {
    int expected = -1;
    __nv_atomic_compare_exchange_n(turn + 1, &expected, int(blockIdx.x), false, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_max(turn + 2, int(blockIdx.x), __NV_ATOMIC_SEQ_CST);
  }
}

__global__ void waits(long long* ticks) {  // 200 µs at 1 GHz
  const clock_t begin = clock();
  while (clock() - begin < 200000) {}
  ticks[0] = clock() - begin;
}

__global__ void fill(int* to, int value) { to[blockIdx.x * blockDim.x + threadIdx.x] = value + threadIdx.x; }

int main() {
  int *out, *state;
  float* total;
  long long* ticks;
  cudaMallocManaged(&out, 64 * sizeof(int));
  cudaMallocManaged(&state, 4 * sizeof(int));
  cudaMallocManaged(&total, sizeof(float));
  cudaMallocManaged(&ticks, sizeof(long long));

  reversed<<<1, 64, 64 * sizeof(int)>>>(out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && out[0] == 63 && out[63] == 0);
  hidden<<<1, 32>>>(out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && out[0] == 64 && out[1] == 10);

  state[0] = 1, state[1] = 0, state[2] = -1, state[3] = -1, *total = 0;
  relay<<<5, 32>>>(state, state + 1, total);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && state[0] == 364 && state[1] == 5 && state[2] >= 0 && state[3] == 4 && *total == 80.f);

  const clock_t before = clock();
  waits<<<1, 1>>>(ticks);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && ticks[0] >= 200000);
  CHECK(double(clock() - before) / CLOCKS_PER_SEC < 60);

  cudaStream_t stream, other;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaStreamAttrValue attribute = {}, found = {};
  attribute.accessPolicyWindow.base_ptr = out;
  attribute.accessPolicyWindow.num_bytes = 256;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &attribute) == cudaSuccess);
  CHECK(cudaStreamCopyAttributes(other, stream) == cudaSuccess);
  CHECK(cudaStreamGetAttribute(other, cudaStreamAttributeAccessPolicyWindow, &found) == cudaSuccess && found.accessPolicyWindow.base_ptr == out);

  // One piece of memory behind two addresses; the second range grows behind the first.
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t piece = 0;
  CHECK(cuMemGetAllocationGranularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS && piece > 0);
  CUdeviceptr range = 0;
  CHECK(cuMemAddressReserve(&range, 2 * piece, 0, 0, 0) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle memory;
  CHECK(cuMemCreate(&memory, piece + 1, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemCreate(&memory, piece, &properties, 0) == CUDA_SUCCESS);
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (int i = 0; i < 2; ++i) {
    CHECK(cuMemMap(range + i * piece, piece, 0, memory, 0) == CUDA_SUCCESS);
    CHECK(cuMemSetAccess(range + i * piece, piece, &access, 1) == CUDA_SUCCESS);
  }
  CHECK(cuMemRelease(memory) == CUDA_SUCCESS);
  int* const first = reinterpret_cast<int*>(range);
  int* const second = reinterpret_cast<int*>(range + piece);
  fill<<<2, 32>>>(second, 7);
  std::vector<int> host(64);
  CHECK(cudaMemcpy(host.data(), first, 64 * sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(host[0] == 7 && host[63] == 38);
  for (int i = 0; i < 2; ++i) CHECK(cuMemUnmap(range + i * piece, piece) == CUDA_SUCCESS);
  CHECK(cuMemAddressFree(range, 2 * piece) == CUDA_SUCCESS);

  // The driver API: the device, contexts, memory, streams and events.
  CUdevice device;
  CUcontext primary, own, current;
  char name[8];
  int major = 0, minor = 0;
  CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  CHECK(cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS && std::strlen(name) == 7);
  CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) == CUDA_SUCCESS &&
        major == 9);
  CHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device) == CUDA_SUCCESS &&
        minor == 1024);
  CHECK(cuDevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS &&
        cuCtxSetCurrent(primary) == CUDA_SUCCESS);
#if CUDA_VERSION >= 13000
  CHECK(cuCtxCreate(&own, nullptr, 0, device) == CUDA_SUCCESS);
#else
  CHECK(cuCtxCreate(&own, 0, device) == CUDA_SUCCESS);
#endif
  CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == own && own != primary);
  CUdeviceptr numbers;
  CUstream queue;
  CUevent event;
  int back[64] = {};
  CHECK(cuMemAlloc(&numbers, sizeof back) == CUDA_SUCCESS &&
        cuStreamCreate(&queue, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(cuMemsetD32(numbers, 7, 64) == CUDA_SUCCESS &&
        cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  reversed<<<1, 32, 32 * sizeof(int), (cudaStream_t)queue>>>((int*)numbers);
  CHECK(cuEventRecord(event, queue) == CUDA_SUCCESS && cuEventSynchronize(event) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH(back, numbers, sizeof back) == CUDA_SUCCESS && back[0] == 31 && back[31] == 0 &&
        back[32] == 7);
  CHECK(cuMemcpyDtoH(back, numbers, 2 * sizeof back) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(numbers) == CUDA_SUCCESS && cuStreamDestroy(queue) == CUDA_SUCCESS &&
        cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(cuCtxPopCurrent(&current) == CUDA_SUCCESS && current == own && cuCtxDestroy(own) == CUDA_SUCCESS);
  CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == primary);

  std::printf("PASS\n");
  return 0;
}
