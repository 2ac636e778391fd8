// The hooks build: what it finds in a kernel that a GPU, or a plain run on the CPU, would let through.
#include <gtest/gtest.h>

#include "tests/unit/emulator/bench_of_kernels.h"

namespace capstone::test {
namespace {

Json finding_of(const std::string& source, std::size_t n = 64) {
  return failure_of(source, n, "forward", Flavour::kHooks);
}

TEST(Hooks, AMisalignedVectorLoadIsNamedAtItsLine) {
  const std::string source = R"(
__global__ void k(const float* x, float* y) {
  const float2 v = *reinterpret_cast<const float2*>(x + 1 + 2 * threadIdx.x);  // here
  y[threadIdx.x] = v.x + v.y;
}
extern "C" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) { k<<<1, 16>>>(x, y); }
)";
  const Json answer = finding_of(source);
  EXPECT_EQ(answer.value("kind", ""), "undefined_behaviour");
  EXPECT_NE(answer.value("message", "").find("misaligned access: a load of 8 bytes"), std::string::npos) << answer.dump();
  EXPECT_EQ(answer.value("line", 0), line_of(source, "// here"));
}

}  // namespace
}  // namespace capstone::test
