#include "harness/base/symbols.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

TEST(KernelName, IsWithoutParametersAndReturnType) {
  EXPECT_EQ(kernel_name("void sgemm<16, (int)4>(const float *, float)"), "sgemm<16, (int)4>");
  EXPECT_EQ(kernel_name("copy"), "copy");
  EXPECT_EQ(kernel_name("(anonymous namespace)::add(int)"), "add");
  EXPECT_EQ(kernel_name("void <unnamed>::add<<unnamed>::Shape<4>>(int)"), "add<Shape<4>>")
      << "as ncu writes it";
}

TEST(Symbol, IsReadAsItsAuthorWroteIt) {
  EXPECT_EQ(demangled("_Z5sgemmILi16EEvPKfPf"), "sgemm<16>");
  EXPECT_EQ(demangled("plain_c"), "plain_c");
}

// Returns void and is in an unnamed namespace, like the kernels of most replies.
TEST(Symbol, OfATemplateInAnUnnamedNamespaceKeepsItsName) {
  EXPECT_EQ(demangled("_ZN12_GLOBAL__N_17softmaxILi4EEEvPKfPfi"), "softmax<4>");
}

TEST(Symbol, OfNestedTemplatesClosesThemAsPeopleDo) {
  EXPECT_EQ(demangled("_Z5fusedI5ShapeILi128ELi64EEEvPKf"), "fused<Shape<128, 64>>");
}

TEST(KernelName, WithoutScopeAndArgumentsIsItsBase) {
  EXPECT_EQ(base_name("capstone::sgemm<ns::Shape<16>>"), "sgemm");
  EXPECT_EQ(base_name("copy"), "copy");
}

TEST(KernelName, IsTheSameForCompilerProfilerAndPeople) {
  EXPECT_TRUE(same_kernel("fused<true, 4>", "fused<(bool)1, (int)4>"));
  EXPECT_TRUE(same_kernel("fused<false,-4,16u>", "fused<(bool)0, (int)-4, (unsigned int)16>"));
  EXPECT_TRUE(same_kernel("gemm<Shape<128, 64>>", "gemm<Shape<(int)128, (int)64>>"));
  EXPECT_TRUE(same_kernel("sgemm<Shape<128, 1>, 1>", "sgemm<Shape<128, 1>, true>"));
  EXPECT_FALSE(same_kernel("sgemm<Shape<128, 1>, 1>", "sgemm<Shape<128, 1>, false>"));
  EXPECT_FALSE(same_kernel("fused<true>", "fused<false>"));
  EXPECT_FALSE(same_kernel("fused<16>", "fused<1>"));
  EXPECT_FALSE(same_kernel("fused", "fused<1>"));
}

}  // namespace
}  // namespace capstone
