// Texture and surface objects. What a coordinate means comes from the formulas of the CUDA C++ Programming
// Guide, "Texture Fetching": T[i] of nearest-point sampling, and the mean of neighbours with 8 bits of
// fraction of linear filtering. They are written here again, one dimension at a time, in double.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                                       \
  if (cudaError_t e = (x)) {                                                                           \
    fprintf(stderr, "%s:%d %s: %s\n", __FILE__, __LINE__, cudaGetErrorName(e), cudaGetErrorString(e)); \
    exit(1);                                                                                           \
  }

constexpr int kWidth = 8, kHeight = 4, kDepth = 3, kSamples = 40;
static bool right = true;
static void expect(bool holds, const char* what) {
  if (!holds) printf("wrong: %s\n", what);
  right = right && holds;
}

__global__ void sample_1d(cudaTextureObject_t t, const float* x, float* out) {
  out[threadIdx.x] = tex1D<float>(t, x[threadIdx.x]);
}
__global__ void sample_2d(cudaTextureObject_t t, float* out, float first, float step) {
  tex2D(out + threadIdx.y * blockDim.x + threadIdx.x, t, first + step * threadIdx.x,
        first + step * threadIdx.y);
}
__global__ void sample_3d(cudaTextureObject_t t, float* out) {
  out[0] = tex3D<float>(t, 1.5f, 2.5f, 1.5f);
  out[1] = tex3D<float>(t, 2.0f, 3.0f, 2.0f);
  out[2] = tex3DLod<float>(t, 2.0f, 3.0f, 2.0f, 0);
}
__global__ void fetch(cudaTextureObject_t ints, cudaTextureObject_t bytes, int2* out, float4* colours) {
  out[threadIdx.x] = tex1Dfetch<int2>(ints, threadIdx.x - 1);
  colours[threadIdx.x] = tex1Dfetch<float4>(bytes, threadIdx.x);
}
__global__ void layers(cudaTextureObject_t t, float* out) {
  out[threadIdx.x] = tex2DLayered<float>(t, 2.5f, 1.5f, threadIdx.x);
}
__global__ void gather(cudaTextureObject_t t, float4* out) { *out = tex2Dgather<float4>(t, 3.0f, 2.0f); }
__global__ void transform(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  int x = threadIdx.x, y = threadIdx.y;
  float value = surf2Dread<float>(from, x * 4, y);
  float left;
  surf2Dread(&left, from, (x - 1) * 4, y, cudaBoundaryModeClamp);
  float above = surf2Dread<float>(from, x * 4, y - 1, cudaBoundaryModeZero);
  surf2Dwrite(value + 10 * left + 100 * above, to, x * 4, y);
  surf2Dwrite(-1.0f, to, x * 4, -5, cudaBoundaryModeZero);
}

static long index_of(long i, long n, cudaTextureAddressMode mode, bool normalized) {
  if (mode == cudaAddressModeBorder) return i < 0 || i >= n ? -1 : i;
  if (normalized && mode == cudaAddressModeWrap) return ((i % n) + n) % n;
  if (normalized && mode == cudaAddressModeMirror) {
    const long turn = (long)std::floor((double)i / n), rest = i - turn * n;
    return turn % 2 == 0 ? rest : n - 1 - rest;
  }
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}
static double expected_1d(const std::vector<float>& texels, double x, const cudaTextureDesc& how) {
  const long n = (long)texels.size();
  auto texel = [&](long i) {
    const long at = index_of(i, n, how.addressMode[0], how.normalizedCoords);
    return at < 0 ? (double)how.borderColor[0] : texels[at];
  };
  if (how.normalizedCoords) x *= n;
  if (how.filterMode == cudaFilterModePoint) return texel((long)std::floor(x));
  const double from = std::floor(x - 0.5), weight = std::round((x - 0.5 - from) * 256) / 256;
  return (1 - weight) * texel((long)from) + weight * texel((long)from + 1);
}

static cudaResourceDesc array_resource(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}
static cudaTextureObject_t texture_of(const cudaResourceDesc& resource, const cudaTextureDesc& how) {
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  return texture;
}

int main() {
  std::vector<float> texels(kWidth);
  for (int i = 0; i < kWidth; ++i) texels[i] = (float)(i * i + 1);
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  float *x, *out;
  CHECK(cudaMallocManaged(&x, kSamples * sizeof(float)));
  CHECK(cudaMallocManaged(&out, 64 * sizeof(float)));

  // One dimension: both filters, every address mode, both kinds of coordinates.
  cudaArray_t line;
  CHECK(cudaMallocArray(&line, &floats, kWidth));
  CHECK(cudaMemcpy2DToArray(line, 0, 0, texels.data(), kWidth * 4, kWidth * 4, 1, cudaMemcpyHostToDevice));
  for (int filter = 0; filter < 2; ++filter)
    for (int mode = 0; mode < 4; ++mode)
      for (int normalized = 0; normalized < 2; ++normalized) {
        cudaTextureDesc how = {};
        how.filterMode = filter ? cudaFilterModeLinear : cudaFilterModePoint;
        how.addressMode[0] = (cudaTextureAddressMode)mode;
        how.normalizedCoords = normalized;
        how.borderColor[0] = -3;
        const cudaTextureObject_t t = texture_of(array_resource(line), how);
        for (int i = 0; i < kSamples; ++i)
          x[i] = (i - 15 + 0.125f) * (normalized ? 0.125f * 0.5f * 1.5f : 0.75f);
        sample_1d<<<1, kSamples>>>(t, x, out);
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < kSamples; ++i)
          if (std::fabs(out[i] - expected_1d(texels, x[i], how)) > 1e-3) {
            printf("filter %d, mode %d, normalized %d: tex1D(%g) is %g instead of %g\n", filter, mode,
                   normalized, x[i], out[i], expected_1d(texels, x[i], how));
            right = false;
          }
        CHECK(cudaDestroyTextureObject(t));
      }

  // Two dimensions: pitched memory of bytes that become floats, and an array.
  unsigned char image[kHeight][kWidth];
  float plane[kHeight][kWidth];
  for (int r = 0; r < kHeight; ++r)
    for (int c = 0; c < kWidth; ++c) image[r][c] = (unsigned char)(10 * r + c), plane[r][c] = 10.0f * r + c;
  unsigned char* pitched;
  size_t pitch;
  CHECK(cudaMallocPitch(&pitched, &pitch, kWidth, kHeight));
  CHECK(cudaMemcpy2D(pitched, pitch, image, kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
  cudaResourceDesc rows = {};
  rows.resType = cudaResourceTypePitch2D;
  rows.res.pitch2D.devPtr = pitched;
  rows.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
  rows.res.pitch2D.width = kWidth;
  rows.res.pitch2D.height = kHeight;
  rows.res.pitch2D.pitchInBytes = pitch;
  cudaTextureDesc smooth = {};
  smooth.filterMode = cudaFilterModeLinear;
  smooth.readMode = cudaReadModeNormalizedFloat;
  smooth.addressMode[0] = smooth.addressMode[1] = cudaAddressModeClamp;
  const cudaTextureObject_t bytes_2d = texture_of(rows, smooth);
  sample_2d<<<1, dim3(3, 3)>>>(bytes_2d, out, 1.0f, 1.0f);
  CHECK(cudaDeviceSynchronize());
  for (int r = 0; r < 3; ++r)  // between four elements
    for (int c = 0; c < 3; ++c)
      expect(std::fabs(out[r * 3 + c] * 255 - (10 * r + c + 5.5)) < 1e-3, "tex2D of bytes");

  cudaArray_t grid, target;
  CHECK(cudaMallocArray(&grid, &floats, kWidth, kHeight, cudaArraySurfaceLoadStore));
  CHECK(cudaMallocArray(&target, &floats, kWidth, kHeight, cudaArraySurfaceLoadStore));
  CHECK(cudaMemcpyToArray(grid, 0, 0, plane, sizeof plane, cudaMemcpyHostToDevice));
  cudaTextureDesc plain = {};
  plain.addressMode[0] = plain.addressMode[1] = cudaAddressModeBorder;
  const cudaTextureObject_t floats_2d = texture_of(array_resource(grid), plain);
  sample_2d<<<1, dim3(4, 4)>>>(floats_2d, out, -0.5f, 1.0f);
  CHECK(cudaDeviceSynchronize());
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 4; ++c)
      expect(out[r * 4 + c] == (r && c ? plane[r - 1][c - 1] : 0), "tex2D with a border");
  float4* corners;
  CHECK(cudaMallocManaged(&corners, 8 * sizeof(float4)));
  gather<<<1, 1>>>(floats_2d, corners);
  CHECK(cudaDeviceSynchronize());
  expect(corners->x == 22 && corners->y == 23 && corners->z == 13 && corners->w == 12, "tex2Dgather");

  // Three dimensions, and layers.
  std::vector<float> volume(kWidth * kHeight * kDepth);
  for (size_t i = 0; i < volume.size(); ++i)
    volume[i] = (float)(i % kWidth + 10 * (i / kWidth % kHeight) + 100 * (i / (kWidth * kHeight)));
  cudaArray_t cube, stack;
  CHECK(cudaMalloc3DArray(&cube, &floats, make_cudaExtent(kWidth, kHeight, kDepth)));
  CHECK(cudaMalloc3DArray(&stack, &floats, make_cudaExtent(kWidth, kHeight, kDepth), cudaArrayLayered));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(volume.data(), kWidth * sizeof(float), kWidth, kHeight);
  copy.extent = make_cudaExtent(kWidth, kHeight, kDepth);
  copy.kind = cudaMemcpyHostToDevice;
  copy.dstArray = cube;
  CHECK(cudaMemcpy3D(&copy));
  copy.dstArray = stack;
  CHECK(cudaMemcpy3D(&copy));
  smooth.readMode = cudaReadModeElementType;
  const cudaTextureObject_t in_cube = texture_of(array_resource(cube), smooth),
                            in_stack = texture_of(array_resource(stack), plain);
  sample_3d<<<1, 1>>>(in_cube, out);
  layers<<<1, kDepth>>>(in_stack, out + 3);
  CHECK(cudaDeviceSynchronize());
  expect(out[0] == 121 && out[1] == 176.5f && out[2] == 176.5f, "tex3D");
  expect(out[3] == 12 && out[4] == 112 && out[5] == 212, "tex2DLayered");

  // Linear memory.
  int2* pairs;
  uchar4* colours;
  CHECK(cudaMallocManaged(&pairs, 8 * sizeof(int2)));
  CHECK(cudaMallocManaged(&colours, 8 * sizeof(uchar4)));
  for (int i = 0; i < 8; ++i) pairs[i] = {i, -i}, colours[i] = {0, 51, 255, (unsigned char)i};
  cudaResourceDesc linear = {};
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear.devPtr = pairs;
  linear.res.linear.desc = cudaCreateChannelDesc<int2>();
  linear.res.linear.sizeInBytes = 8 * sizeof(int2);
  cudaTextureDesc elements = {}, normalized = {};
  normalized.readMode = cudaReadModeNormalizedFloat;
  const cudaTextureObject_t ints = texture_of(linear, elements);
  linear.res.linear.devPtr = colours;
  linear.res.linear.desc = cudaCreateChannelDesc<uchar4>();
  linear.res.linear.sizeInBytes = 8 * sizeof(uchar4);
  const cudaTextureObject_t bytes = texture_of(linear, normalized);
  int2* got;
  CHECK(cudaMallocManaged(&got, 8 * sizeof(int2)));
  fetch<<<1, 8>>>(ints, bytes, got, corners);
  CHECK(cudaDeviceSynchronize());
  expect(got[0].x == 0 && got[3].x == 2 && got[3].y == -2, "tex1Dfetch of pairs");
  expect(corners[4].x == 0 && corners[4].y == 0.2f && corners[4].z == 1, "tex1Dfetch of bytes");

  // Surfaces: x counts bytes.
  cudaSurfaceObject_t from, to;
  const cudaResourceDesc of_grid = array_resource(grid), of_target = array_resource(target),
                         of_line = array_resource(line);
  CHECK(cudaCreateSurfaceObject(&from, &of_grid));
  CHECK(cudaCreateSurfaceObject(&to, &of_target));
  transform<<<1, dim3(kWidth, kHeight)>>>(from, to);
  float result[kHeight][kWidth];
  CHECK(cudaMemcpy2DFromArray(result, sizeof result[0], target, 0, 0, sizeof result[0], kHeight,
                              cudaMemcpyDeviceToHost));
  for (int r = 0; r < kHeight; ++r)
    for (int c = 0; c < kWidth; ++c)
      expect(result[r][c] == plane[r][c] + 10 * plane[r][c ? c - 1 : 0] + (r ? 100 * plane[r - 1][c] : 0),
             "surfaces");

  // What is wrong is refused.
  cudaTextureObject_t none;
  expect(cudaCreateSurfaceObject(&from, &of_line) == cudaErrorInvalidValue,
         "a surface of an array for textures");
  rows.res.pitch2D.desc = cudaCreateChannelDesc<int>();
  rows.res.pitch2D.width = 2;
  expect(cudaCreateTextureObject(&none, &rows, &smooth, nullptr) == cudaErrorInvalidFilterSetting,
         "a linear filter of integers");
  expect(cudaMemcpy2DToArray(line, 8, 0, texels.data(), kWidth * 4, kWidth * 4, 1, cudaMemcpyHostToDevice) ==
             cudaErrorInvalidValue,
         "a copy beyond an array");
  cudaGetLastError();
  CHECK(cudaFreeArray(grid));
  CHECK(cudaFreeArray(cube));
  puts(right ? "PASS" : "FAIL");
  return !right;
}
