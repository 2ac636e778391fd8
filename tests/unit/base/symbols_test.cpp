#include <gtest/gtest.h>

#include "harness/base/symbols.h"

namespace capstone {
namespace {

TEST(KernelName, IsWithoutParametersAndReturnType) {
  EXPECT_EQ(kernel_name("void sgemm<16, (int)4>(const float *, float)"), "sgemm<16, (int)4>");
  EXPECT_EQ(kernel_name("copy"), "copy");
  EXPECT_EQ(kernel_name("(anonymous namespace)::add(int)"), "add");
}

TEST(Symbol, IsReadAsItsAuthorWroteIt) {
  EXPECT_EQ(demangled("_Z5sgemmILi16EEvPKfPf"), "sgemm<16>");
  EXPECT_EQ(demangled("plain_c"), "plain_c");
}

// Returns void and lies in an unnamed namespace, as the kernels of most replies do.
TEST(Symbol, OfATemplateInAnUnnamedNamespaceKeepsItsName) {
  EXPECT_EQ(demangled("_ZN12_GLOBAL__N_17softmaxILi4EEEvPKfPfi"), "softmax<4>");
}

}  // namespace
}  // namespace capstone
