// What the tensor-core instructions in a kernel's machine code say about the precision that it computes in.
#include "harness/judge/tensor_label.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

TEST(TensorLabel, AnyInstructionInAProblemInFp32NeedsAnExplanation) {
  EXPECT_EQ(tensor_label(Precision::kFp32, "HMMA"),
            "needs an explanation: tensor-core instructions (HMMA) in a problem that is judged in fp32");
  EXPECT_EQ(tensor_label(Precision::kFp32, ""), std::nullopt);
}

TEST(TensorLabel, SixteenBitsAloneInAProblemInFp8AreNamed) {
  EXPECT_EQ(
      tensor_label(Precision::kFp8, "HGMMA, HMMA"),
      "16-bit tensor-core instructions (HGMMA, HMMA) and none for fp8, in a problem that is judged in fp8");
  EXPECT_NE(tensor_label(Precision::kFp8, "UTCHMMA"), std::nullopt);
  for (const char* fp8 : {"QGMMA", "QMMA", "HMMA, QMMA", "HGMMA, QGMMA", "UTCQMMA"})
    EXPECT_EQ(tensor_label(Precision::kFp8, fp8), std::nullopt) << fp8;
  EXPECT_EQ(tensor_label(Precision::kFp8, ""), std::nullopt);  // no product at all, or no tool to see one
}

TEST(TensorLabel, OtherPrecisionsSayNothing) {
  for (const Precision precision : {Precision::kTf32, Precision::kFp16, Precision::kBf16, Precision::kFp4})
    EXPECT_EQ(tensor_label(precision, "HGMMA"), std::nullopt);
}

}  // namespace
}  // namespace capstone
