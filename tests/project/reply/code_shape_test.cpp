#include "harness/project/reply/code_shape.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

TEST(CodeShape, ADeclarationOrACallIsNoDefinition) {
  EXPECT_FALSE(shape_of("extern \"C\" void launch(float* y, void* w, cudaStream_t s);").defines_launch);
  EXPECT_FALSE(shape_of("int main() { launch(nullptr, nullptr, 0); }").defines_launch);
  EXPECT_FALSE(shape_of("// void launch(float* y) { }\nint a;").defines_launch);
  EXPECT_FALSE(shape_of("const char* s = \"void launch() {\";").defines_launch);
  EXPECT_TRUE(shape_of("extern \"C\"\nvoid launch(float* y,\n  void* w)\n{\n}").defines_launch);
}

TEST(CodeShape, CLinkageComesFromTheWordTheBlockOrTheDeclaration) {
  EXPECT_TRUE(shape_of("extern \"C\" void launch() {}").launch_is_extern_c);
  EXPECT_TRUE(shape_of("extern \"C\" {\nvoid launch() {}\n}").launch_is_extern_c);
  EXPECT_TRUE(shape_of("extern \"C\" void launch();\nvoid launch() {}").launch_is_extern_c);
  EXPECT_FALSE(shape_of("void launch() {}").launch_is_extern_c);
  EXPECT_FALSE(shape_of("extern \"C\" void other() {}\nvoid launch() {}").launch_is_extern_c);
}

TEST(CodeShape, NamesAtFileScope) {
  CodeShape s = shape_of(R"(
#define TILE 32
constexpr int kWarps = 8;
__constant__ float weights[64];
struct alignas(16) Pair { float a, b; };
using Vector = float4;
namespace detail { template <typename T, int N> __device__ T sum(T (&v)[N]) { T local = 0; return local; } }
template <int N> __global__ void __launch_bounds__(256) rows(const float* x) { int inner = 0; }
struct Pair make() { return {}; }
void after() {}
)");
  for (const char* name : {"TILE", "kWarps", "weights", "Pair", "Vector", "sum", "rows", "make", "after"})
    EXPECT_TRUE(s.defines.count(name)) << name;
  for (const char* name : {"local", "inner", "__launch_bounds__", "a", "T"})
    EXPECT_FALSE(s.defines.count(name)) << name;
  EXPECT_TRUE(s.has_kernel);
  EXPECT_FALSE(s.unfinished);
}

TEST(CodeShape, BothBranchesOfAConditionMayOpenTheSameBrace) {
  CodeShape s = shape_of("#if A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n}\nvoid g() {}\n");
  EXPECT_EQ(s.depth, 0);
  EXPECT_FALSE(s.unfinished);
  EXPECT_TRUE(s.defines.count("g"));
}

TEST(CodeShape, UnfinishedCode) {
  EXPECT_TRUE(shape_of("void f() { if (a) {").unfinished);
  EXPECT_TRUE(shape_of("/* never closed").unfinished);
  EXPECT_FALSE(shape_of("char c = '{'; const char* s = \"{\"; // {\nint n = 1'000;").unfinished);
  EXPECT_FALSE(shape_of("auto s = R\"x({ \" )x\"; void f() {}").unfinished);
  EXPECT_TRUE(shape_of("} void g() {}").inside_out);
}

TEST(CodeShape, CommentsThatStandForCode) {
  EXPECT_TRUE(shape_of("// ...\nint a;").leaves_out);
  EXPECT_TRUE(shape_of("/* ... rest of the kernel unchanged ... */").leaves_out);
  EXPECT_FALSE(shape_of("// the input is unchanged\nint a;").leaves_out);
  EXPECT_FALSE(shape_of("// tiles 0, 1, ... n-1 of the row\nint a;").leaves_out);
}

TEST(CodeShape, OnlyDirectives) {
  EXPECT_TRUE(shape_of("#include <cstdint>\n#define N 4\n").only_directives);
  EXPECT_FALSE(shape_of("#include <cstdint>\nvoid f() {}\n").only_directives);
}

}  // namespace
}  // namespace capstone
