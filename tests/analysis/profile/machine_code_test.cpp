// Reading the reports of ptxas and cuobjdump.
#include "harness/analysis/profile/machine_code.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

constexpr const char* kPtxas =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function '_Z7advancePKfPKiS0_Pffll' for 'sm_90a'\n"
    "ptxas info    : Function properties for _Z7advancePKfPKiS0_Pffll\n"
    "    80 bytes stack frame, 96 bytes spill stores, 164 bytes spill loads\n"
    "ptxas info    : Used 32 registers, used 1 barriers, 80 bytes cumulative stack size, 16576 bytes smem\n"
    "ptxas info    : Compile time = 42.000 ms\n"
    "ptxas info    : Compiling entry function '_Z5sgemmILi16EEvPKfPf' for 'sm_90a'\n"
    "ptxas info    : Function properties for _Z5helperv\n"
    "    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
    "ptxas info    : Function properties for _Z5sgemmILi16EEvPKfPf\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 128 registers, used 1 barriers\n";

TEST(Ptxas, SaysRegistersSharedMemoryAndSpillsOfEachKernel) {
  const auto kernels = read_ptxas(kPtxas);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(*kernels[0].registers, 32);
  EXPECT_EQ(*kernels[0].static_shared_bytes, 16576);
  EXPECT_EQ(*kernels[0].spill_bytes, 260);
  EXPECT_EQ(*kernels[0].stack_bytes, 80);
  EXPECT_EQ(*kernels[1].registers, 128);
  EXPECT_EQ(*kernels[1].static_shared_bytes, 0);
  EXPECT_EQ(*kernels[1].spill_bytes, 0) << "a function's frame is not the kernel's";
  EXPECT_TRUE(read_ptxas("nvcc fatal: nothing\n").empty());
}

TEST(Sass, InstructionsAreCountedByWidthAndKernel) {
  auto kernels = read_ptxas(kPtxas);
  read_sass(
      "Function : _Z5sgemmILi16EEvPKfPf\n LDG.E.128.CONSTANT\n LDG.E.128\n LDG.E\n LDS.128\n STG.E.64\n "
      "LDG.E.U8\n HMMA.16816.F32\n HMMA.16816.F32\n"
      "Function : _Z7unknownv\n LDG.E\nFunction : _Z7advancePKfPKiS0_Pffll\n LDL\n",
      kernels);
  EXPECT_EQ(kernels[1].memory_instructions,
            (std::map<std::string, int>{
                {"LDG.128", 2}, {"LDG.32", 1}, {"LDG.8", 1}, {"LDS.128", 1}, {"STG.64", 1}}));
  EXPECT_EQ(kernels[1].tensor_instructions, (std::map<std::string, int>{{"HMMA", 2}}));
  EXPECT_EQ(kernels[0].memory_instructions, (std::map<std::string, int>{{"LDL.32", 1}}));
  EXPECT_TRUE(kernels[0].machine_code_seen);
}

// Names with a common prefix are distinguished: LDGSTS copies without using registers, LDSM feeds the tensor
// cores, LDGDEPBAR moves nothing.
TEST(Sass, InstructionsWhoseNamesBeginAlikeAreToldApart) {
  auto kernels = read_ptxas(kPtxas);
  read_sass(
      "Function : _Z5sgemmILi16EEvPKfPf\n LDGSTS.E.BYPASS.LTC128B.128\n LDGSTS.E.LTC128B\n LDGDEPBAR\n "
      "LDSM.16.MT88.4\n LDSM.16.M88.2\n STSM.16.M88\n LDC.64\n"
      " LD.E\n ST.E.128\n ATOMG.E.ADD.STRONG.GPU\n ATOMS.POPC.INC.32\n REDG.E.ADD.F64.RN.STRONG.GPU\n "
      "UTMALDG.2D\n HGMMA.64x256x16.F32.BF16\n IMMA.16832.S8.S8\n HFMA2.MMA\n",
      kernels);
  EXPECT_EQ(kernels[1].memory_instructions, (std::map<std::string, int>{{"LDGSTS.128", 1},
                                                                        {"LDGSTS.32", 1},
                                                                        {"LDSM.128", 1},
                                                                        {"LDSM.64", 1},
                                                                        {"STSM.32", 1},
                                                                        {"LD.32", 1},
                                                                        {"ST.128", 1},
                                                                        {"ATOMG.32", 1},
                                                                        {"ATOMS.32", 1},
                                                                        {"REDG.64", 1},
                                                                        {"UTMALDG", 1}}));
  EXPECT_EQ(kernels[1].tensor_instructions, (std::map<std::string, int>{{"HGMMA", 1}, {"IMMA", 1}}));
}

}  // namespace
}  // namespace capstone
