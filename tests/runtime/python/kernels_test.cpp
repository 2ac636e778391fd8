#include "harness/runtime/python/kernels.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

using Labels = std::vector<std::string>;

TEST(LabelsOfKernels, KernelsOfItsOwnHaveNone) {
  EXPECT_EQ(labels_of_kernels(
                {"my_gemm(float*, float*)", "void fused<4>(int)", "add_kernel_0d1d2d", "Memset (Device)"}),
            Labels{});
}

TEST(LabelsOfKernels, ALibraryIsNamedOnce) {
  EXPECT_EQ(labels_of_kernels({"void cutlass::Kernel2<cutlass_80_simt_sgemm>(int)",
                               "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n", "void cutlass::Kernel2<other>(int)"}),
            Labels{"library: it launched cutlass::Kernel2, sm80_xmma_gemm_f32f32_f32f32_f32_tn_n"});
}

TEST(LabelsOfKernels, AKernelInCuteDslIsNotCalledALibrarys) {
  EXPECT_EQ(labels_of_kernels({"kernel_cutlass_softmax_row_tensorptrf32", "cutlass::Kernel2"}),
            (Labels{"CuTe-DSL, its own or a library's: it launched kernel_cutlass_softmax_row_tensorptrf32",
                    "library: it launched cutlass::Kernel2"}));
}

TEST(LabelsOfKernels, OperatorsAndCompiledKernelsAreToldApart) {
  EXPECT_EQ(labels_of_kernels({"void at::native::vectorized_elementwise_kernel<4, add>(int)",
                               "triton_poi_fused_add_relu_0", "mine"}),
            (Labels{"PyTorch operators: it launched at::native::vectorized_elementwise_kernel",
                    "torch.compile: it launched triton_poi_fused_add_relu_0"}));
}

TEST(LabelsOfKernels, AtMostFourNames) {
  EXPECT_EQ(labels_of_kernels({"at::native::a", "at::native::b", "at::native::c", "at::native::d",
                               "at::native::e", "at::native::f"}),
            Labels{"PyTorch operators: it launched at::native::a, at::native::b, at::native::c, "
                   "at::native::d and 2 more"});
}

TEST(LabelsOfKernels, NothingSeenIsSaid) {
  ASSERT_EQ(labels_of_kernels({}).size(), 1u);
  EXPECT_TRUE(labels_of_kernels({}).front().starts_with("note: which kernels it launches could not be seen"));
}

}  // namespace
}  // namespace capstone
