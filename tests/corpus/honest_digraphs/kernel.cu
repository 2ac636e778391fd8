// Honest: Writes braces and brackets as digraphs, in a kernel whose launch comes out of a macro over two lines.
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

constexpr int kThreads = 32;
static const char* const kUsage = R"x(rows<<<1, 2>>>(<%); __shared__ int a<:3:>;)x";
#define LAUNCH rows\
<<< /* a block a row */ dim3(unsigned(r)), kThreads << 0 >> 0, 0, stream >>>

namespace softmax <%
__global__ void rows(const float* x, float* y, int64_t columns) <%
  __shared__ float part<:kThreads:>, result<:2:>;
  const float* in = x + blockIdx.x * columns;
  float most = -FLT_MAX, sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) most = fmaxf(most, in<:i:>);
  part<:threadIdx.x:> = most;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (float value : part) most = fmaxf(most, value);
    result[0] = most;
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) sum += expf(in[i] - result[0]);
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) <%
    sum = 0;
    for (float value : part) sum += value;
    result<:1] = sum;
  %>
  __syncthreads();
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) y[blockIdx.x * columns + i] = expf(in[i] - result[0]) / result[1];
%>
}
using softmax::rows;

extern "C" void launch(const float* x, float* y, int64_t r, int64_t columns, void* /*workspace*/, cudaStream_t stream) {
  if (kUsage[0] == 'r') LAUNCH(x, y, columns);
}
