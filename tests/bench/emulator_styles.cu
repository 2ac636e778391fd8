// Eight styles of kernels, each also as the plain C++ loop that does the same work: scripts/bench_emulator.py
// builds this file twice, with g++ -O2 -DPLAIN (one core, no CUDA) and with the emulator, and compares.
// emulator_styles CASE REPEATS prints "seconds check": processor time of the best repeat, and a sum over the
// results.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#ifdef PLAIN

#else
#include <cuda_runtime.h>
#include <curand_kernel.h>

#include "products.cuh"

#endif

namespace {

constexpr int kElements = 1 << 23, kProduct = 512, kTile = 16, kSide = 2048, kBodies = 4096;
constexpr int kBins = 256, kPaths = 1 << 15, kDraws = 256;
struct Body {
  float x, y, z, mass;
};

// Memory that both sides see.
template <class T>
T* allocate(std::size_t count) {
  void* memory = nullptr;
#ifdef PLAIN
  memory = std::malloc(count * sizeof(T));
#else
  cudaMallocManaged(&memory, count * sizeof(T));
#endif
  return static_cast<T*>(memory);
}

struct Data {
  float* x = allocate<float>(kElements);
  float* y = allocate<float>(kElements);
  float* a = allocate<float>(kProduct * kProduct);
  float* b = allocate<float>(kProduct * kProduct);
  float* c = allocate<float>(kProduct * kProduct);
  float* in = allocate<float>(kSide * kSide);
  float* out = allocate<float>(kSide * kSide);
  Body* bodies = allocate<Body>(kBodies);
  float* forces = allocate<float>(kBodies);
  unsigned* bins = allocate<unsigned>(kBins);
  unsigned* hits = allocate<unsigned>(kPaths);
  float* sum = allocate<float>(1);
};

#ifdef PLAIN

void saxpy(Data& d) {
  for (int i = 0; i < kElements; ++i) d.y[i] = 2.0f * d.x[i] + d.y[i];
}
void naive_product(Data& d) {
  for (int i = 0; i < kProduct; ++i)
    for (int j = 0; j < kProduct; ++j) {
      float sum = 0;
      for (int k = 0; k < kProduct; ++k) sum += d.a[i * kProduct + k] * d.b[k * kProduct + j];
      d.c[i * kProduct + j] = sum;
    }
}
void tiled_product(Data& d) {
  for (int i0 = 0; i0 < kProduct; i0 += kTile)
    for (int j0 = 0; j0 < kProduct; j0 += kTile) {
      float sums[kTile][kTile] = {};
      for (int k0 = 0; k0 < kProduct; k0 += kTile)
        for (int i = 0; i < kTile; ++i)
          for (int j = 0; j < kTile; ++j)
            for (int k = 0; k < kTile; ++k)
              sums[i][j] += d.a[(i0 + i) * kProduct + k0 + k] * d.b[(k0 + k) * kProduct + j0 + j];
      for (int i = 0; i < kTile; ++i)
        for (int j = 0; j < kTile; ++j) d.c[(i0 + i) * kProduct + j0 + j] = sums[i][j];
    }
}
void reduction(Data& d) {
  float sum = 0;
  for (int i = 0; i < kElements; ++i) sum += d.x[i];
  *d.sum = sum;
}
void histogram(Data& d) {
  std::memset(d.bins, 0, kBins * sizeof *d.bins);
  for (int i = 0; i < kElements; ++i) ++d.bins[static_cast<unsigned>(d.x[i] * 16) % kBins];
}
void stencil(Data& d) {
  for (int y = 1; y < kSide - 1; ++y)
    for (int x = 1; x < kSide - 1; ++x) {
      const float* p = d.in + y * kSide + x;
      d.out[y * kSide + x] = 0.25f * (p[-1] + p[1] + p[-kSide] + p[kSide]);
    }
}
void bodies(Data& d) {
  for (int i = 0; i < kBodies; ++i) {
    float force = 0;
    for (int j = 0; j < kBodies; ++j) {
      const float dx = d.bodies[j].x - d.bodies[i].x, dy = d.bodies[j].y - d.bodies[i].y,
                  dz = d.bodies[j].z - d.bodies[i].z, square = dx * dx + dy * dy + dz * dz + 0.01f;
      force += d.bodies[j].mass * dx / (square * __builtin_sqrtf(square));
    }
    d.forces[i] = force;
  }
}
// The generator of curandState (XORWOW), seeded more simply.
void monte_carlo(Data& d) {
  for (unsigned path = 0; path < kPaths; ++path) {
    unsigned v[5] = {123456789u ^ path * 2654435761u, 362436069u, 521288629u, 88675123u, 5783321u};
    unsigned weyl = 6615241u;
    auto draw = [&] {
      const unsigned t = v[0] ^ (v[0] >> 2);
      v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = v[4];
      v[4] = (v[4] ^ (v[4] << 4)) ^ (t ^ (t << 1));
      weyl += 362437;
      return (v[4] + weyl) * 2.3283064e-10f;
    };
    unsigned hits = 0;
    for (int i = 0; i < kDraws; ++i) {
      const float x = draw(), y = draw();
      hits += x * x + y * y <= 1;
    }
    d.hits[path] = hits;
  }
}

#else

__global__ void saxpy_kernel(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
void saxpy(Data& d) { saxpy_kernel<<<kElements / 256, 256>>>(kElements, 2.0f, d.x, d.y); }

void naive_product(Data& d) {
  naive<<<dim3(kProduct / 16, kProduct / 16), dim3(16, 16)>>>(d.a, d.b, d.c, kProduct);
}

void tiled_product(Data& d) {
  tiled<kTile><<<dim3(kProduct / kTile, kProduct / kTile), dim3(kTile, kTile)>>>(d.a, d.b, d.c, kProduct);
}

__global__ void reduction_kernel(const float* x, float* sum, int n) {
  float mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  for (int step = 16; step; step /= 2) mine += __shfl_down_sync(0xffffffffu, mine, step);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}
void reduction(Data& d) {
  *d.sum = 0;
  reduction_kernel<<<1024, 256>>>(d.x, d.sum, kElements);
}

__global__ void histogram_kernel(const float* x, unsigned* bins, int n) {
  __shared__ unsigned local[kBins];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[static_cast<unsigned>(x[i] * 16) % kBins], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
void histogram(Data& d) {
  cudaMemset(d.bins, 0, kBins * sizeof *d.bins);
  histogram_kernel<<<256, kBins>>>(d.x, d.bins, kElements);
}

__global__ void stencil_kernel(const float* in, float* out, int side) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= side - 1 || y >= side - 1) return;
  const float* p = in + y * side + x;
  out[y * side + x] = 0.25f * (p[-1] + p[1] + p[-side] + p[side]);
}
void stencil(Data& d) { stencil_kernel<<<dim3(kSide / 32, kSide / 8), dim3(32, 8)>>>(d.in, d.out, kSide); }

__global__ void bodies_kernel(const Body* bodies, float* forces, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float force = 0;
  for (int j = 0; j < n; ++j) {
    const float dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y,
                dz = bodies[j].z - bodies[i].z,
                square = dx * dx + dy * dy + dz * dz + 0.01f;
    force += bodies[j].mass * dx / (square * sqrtf(square));
  }
  forces[i] = force;
}
void bodies(Data& d) { bodies_kernel<<<kBodies / 256, 256>>>(d.bodies, d.forces, kBodies); }

__global__ void monte_carlo_kernel(unsigned* hits, int draws) {
  const unsigned path = blockIdx.x * blockDim.x + threadIdx.x;
  curandState state;
  curand_init(1234 + path, 0, 0, &state);
  unsigned mine = 0;
  for (int i = 0; i < draws; ++i) {
    const float x = curand_uniform(&state), y = curand_uniform(&state);
    mine += x * x + y * y <= 1;
  }
  hits[path] = mine;
}
void monte_carlo(Data& d) { monte_carlo_kernel<<<kPaths / 256, 256>>>(d.hits, kDraws); }

#endif

template <class T>
double sum_of(const T* values, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}
double mean_of_bins(const unsigned* bins) {
  double sum = 0;
  for (int i = 0; i < kBins; ++i) sum += double(i) * bins[i];
  return sum / kElements;
}

}  // namespace

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 3;
  Data d;
  for (int i = 0; i < kElements; ++i) d.x[i] = float(i % 97) / 8;
  for (int i = 0; i < kProduct * kProduct; ++i) d.a[i] = float(i % 7), d.b[i] = float(i % 5);
  for (int i = 0; i < kSide * kSide; ++i) d.in[i] = float(i % 11), d.out[i] = 0;
  for (int i = 0; i < kBodies; ++i) d.bodies[i] = {float(i % 13), float(i % 17), float(i % 19), float(i % 3)};
  struct Case {
    const char* name;
    void (*run)(Data&);
    std::function<double()> check;
  };
  const std::vector<Case> cases{
      {"saxpy", saxpy, [&] { return sum_of(d.y, kElements); }},
      {"stencil", stencil, [&] { return sum_of(d.out, kSide * kSide); }},
      {"product, naive", naive_product, [&] { return sum_of(d.c, kProduct * kProduct); }},
      {"product, tiled", tiled_product, [&] { return sum_of(d.c, kProduct * kProduct); }},
      {"bodies", bodies, [&] { return sum_of(d.forces, kBodies); }},
      {"reduction, shuffles", reduction, [&] { return double(*d.sum); }},
      {"histogram, atomics", histogram, [&] { return mean_of_bins(d.bins); }},
      {"Monte Carlo, cuRAND", monte_carlo, [&] { return sum_of(d.hits, kPaths); }}};
  for (const Case& one : cases) {
    if (!*wanted) std::puts(one.name);
    if (std::strcmp(one.name, wanted) != 0) continue;
    double best = 1e9;
    for (int i = 0; i <= repeats; ++i) {  // the first is warm-up
      for (int k = 0; k < kElements; ++k) d.y[k] = 1;
      const std::clock_t begun = std::clock();
      one.run(d);
#ifndef PLAIN
      if (cudaError_t error = cudaDeviceSynchronize()) return std::puts(cudaGetErrorString(error)), 1;
#endif
      const double seconds = double(std::clock() - begun) / CLOCKS_PER_SEC;
      if (i > 0 && seconds < best) best = seconds;
    }
    std::printf("%.9g %.9g\n", best, one.check());
    return 0;
  }
  return *wanted ? 2 : 0;
}
