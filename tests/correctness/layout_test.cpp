#include "harness/correctness/layout.h"

#include <gtest/gtest.h>

#include "tests/correctness/case.h"

namespace capstone {
namespace {

Problem matrices() {
  Problem problem;
  problem.id = "matrices";
  problem.symbols = {"m", "n"};
  problem.signature.push_back(test::tensor("a", Role::kInput, DType::kF32, {"m", "n"}));
  problem.signature.push_back(test::vector_problem(DType::kF32, InitNormal{}).signature[1]);  // a scalar
  problem.signature.push_back(test::tensor("flags", Role::kInput, DType::kU8, {"n"}));
  problem.signature.push_back(test::tensor("c", Role::kOutput, DType::kBF16, {"m"}));
  return problem;
}

const Sizes kSizes = {{"m", 3}, {"n", 129}};

TEST(Layout, LeavesScalarsOutAndKeepsSignatureOrder) {
  const auto layout = make_layout(matrices(), kSizes, 100);
  ASSERT_TRUE(layout.has_value()) << layout.error().what;
  ASSERT_EQ(layout->tensors.size(), 3u);
  EXPECT_EQ(layout->tensors[1].parameter, 2);
  EXPECT_EQ(layout->tensors[0].bytes, 3u * 129 * 4);
  EXPECT_EQ(layout->tensors[2].shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(layout->find(1), nullptr);
  EXPECT_EQ(layout->find(3), &layout->tensors[2]);
}

TEST(Layout, EveryBaseIsAlignedAndEveryGuardIsWide) {
  const auto layout = make_layout(matrices(), kSizes, 12345);
  ASSERT_TRUE(layout.has_value());
  for (const TensorSlot& slot : layout->tensors) EXPECT_EQ(slot.offset % Layout::kAlign, 0u);
  EXPECT_EQ(layout->workspace_offset % Layout::kAlign, 0u);
  ASSERT_EQ(layout->guards().size(), layout->tensors.size() + 2);
  for (const auto& [offset, bytes] : layout->guards()) EXPECT_GE(bytes, Layout::kGuard);
}

TEST(Layout, TensorsWorkspaceAndGuardsCoverEachByteOnce) {
  const auto layout = make_layout(matrices(), kSizes, 777);
  ASSERT_TRUE(layout.has_value());
  std::vector<int> covered(layout->bytes, 0);
  const auto cover = [&](std::size_t offset, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) ++covered.at(offset + i);
  };
  for (const TensorSlot& slot : layout->tensors) cover(slot.offset, slot.bytes);
  cover(layout->workspace_offset, layout->workspace_bytes);
  for (const auto& [offset, bytes] : layout->guards()) cover(offset, bytes);
  EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), static_cast<std::ptrdiff_t>(layout->bytes));
}

TEST(Layout, TheByteAfterATensorIsGuarded) {
  const auto layout = make_layout(matrices(), kSizes, 0);
  ASSERT_TRUE(layout.has_value());
  const auto guards = layout->guards();
  EXPECT_EQ(guards[1].first, layout->tensors[0].offset + layout->tensors[0].bytes);
}

TEST(Layout, NoWorkspaceStillGetsAnAddress) {
  const auto layout = make_layout(matrices(), kSizes, 0);
  ASSERT_TRUE(layout.has_value());
  EXPECT_GT(layout->workspace_offset, layout->tensors.back().offset);
  EXPECT_LT(layout->workspace_offset, layout->bytes);
}

TEST(Layout, TheWorkspaceLiesBehindAllThatAnImageHolds) {
  Problem problem = matrices();
  EXPECT_EQ(make_layout(problem, kSizes, 777, 0)->prepared_offset, 0u);
  problem.prepare = true;
  const auto layout = make_layout(problem, kSizes, 777, 333);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->prepared_bytes, 333u);
  EXPECT_EQ(layout->prepared_offset % Layout::kAlign, 0u);
  EXPECT_GE(layout->prepared_offset,
            layout->tensors.back().offset + layout->tensors.back().bytes + Layout::kGuard);
  EXPECT_GE(layout->workspace_offset, layout->prepared_offset + 333 + Layout::kGuard);
  EXPECT_EQ(layout->image_bytes(), layout->workspace_offset);
  const auto guards = layout->guards();
  ASSERT_EQ(guards.size(), layout->tensors.size() + 3);
  EXPECT_EQ(guards.back().first, layout->workspace_offset + 777);
  EXPECT_EQ(guards.back().first + guards.back().second, layout->bytes);
  EXPECT_FALSE(make_layout(problem, kSizes, 0, ~std::size_t{0}).has_value());
}

TEST(Layout, AbsurdSizesAreAnErrorAndNotAnOverflow) {
  EXPECT_FALSE(make_layout(matrices(), kSizes, ~std::size_t{0}).has_value());
  const auto layout =
      make_layout(matrices(), {{"m", std::int64_t{1} << 40}, {"n", std::int64_t{1} << 40}}, 0);
  ASSERT_FALSE(layout.has_value());
  EXPECT_NE(layout.error().what.find("a does not fit"), std::string::npos);
}

}  // namespace
}  // namespace capstone
