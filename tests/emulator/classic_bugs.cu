// Programs with one bug each, of those that courses know; the argument of main() chooses one. A comment
// "FIND" with its name and a text is at the line that `capstone run --check all` must name first, with that
// text. "right" has none of the bugs.
#include <cstdio>
#include <cstring>
#include <string>

namespace {

constexpr int kThreads = 64;

template <class T>
T* device_array(int count) {
  T* memory;
  cudaMalloc(&memory, count * sizeof(T));
  cudaMemset(memory, 0, count * sizeof(T));
  return memory;
}

// ---- reduction_without_barrier ----
__global__ void sum_block(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2)
    if (t < half) s[t] += s[t + half];  // FIND reduction_without_barrier: race on shared memory
  if (t == 0) *out = s[0];
}
void reduction_without_barrier() { sum_block<<<1, kThreads>>>(device_array<int>(kThreads), device_array<int>(1)); }

// ---- histogram_race ----
__global__ void histogram(const int* values, int* bins) {
  const int bin = values[blockIdx.x * blockDim.x + threadIdx.x] % 16;
  bins[bin] += 1;  // FIND histogram_race: race on
}
void histogram_race() { histogram<<<2, kThreads>>>(device_array<int>(2 * kThreads), device_array<int>(16)); }

// ---- stencil_off_by_one ----
__global__ void blur(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n)
    out[i] = (in[i - 1] + in[i] + in[i + 1]) / 3;  // FIND stencil_off_by_one: out of bounds
}
void stencil_off_by_one() { blur<<<2, 50>>>(device_array<float>(100), device_array<float>(100), 100); }

// ---- missing_bounds_check ----
__global__ void twice(float* a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] *= 2;  // FIND missing_bounds_check: out of bounds
}
void missing_bounds_check() { twice<<<2, kThreads>>>(device_array<float>(100)); }

// ---- copy_without_sizeof ----
__global__ void negate(const float* in, float* out) {
  out[threadIdx.x] = -in[threadIdx.x];  // FIND copy_without_sizeof: read of uninitialised memory
}
void copy_without_sizeof() {
  float host[kThreads] = {}, *in;
  cudaMalloc(&in, sizeof host);
  cudaMemcpy(in, host, kThreads, cudaMemcpyHostToDevice);
  negate<<<1, kThreads>>>(in, device_array<float>(kThreads));
}

// ---- copy_too_long ----
void copy_too_long() {
  static float host[2 * kThreads];
  float* in = device_array<float>(kThreads);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);  // FIND copy_too_long: the target has fewer than
}

// ---- wrong_direction ----
void wrong_direction() {
  float host[kThreads], *out = device_array<float>(kThreads);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyHostToDevice);  // FIND wrong_direction: wrong direction
}

// ---- host_pointer ----
void host_pointer() {
  auto* host = new float[kThreads];
  negate<<<1, kThreads>>>(host, device_array<float>(kThreads));  // FIND host_pointer: points to memory of the host
}

// ---- use_after_free ----
__global__ void fill(int* a) {
  a[threadIdx.x] = 1;  // FIND use_after_free: freed
}
void use_after_free() {
  int* a = device_array<int>(kThreads);
  cudaFree(a);
  fill<<<1, kThreads>>>(a);
}

// ---- double_free ----
void double_free() {
  int* a = device_array<int>(kThreads);
  cudaFree(a);
  cudaFree(a);  // FIND double_free: freed before
}

// ---- uninitialised_shared ----
__global__ void count_even(const int* in, int* out) {
  __shared__ int count;
  if (in[threadIdx.x] % 2 == 0) atomicAdd(&count, 1);  // FIND uninitialised_shared: read of uninitialised memory
  __syncthreads();
  if (threadIdx.x == 0) *out = count;
}
void uninitialised_shared() { count_even<<<1, kThreads>>>(device_array<int>(kThreads), device_array<int>(1)); }

// ---- divergent_barrier ----
__global__ void shift(int* a) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = a[t];
  if (t < 32) {
    __syncthreads();  // FIND divergent_barrier: was reached by 32 of 64 threads
    a[t] = s[t + 32];
  }
  __syncthreads();
  s[t] = 0;
}
void divergent_barrier() { shift<<<1, kThreads>>>(device_array<int>(kThreads)); }

// ---- missing_syncwarp ----
__global__ void reverse_warp(int* a) {
  __shared__ int s[32];
  s[threadIdx.x] = a[threadIdx.x];  // FIND missing_syncwarp: race on shared memory
  a[threadIdx.x] = s[31 - threadIdx.x];
}
void missing_syncwarp() { reverse_warp<<<1, 32>>>(device_array<int>(32)); }

// ---- shuffle_mask ----
__global__ void half_sum(int* a) {
  int value = a[threadIdx.x];
  if (threadIdx.x < 16) {
    for (int by = 8; by > 0; by /= 2)
      value += __shfl_down_sync(0xffffffff, value, by);
    a[threadIdx.x] = value;
  }
  __syncwarp();  // FIND shuffle_mask: lanes of one mask are in different warp functions
}
void shuffle_mask() { half_sum<<<1, 32>>>(device_array<int>(32)); }

// ---- shuffle_outside_mask ----
__global__ void sum_of_half(int* a) {
  a[threadIdx.x] += __shfl_xor_sync(0xffff, a[threadIdx.x], 1);  // FIND shuffle_outside_mask: does not name the calling lane
}
void shuffle_outside_mask() { sum_of_half<<<1, 32>>>(device_array<int>(32)); }

// ---- shared_overflow ----
__global__ void halo(const int* in, int* out) {
  __shared__ int s[kThreads];
  s[threadIdx.x + 1] = in[threadIdx.x];  // FIND shared_overflow: out of bounds
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
void shared_overflow() { halo<<<1, kThreads>>>(device_array<int>(kThreads), device_array<int>(kThreads)); }

// ---- misaligned_vector ----
__global__ void copy4(const float* in, float4* out) {
  out[threadIdx.x] = *reinterpret_cast<const float4*>(in + 4 * threadIdx.x);  // FIND misaligned_vector: misaligned
}
void misaligned_vector() { copy4<<<1, 8>>>(device_array<float>(40) + 1, device_array<float4>(8)); }

// ---- too_many_threads ----
void too_many_threads() {
  fill<<<1, 2048>>>(device_array<int>(2048));  // FIND too_many_threads: 2048 threads
}

// ---- unchecked_launch ----
__global__ void scratch(int* a) {
  extern __shared__ int s[];
  s[threadIdx.x] = a[threadIdx.x];
  a[threadIdx.x] = s[threadIdx.x];
}
void unchecked_launch() {
  scratch<<<1, kThreads, 60000>>>(device_array<int>(kThreads));  // FIND unchecked_launch: too much dynamic shared memory
}

// ---- race_of_streams ----
__global__ void add(int* a, int value) {
  a[threadIdx.x] += value;  // FIND race_of_streams: race on
}
void race_of_streams() {
  cudaStream_t first, second;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  int* a = device_array<int>(kThreads);
  cudaDeviceSynchronize();
  add<<<1, kThreads, 0, first>>>(a, 1);
  add<<<1, kThreads, 0, second>>>(a, 2);
  cudaDeviceSynchronize();
}

// ---- buffer_reused ----
void buffer_reused() {
  int* pinned;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMallocHost(&pinned, kThreads * sizeof(int));
  std::memset(pinned, 0, kThreads * sizeof(int));
  int* a = device_array<int>(kThreads);
  cudaMemcpyAsync(a, pinned, kThreads * sizeof(int), cudaMemcpyHostToDevice, stream);  // FIND buffer_reused: changed
  for (int i = 0; i < kThreads; ++i) pinned[i] = i;
  cudaStreamSynchronize(stream);
}

// ---- lock_in_a_warp ----
__global__ void locked(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {  // FIND lock_in_a_warp: did not end
  }
  ++*count;
  __syncwarp();
  atomicExch(lock, 0);
}
void lock_in_a_warp() {
  locked<<<1, 32>>>(device_array<int>(1), device_array<int>(1));
  cudaDeviceSynchronize();
}

// ---- index_overflow ----
__global__ void mark_planes(char* volume, int plane, int slices) {
  for (int slice = 0; slice < slices; ++slice)
    if (slice > 1) volume[slice * plane] = 1;  // FIND index_overflow: overflow
}
void index_overflow() { mark_planes<<<1, 1>>>(device_array<char>(1), 1 << 30, 4); }

// ---- missing_second_barrier ----
__global__ void tiles(const int* in, int* out) {
  __shared__ int s[kThreads];
  int sum = 0;
  for (int tile = 0; tile < 4; ++tile) {
    s[threadIdx.x] = in[tile * kThreads + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < kThreads; ++i) sum += s[i];  // FIND missing_second_barrier: race on shared memory
  }
  out[threadIdx.x] = sum;
}
void missing_second_barrier() { tiles<<<1, kThreads>>>(device_array<int>(4 * kThreads), device_array<int>(kThreads)); }

// ---- missing_fence ----
__global__ void total(int* parts, int* done, int* out) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = blockIdx.x;
  if (atomicAdd(done, 1) != gridDim.x - 1) return;
  for (int i = 0; i < gridDim.x; ++i) *out += parts[i];  // FIND missing_fence: race on
}
void missing_fence() { total<<<4, 32>>>(device_array<int>(4), device_array<int>(1), device_array<int>(1)); }

// ---- right ----
void right() {
  cudaStream_t first, second;
  cudaEvent_t added;
  cudaStreamCreate(&first);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreate(&added);
  int *a = device_array<int>(kThreads), *b = device_array<int>(kThreads), *pinned;
  cudaMallocHost(&pinned, kThreads * sizeof(int));
  cudaDeviceSynchronize();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kThreads; ++i) pinned[i] = i;
    cudaMemcpyAsync(a, pinned, kThreads * sizeof(int), cudaMemcpyHostToDevice, first);
    add<<<1, kThreads, 0, first>>>(a, 1);
    add<<<1, kThreads, 0, second>>>(b, 1);  // other memory
    cudaEventRecord(added, first);
    cudaStreamWaitEvent(second, added, 0);
    add<<<1, kThreads, 0, second>>>(a, 2);
    cudaMemcpyAsync(pinned, a, kThreads * sizeof(int), cudaMemcpyDeviceToHost, second);
    cudaStreamSynchronize(second);
  }
  add<<<1, kThreads, 0, first>>>(a, 1);
  add<<<1, kThreads>>>(a, 1);  // the default stream waits for `first`
  add<<<1, kThreads, 0, first>>>(a, 1);
  cudaStreamSynchronize(first);
  cudaFreeHost(pinned);
  cudaFree(a);
  cudaFree(b);
}

}  // namespace

int main(int, char** arguments) {
  const std::string name = arguments[1];
#define PROGRAM(bug) \
  if (name == #bug) bug()
  PROGRAM(reduction_without_barrier);
  PROGRAM(histogram_race);
  PROGRAM(stencil_off_by_one);
  PROGRAM(missing_bounds_check);
  PROGRAM(copy_without_sizeof);
  PROGRAM(copy_too_long);
  PROGRAM(wrong_direction);
  PROGRAM(host_pointer);
  PROGRAM(use_after_free);
  PROGRAM(double_free);
  PROGRAM(uninitialised_shared);
  PROGRAM(divergent_barrier);
  PROGRAM(missing_syncwarp);
  PROGRAM(shuffle_mask);
  PROGRAM(shuffle_outside_mask);
  PROGRAM(shared_overflow);
  PROGRAM(misaligned_vector);
  PROGRAM(too_many_threads);
  PROGRAM(unchecked_launch);
  PROGRAM(race_of_streams);
  PROGRAM(buffer_reused);
  PROGRAM(lock_in_a_warp);
  PROGRAM(index_overflow);
  PROGRAM(missing_second_barrier);
  PROGRAM(missing_fence);
  PROGRAM(right);
  cudaDeviceSynchronize();
  std::puts("end of the program");
}
