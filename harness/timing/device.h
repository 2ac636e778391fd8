#pragma once
// What a GPU can do at most, from its data sheet.
#include <cstddef>
#include <optional>
#include <string>

#include "harness/base/error.h"
#include "harness/model/problem.h"

namespace capstone {

/// What the driver says about a device (cudaDeviceProp and cudaDeviceGetAttribute).
struct DeviceAttributes {
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0;  ///< compute capability
  int sm_count = 0;
  double clock_hz = 0;         ///< highest SM clock
  double memory_clock_hz = 0;  ///< as reported: half the transfers a second
  int bus_bits = 0;
  std::size_t l2_bytes = 0;
};

/// Ceilings of one device; 0: the device has no such units, or their speed is not published.
struct DevicePeaks {
  std::string name;
  std::string memory;                                     ///< "HBM3"
  double bandwidth = 0;                                   ///< [B/s] of device memory
  double fp32 = 0;                                        ///< [FLOP/s] FMA pipes
  double tf32 = 0, fp16 = 0, bf16 = 0, fp8 = 0, fp4 = 0;  ///< [FLOP/s] tensor cores, dense, FP32 accumulation
  std::size_t l2_bytes = 0;
  int sm_count = 0;
  double memory_gb = 0;  ///< [1e9 B] 0: unknown
  std::string source;    ///< the document, or "computed from device attributes"
  bool from_data_sheet = false;
};

/// A ceiling on arithmetic and the units that give it: {66.9e12, "FP32 FMA"}.
struct ComputePeak {
  double flops = 0;
  std::string units;
};

/// The fastest arithmetic that a precision class allows on this device; where the class has no units of its
/// own the next stricter one's (FP8 on an A100 runs at FP16's rate).
ComputePeak peak_of(const DevicePeaks& peaks, Precision precision);

/// A row of the data-sheet table by the driver's device name. `sm_count` tells apart devices that share a
/// name; 0: unknown.
std::optional<DevicePeaks> find_device(const std::string& name, int sm_count = 0);

/// The row that a person means by "h100", "4090" or "rtx a6000": the first, in order of the table, whose name
/// holds all the words.
/// @error none does: the hint names devices that are known.
Result<DevicePeaks> find_device_like(const std::string& wanted);

/// Data-sheet peaks where the table has the device (those of the slice where it is a MIG slice), else
/// ceilings computed from clocks and widths, marked as such.
DevicePeaks peaks_of(const DeviceAttributes& attributes);

}  // namespace capstone
