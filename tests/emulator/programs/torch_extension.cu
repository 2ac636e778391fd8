// An extension of PyTorch with a main() that calls it: tensors of the stand-in, their views and types.
#include <torch/extension.h>

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstdio>

int failures = 0;
#define EXPECT(...) \
  if (!(__VA_ARGS__)) std::printf("line %d: %s\n", __LINE__, #__VA_ARGS__), ++failures

template <typename scalar_t>
__global__ void scaled_sum(const scalar_t* __restrict__ a, const scalar_t* __restrict__ b, scalar_t* c,
                           float factor, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) c[i] = static_cast<scalar_t>(static_cast<float>(a[i]) * factor + static_cast<float>(b[i]));
}

torch::Tensor op(torch::Tensor a, torch::Tensor b, double factor) {
  TORCH_CHECK(a.is_cuda() && b.is_cuda(), "op: tensors must be on the GPU");
  TORCH_CHECK(a.sizes() == b.sizes(), "op: sizes differ: ", a.sizes(), " and ", b.sizes());
  const at::cuda::CUDAGuard guard(a.device());
  a = a.contiguous(), b = b.contiguous();
  auto c = torch::empty_like(a);
  const int64_t n = a.numel();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::ScalarType::BFloat16, a.scalar_type(), "op", ([&] {
    scaled_sum<scalar_t><<<(n + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), c.data_ptr<scalar_t>(), factor, n);
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return c;
}

__global__ void column_sums(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> x,
                            torch::PackedTensorAccessor64<float, 1> sums) {
  float sum = 0;
  for (int row = 0; row < x.size(0); ++row) sum += x[row][threadIdx.x];
  sums[threadIdx.x] = sum;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("op", &op, "a * factor + b", py::arg("a"), py::arg("b"), py::arg("factor") = 2.0);
}

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "none";
}

int main() {
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCUDA);
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kFloat16, torch::kBFloat16}) {
    const auto a = torch::full({7, 33}, 1.5, options.dtype(type)), b = torch::ones({7, 33}, a.options());
    const auto c = op(a, b, 2.0);
    EXPECT(c.dtype() == type && c.sum().item<double>() == 7 * 33 * 4);
  }

  // Views share memory; arithmetic is rounded once.
  const auto x = torch::arange(24, options).reshape({4, 6});
  const auto part = x.t().narrow(0, 1, 3);
  EXPECT(!part.is_contiguous() && part.stride(0) == 1 && part.stride(1) == 6);
  part.fill_(-1);
  EXPECT(x.sum().item<float>() == 276 - (1 + 2 + 3 + 7 + 8 + 9 + 13 + 14 + 15 + 19 + 20 + 21) - 12);
  EXPECT(x.view({2, 2, 6}).permute({2, 0, 1}).flatten(1).sizes() == torch::IntArrayRef({6, 4}));
  EXPECT(torch::equal(x.transpose(0, 1).contiguous().t(), x));
  auto sums = torch::zeros({6}, options);
  column_sums<<<1, 6>>>(x.packed_accessor32<float, 2, torch::RestrictPtrTraits>(),
                        sums.packed_accessor64<float, 1>());
  EXPECT(torch::equal(sums, x.sum(0)));
  EXPECT((x.matmul(x.t()) - torch::mm(x, x.t())).abs().max().item<float>() == 0);
  EXPECT(torch::allclose(torch::cat({x, x * 2 + 1}, 1).mean(1, true),
                         (x.sum(1) * 3 / 12 + 0.5).unsqueeze(1)));
  const auto half = torch::ones({2}, options.dtype(torch::kHalf));
  EXPECT((half + half.to(torch::kFloat)).dtype() == torch::kFloat && (half + 1.5).dtype() == torch::kHalf);
  EXPECT(x.to(torch::kInt64).cpu().accessor<int64_t, 2>()[3][5] == 23);

  // Errors are PyTorch's.
  EXPECT(error_of([&] { op(x, sums, 1); }) == "op: sizes differ: [4, 6] and [6]");
  EXPECT(error_of([&] { op(x.cpu(), x, 1); }) == "op: tensors must be on the GPU");
  EXPECT(error_of([&] { op(x.to(torch::kInt), x, 1); }).find("\"op\" not implemented for 'Int'") == 0);
  EXPECT(error_of([&] { x.data_ptr<double>(); }) == "expected scalar type Double but found Float");
  EXPECT(error_of([&] { x.t().view({24}); }).find("view size is not compatible") == 0);
  EXPECT(error_of([&] { (void)x.size(2); }).find("Dimension out of range") == 0);
  const auto& exported = capstone_torch::functions().at("op");
  EXPECT(exported.arity == 3 && exported.names[2] == "factor");
  std::printf(failures ? "FAIL\n" : "PASS\n");
  return failures != 0;
}
