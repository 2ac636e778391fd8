#include "harness/course/similarity.h"

#include <gtest/gtest.h>

#include "harness/base/text.h"

namespace capstone {
namespace {

const std::string kOne = R"(#include <cuda_runtime.h>
// Sum of a row.
__global__ void row_sum(const float* x, float* y, int cols) {
  __shared__ float part[256];
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += x[blockIdx.x * cols + c];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
)";

const std::string kOther = R"(template <typename T> __device__ T twice(T value) { return value + value; }
__global__ void scale(float4* data, long n, float by) {
  long at = blockIdx.x * long(blockDim.x) + threadIdx.x;
  while (at < n) {
    float4 v = data[at];
    v.x *= by; v.y *= by; v.z *= by; v.w *= by;
    data[at] = v;
    at += long(gridDim.x) * blockDim.x;
  }
  asm volatile("" ::: "memory");
}
)";

Likeness like(const std::string& a, const std::string& b) {
  return compare_sources(fingerprints(a), fingerprints(b), {});
}

TEST(Similarity, RenamedAndReformattedCodeIsTheSame) {
  std::string copy = replace_all(replace_all(replace_all(kOne, "sum", "total"), "part", "tmp"), "256", "512");
  copy = replace_all(replace_all(copy, "// Sum of a row.", "/* all\n mine */"), "  ", "\t\t");
  EXPECT_EQ(like(kOne, copy).share, 1);
}

TEST(Similarity, CopiedProseIsFoundWithoutQuestionsNumbersAndLayout) {
  const std::string questions =
      "## The head-to-head\n\n> Q: Which kernel is faster, and which mechanism explains "
      "the gap between the two?\n\n<!-- say what you saw\nand what you believe now -->\n\n";
  const std::string mine =
      "My kernel reads each row twice, because the maximum is needed before the first\n"
      "exponential; so it moves 2.25 times as many bytes as the model's kernel does.\n";
  const std::string copy =
      "MY KERNEL reads each row twice because the maximum is needed\nbefore the first exponential "
      "- so it moves 3.75 times as many bytes as the model's kernel does!\n";
  const std::string other =
      "Both kernels wait for memory. I tried four rows for each block, which was slower, and "
      "I do not know why; a profile would show whether the cache is the reason.\n";
  const auto share = [](const std::string& a, const std::string& b) {
    return compare_sources(prose_fingerprints(a), prose_fingerprints(b), {}).share;
  };
  EXPECT_GT(share(questions + mine, questions + copy), 0.9);
  EXPECT_EQ(share(questions + mine, questions + other), 0) << "the questions are everyone's";
  EXPECT_TRUE(prose_fingerprints(questions).empty());
  const auto prints = prose_fingerprints(questions + mine);
  ASSERT_FALSE(prints.empty());
  EXPECT_GE(prints.front().line, 8) << "lines are those of the file";
}

TEST(Similarity, OtherCodeSharesNothing) { EXPECT_EQ(like(kOne, kOther).share, 0); }

TEST(Similarity, ACopiedLoopIsFoundWithItsLines) {
  const std::size_t from = kOne.find("  for (int step"), to = kOne.find("  if (threadIdx.x == 0)");
  const std::string loop = replace_all(kOne.substr(from, to - from), "part", "mine");
  std::string mixed = kOther;
  mixed.insert(mixed.find("  asm volatile"), loop);
  const Likeness found = like(kOne, mixed);
  EXPECT_GT(found.share, 0.2);
  EXPECT_LT(found.share, 0.8);
  ASSERT_EQ(found.fragments.size(), 1u);
  EXPECT_GE(found.fragments[0].first_from, 8);
  EXPECT_LE(found.fragments[0].first_to, 13);
  EXPECT_GE(found.fragments[0].second_from, 9);
}

TEST(Similarity, AnyRunOfTheGuaranteedLengthIsFound) {
  // A run that both sources share, between different statements of five tokens each.
  std::string run, before, after;
  for (int i = 0; i < kGuaranteed; ++i) run += i % 3 == 0 ? "if " : i % 3 == 1 ? "( " : "while ";
  for (int i = 0; i < 20; ++i) before += "struct ; ", after += "switch { ";
  for (int shift = 0; shift < 12; ++shift) {
    std::string a = before, b;
    for (int i = 0; i < shift; ++i) b += "return + ";
    EXPECT_GT(like(a + run + after, b + run + before).share, 0) << shift;
  }
}

TEST(Similarity, ScaffoldDoesNotCount) {
  std::set<std::uint64_t> common;
  for (const Fingerprint& f : fingerprints(kOne)) common.insert(f.hash);
  EXPECT_EQ(compare_sources(fingerprints(kOne), fingerprints(kOne), common).share, 0);
}

TEST(Similarity, PairsComeMostAlikeFirstAndWithinTheirProblemOnly) {
  std::vector<NamedSource> sources{{"a", "p", kOne, {}},
                                   {"b", "p", kOther, {}},
                                   {"c", "p", replace_all(kOne, "sum", "s"), {}},
                                   {"d", "q", kOne, {}}};
  for (NamedSource& s : sources) s.prints = fingerprints(s.text);
  auto pairs = alike(sources, {}, 0.3);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].first, 0u);
  EXPECT_EQ(pairs[0].second, 2u);
}

TEST(Similarity, WhatAQuarterOfALargeClassHasIsCommon) {
  std::vector<NamedSource> sources;
  for (int i = 0; i < 20; ++i) sources.push_back({std::to_string(i), "p", kOne, fingerprints(kOne)});
  EXPECT_TRUE(alike(sources, {}, 0.3).empty());
}

TEST(Similarity, BrokenSourcesAreOnlyText) {
  for (const char* text : {"", "\"", "/*", "'\\", "#", "\xFF\xFE", "a"})
    EXPECT_TRUE(fingerprints(text).empty()) << text;
}

}  // namespace
}  // namespace capstone
