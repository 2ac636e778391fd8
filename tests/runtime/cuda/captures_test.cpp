// Two recordings of one launch(): the same, or what differs, said so that its author can mend it.
#include "harness/runtime/cuda/captures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace capstone {
namespace {

using Json = Recording::Json;
using ::testing::HasSubstr;
using ::testing::Not;

Json kernel(const std::string& params) {
  return {{"kind", "kernel"},
          {"function", "_Z5fusedILb1EEvPKf8Epilogue"},
          {"grid", {4, 1, 1}},
          {"block", {128, 1, 1}},
          {"shared", 0},
          {"params", params},
          {"sizes", {{0, 8}, {8, 16}, {24, 4}}},
          {"after", Json::array()}};
}
Json copy(std::size_t at) {
  return {{"kind", "copy"}, {"dst", {{"arena", 0}}}, {"src", {{"data", at}}},
          {"width", 4},     {"height", 1},           {"after", Json::array()}};
}
// A pointer, a struct of 16 bytes, an int: 28 bytes, of which `byte` is not 0.
std::string parameters(int byte = -1) {
  std::string text(2 * 28, '0');
  if (byte >= 0) text[2 * static_cast<std::size_t>(byte)] = '7';
  return text;
}

std::string difference_of(const Json& a, const Json& b, const std::string& a_data = {},
                          const std::string& b_data = {}) {
  const Json one = Json::array({a}), two = Json::array({b});
  return difference({one, a_data}, {two, b_data});
}

TEST(Recordings, ThatAreTheSameHaveNoDifference) {
  EXPECT_EQ(difference_of(kernel(parameters(3)), kernel(parameters(3))), "");
  EXPECT_EQ(difference_of(copy(0), copy(8), "same", "xxxxxxxxsame"), "")
      << "where the data lies does not count";
}

TEST(Recordings, BytesOfAStructAreNamedWithWhatToDoAboutPadding) {
  const std::string what = difference_of(kernel(parameters(20)), kernel(parameters(23)));
  EXPECT_THAT(what, HasSubstr("step 1: bytes 12 to 15 of parameter 2 (16 bytes)"));
  EXPECT_THAT(what, HasSubstr("where they are padding of a struct, put a member there and set it to 0"));
  EXPECT_THAT(what, HasSubstr("Kernel: void fused<true>(float const*, Epilogue)"));
}

TEST(Recordings, AScalarHasNoPadding) {
  const std::string what = difference_of(kernel(parameters()), kernel(parameters(24)));
  EXPECT_THAT(what, HasSubstr("byte 0 of parameter 3 (4 bytes)"));
  EXPECT_THAT(what, Not(HasSubstr("padding")));
}

TEST(Recordings, OtherStepsKernelsShapesAndDataAreNamed) {
  Json other = kernel(parameters()), wider = kernel(parameters()), cooperative = kernel(parameters());
  other["function"] = "plain";
  wider["grid"] = {8, 1, 1};
  cooperative["cooperative"] = true;
  EXPECT_EQ(difference_of(kernel(parameters()), other),
            "step 1: void fused<true>(float const*, Epilogue), then plain");
  EXPECT_EQ(difference_of(kernel(parameters()), wider),
            "step 1: its grid. Kernel: void fused<true>(float const*, Epilogue)");
  EXPECT_EQ(difference_of(kernel(parameters()), cooperative), "step 1: its attributes");
  EXPECT_EQ(difference_of(kernel(parameters()), copy(0), {}, "data"), "step 1: a kernel, then a copy");
  EXPECT_EQ(difference_of(copy(0), copy(0), "1234", "1235"), "step 1: it copies other data of the host");
  const Json one = Json::array({copy(0)}), none = Json::array();
  EXPECT_EQ(difference({one, "data"}, {none, ""}), "1 steps, then 0");
}

struct Padded {
  const float *bias, *gamma, *beta;
  float epsilon;  // four bytes of padding follow
};
__attribute__((noinline)) void leave_behind(char what) {
  volatile char junk[8192];
  for (volatile char& byte : junk) byte = what;
}
__attribute__((noinline)) void bytes_of(Padded argument, std::string& bytes) {
  bytes.assign(reinterpret_cast<const char*>(&argument), sizeof argument);
}
__attribute__((noinline)) void pass_a_struct(const float* values, std::string& bytes) {
  bytes_of(Padded{values, values, values, 1.5f}, bytes);
}

TEST(WipedStack, MakesThePaddingOfAnArgumentTheSame) {
  const float values = 0;
  std::string dirty[2], wiped[2];
  for (const int i : {0, 1}) {
    leave_behind(i ? 0x2a : 0x55);
    pass_a_struct(&values, dirty[i]);
    leave_behind(i ? 0x2a : 0x55);
    wipe_stack();
    pass_a_struct(&values, wiped[i]);
  }
  if (dirty[0] == dirty[1])
    GTEST_SKIP() << "this build's frames keep arguments away from what was there before";
  EXPECT_EQ(wiped[0], wiped[1]);
}

}  // namespace
}  // namespace capstone
