#include "harness/timing/roofline.h"

#include <gtest/gtest.h>

#include "harness/timing/device.h"

namespace capstone {
namespace {

TEST(Device, StudentsGpusAreInTheTable) {
  for (const char* name : {"NVIDIA A100-SXM4-40GB",
                           "NVIDIA A100 80GB PCIe",
                           "NVIDIA H100 80GB HBM3",
                           "NVIDIA H100 PCIe",
                           "NVIDIA H100 NVL",
                           "NVIDIA H200",
                           "NVIDIA B200",
                           "NVIDIA GB200",
                           "NVIDIA L4",
                           "NVIDIA L40S",
                           "NVIDIA A10",
                           "NVIDIA A30",
                           "Tesla T4",
                           "Tesla V100-SXM2-16GB",
                           "NVIDIA GeForce RTX 2080 Ti",
                           "NVIDIA GeForce RTX 3060",
                           "NVIDIA GeForce RTX 3090",
                           "NVIDIA GeForce RTX 4060",
                           "NVIDIA GeForce RTX 4090",
                           "NVIDIA GeForce RTX 5070",
                           "NVIDIA GeForce RTX 5090",
                           "NVIDIA RTX A6000",
                           "NVIDIA RTX 6000 Ada Generation",
                           "Orin"}) {
    const auto peaks = find_device(name);
    ASSERT_TRUE(peaks.has_value()) << name;
    EXPECT_GT(peaks->bandwidth, 1e11) << name;
    EXPECT_GT(peaks->fp32, 1e12) << name;
    EXPECT_TRUE(peaks->from_data_sheet);
    EXPECT_FALSE(peaks->source.empty()) << name;
  }
}

TEST(Device, ANameIsMatchedWhole) {
  EXPECT_NE(find_device("NVIDIA GeForce RTX 4070")->fp32, find_device("NVIDIA GeForce RTX 4070 Ti")->fp32);
  EXPECT_FALSE(find_device("NVIDIA GeForce RTX 4070 Laptop GPU").has_value());
}

TEST(Device, TheSmCountTellsNamesakesApart) {
  EXPECT_TRUE(find_device("NVIDIA GeForce RTX 3080", 68).has_value());
  EXPECT_FALSE(find_device("NVIDIA GeForce RTX 3080", 70).has_value()) << "the 12 GB card";
}

// Every row against first principles: 2 FLOPs a lane and clock, at a clock that a GPU can have.
TEST(Device, RatesImplyAPlausibleClock) {
  for (const char* name : {"NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe",
                           "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 5090", "NVIDIA L40S", "Tesla T4"}) {
    const auto peaks = find_device(name);
    ASSERT_TRUE(peaks.has_value());
    const bool narrow = std::string(name).find("A100") != std::string::npos ||
                        std::string(name).find("T4") != std::string::npos;
    const double clock = peaks->fp32 / (2.0 * (narrow ? 64 : 128) * peaks->sm_count);
    EXPECT_GT(clock, 1.2e9) << name;
    EXPECT_LT(clock, 2.7e9) << name;
  }
}

TEST(Device, AnUnknownGpuIsComputedFromItsAttributesAndSaysSo) {
  const DevicePeaks peaks = peaks_of({"NVIDIA Imaginary 1", 8, 0, 108, 1.41e9, 1.215e9, 5120, 40u << 20});
  EXPECT_NEAR(peaks.bandwidth, 1555e9, 1e9);  // an A100's attributes give an A100's data sheet
  EXPECT_NEAR(peaks.fp32, 19.5e12, 0.1e12);
  EXPECT_NEAR(peaks.fp16, 312e12, 1e12);
  EXPECT_NEAR(peaks.tf32, 156e12, 1e12);
  EXPECT_EQ(peaks.fp8, 0);
  EXPECT_FALSE(peaks.from_data_sheet);
  EXPECT_EQ(peaks.source, "computed from device attributes");
}

TEST(Device, AMigSliceHasItsShare) {
  DeviceAttributes slice{"NVIDIA A100-SXM4-40GB MIG 3g.20gb", 8, 0, 42, 1.41e9, 1.215e9, 5120, 20u << 20};
  const DevicePeaks peaks = peaks_of(slice);
  EXPECT_NEAR(peaks.bandwidth, 1555e9 / 2, 1e9);
  EXPECT_NEAR(peaks.fp32, 19.5e12 * 42 / 108, 1e10);
  EXPECT_TRUE(peaks.source.find("MIG") != std::string::npos);
}

TEST(Device, AClassWithoutUnitsOfItsOwnRunsOnStricterOnes) {
  const auto a100 = *find_device("NVIDIA A100-SXM4-80GB"), t4 = *find_device("Tesla T4");
  EXPECT_EQ(peak_of(a100, Precision::kFp8).units, "FP16 tensor");
  EXPECT_EQ(peak_of(t4, Precision::kBf16).units, "FP32 FMA");
  EXPECT_EQ(peak_of(a100, Precision::kFp32).flops, 19.5e12);
}

const DevicePeaks kH100 = *find_device("NVIDIA H100 80GB HBM3", 132);

TEST(Roofline, FewFlopsAByteAreMemoryBound) {
  const Roofline roof = roofline({1e9, 3.35e9}, 2.0, kH100, Precision::kFp32);
  EXPECT_EQ(roof.bound_by, "memory");
  EXPECT_NEAR(roof.floor_ms, 1.0, 1e-9);
  EXPECT_NEAR(roof.percent, 50.0, 1e-6);
  EXPECT_EQ(roof.peak, "3.35 TB/s HBM3 (data sheet)");
}

TEST(Roofline, AMatmulIsComputeBound) {
  const double n = 4096;
  const Roofline roof = roofline({2 * n * n * n, 12 * n * n}, 2.66, kH100, Precision::kFp32);
  EXPECT_EQ(roof.bound_by, "compute");
  EXPECT_NEAR(roof.percent, 77.2, 0.5);
  EXPECT_NE(roof.peak.find("FP32 FMA (data sheet)"), std::string::npos) << roof.peak;
}

TEST(Roofline, TinyWorkIsBoundByLatency) {
  EXPECT_EQ(roofline({1e3, 1e4}, 0.004, kH100, Precision::kFp32).bound_by, "latency");
  EXPECT_EQ(roofline({1e3, 1e8}, 0.1, kH100, Precision::kFp32, 0.05).bound_by, "latency");
}

TEST(Roofline, WithoutPeaksThereIsNoPercentage) {
  const Roofline roof = roofline({1e9, 1e9}, 1, DevicePeaks{}, Precision::kFp32);
  EXPECT_EQ(roof.percent, 0);
  EXPECT_TRUE(roof.peak.empty());
}

}  // namespace
}  // namespace capstone
