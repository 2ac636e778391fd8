#include "harness/timing/device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr double kGB = 1e9, kTera = 1e12;

constexpr const char* kVolta = "NVIDIA V100 data sheet (Jan 2020)";
constexpr const char* kTuring = "NVIDIA Turing GPU architecture whitepaper, WP-09183-001";
constexpr const char* kT4 = "NVIDIA T4 data sheet";
constexpr const char* kA100 = "NVIDIA A100 data sheet";
constexpr const char* kA30 = "NVIDIA A30 data sheet";
constexpr const char* kA10 = "NVIDIA A10 data sheet";
constexpr const char* kA40 = "NVIDIA A40 data sheet";
constexpr const char* kA6000 = "NVIDIA RTX A6000 data sheet; NVIDIA Ampere GA102 whitepaper";
constexpr const char* kGA102 = "NVIDIA Ampere GA102 GPU architecture whitepaper V2";
constexpr const char* kGA106 =
    "NVIDIA GeForce RTX 3060 specifications; rates by SM as in the GA102 whitepaper V2";
constexpr const char* kH100 = "NVIDIA H100 data sheet; NVIDIA H100 whitepaper";
constexpr const char* kH200 = "NVIDIA H200 data sheet";
constexpr const char* kGH200 = "NVIDIA GH200 data sheet";
constexpr const char* kB200 =
    "NVIDIA HGX B200 data sheet, per GPU; NVIDIA Blackwell architecture brief; L2: Tuning Guide, 1.4.2.2";
// 152 multiprocessors: what cudaGetDeviceProperties() gives in published logs of several GB200 systems.
constexpr const char* kGB200 =
    "NVIDIA GB200 NVL72 data sheet, per GPU: half of a superchip; L2: as the B200, the same chip";
constexpr const char* kL4 = "NVIDIA L4 data sheet";
constexpr const char* kL40 = "NVIDIA L40 data sheet";
constexpr const char* kL40S = "NVIDIA L40S data sheet";
constexpr const char* kAda = "NVIDIA Ada GPU architecture whitepaper V2";
constexpr const char* kAdaGeForce =
    "NVIDIA GeForce RTX 40 specifications; rates by SM as in the Ada whitepaper V2";
constexpr const char* kAda6000 = "NVIDIA RTX 6000 Ada data sheet";
constexpr const char* kBlackwell = "NVIDIA RTX Blackwell GPU architecture whitepaper";
constexpr const char* kPro6000 =
    "NVIDIA RTX PRO 6000 Blackwell data sheet; NVIDIA RTX PRO Blackwell whitepaper";
constexpr const char* kOrin = "NVIDIA Jetson AGX Orin data sheet, 64 GB module";

/// One device. Rates in TFLOP/s, dense, FP32 accumulation (GeForce halves its tensor rate there); 0: no such
/// units.
struct Row {
  const char* name;  ///< what the driver reports, without "NVIDIA "
  int sm;
  double memory_gb;
  double bandwidth_gbs;
  const char* memory;
  double fp32, tf32, fp16, bf16, fp8, fp4;
  double l2_mib;
  const char* source;
};

// Sorted by generation. A name ends at a word: "H100 PCIe" is not "H100 PCIe 96GB", which has its own row or
// none.
// clang-format off
constexpr Row kTable[] = {
    // name
    //    SM   GB   GB/s  memory    fp32   tf32   fp16   bf16    fp8    fp4    L2  source
    {"Tesla V100-SXM2-16GB",
          80,  16,   900, "HBM2",   15.7,     0,   125,     0,     0,     0,    6, kVolta},
    {"Tesla V100-SXM2-32GB",
          80,  32,   900, "HBM2",   15.7,     0,   125,     0,     0,     0,    6, kVolta},
    {"Tesla V100-PCIE-16GB",
          80,  16,   900, "HBM2",   14.0,     0,   112,     0,     0,     0,    6, kVolta},
    {"Tesla V100-PCIE-32GB",
          80,  32,   900, "HBM2",   14.0,     0,   112,     0,     0,     0,    6, kVolta},
    {"Tesla T4",
          40,  16,   320, "GDDR6",   8.1,     0,    65,     0,     0,     0,    4, kT4},
    {"GeForce RTX 2060",
          30,   6,   336, "GDDR6",  6.45,     0,  25.8,     0,     0,     0,    3, kTuring},
    {"GeForce RTX 2070",
          36,   8,   448, "GDDR6",  7.47,     0,  29.9,     0,     0,     0,    4, kTuring},
    {"GeForce RTX 2080",
          46,   8,   448, "GDDR6", 10.07,     0,  40.3,     0,     0,     0,    4, kTuring},
    {"GeForce RTX 2080 Ti",
          68,  11,   616, "GDDR6", 13.45,     0,  53.8,     0,     0,     0,  5.5, kTuring},

    {"A100-SXM4-40GB",
         108,  40,  1555, "HBM2",   19.5,   156,   312,   312,     0,     0,   40, kA100},
    {"A100-PCIE-40GB",
         108,  40,  1555, "HBM2",   19.5,   156,   312,   312,     0,     0,   40, kA100},
    {"A100-SXM4-80GB",
         108,  80,  2039, "HBM2e",  19.5,   156,   312,   312,     0,     0,   40, kA100},
    {"A100 80GB PCIe",
         108,  80,  1935, "HBM2e",  19.5,   156,   312,   312,     0,     0,   40, kA100},
    {"A30",
          56,  24,   933, "HBM2",   10.3,    82,   165,   165,     0,     0,   24, kA30},
    {"A10",
          72,  24,   600, "GDDR6",  31.2,  62.5,   125,   125,     0,     0,    6, kA10},
    {"A40",
          84,  48,   696, "GDDR6",  37.4,  74.8, 149.7, 149.7,     0,     0,    6, kA40},
    {"RTX A6000",
          84,  48,   768, "GDDR6",  38.7,  77.4, 154.8, 154.8,     0,     0,    6, kA6000},
    {"GeForce RTX 3060",
          28,  12,   360, "GDDR6",  12.7,  12.7,  25.5,  25.5,     0,     0,    3, kGA106},
    {"GeForce RTX 3060 Ti",
          38,   8,   448, "GDDR6",  16.2,  16.2,  32.4,  32.4,     0,     0,    4, kGA106},
    {"GeForce RTX 3070",
          46,   8,   448, "GDDR6",  20.3,  20.3,  40.6,  40.6,     0,     0,    4, kGA102},
    {"GeForce RTX 3070 Ti",
          48,   8,   608, "GDDR6X", 21.7,  21.7,  43.5,  43.5,     0,     0,    4, kGA106},
    {"GeForce RTX 3080",
          68,  10,   760, "GDDR6X", 29.8,  29.8,  59.5,  59.5,     0,     0,    5, kGA102},
    {"GeForce RTX 3080 Ti",
          80,  12,   912, "GDDR6X", 34.1,  34.1,  68.2,  68.2,     0,     0,    6, kGA106},
    {"GeForce RTX 3090",
          82,  24,   936, "GDDR6X", 35.6,  35.6,    71,    71,     0,     0,    6, kGA102},
    {"GeForce RTX 3090 Ti",
          84,  24,  1008, "GDDR6X", 40.0,  40.0,    80,    80,     0,     0,    6, kAda},
    {"Orin",
          16,  64, 204.8, "LPDDR5",  5.3,     0,  42.5,     0,     0,     0,    4, kOrin},

    {"L4",
          58,  24,   300, "GDDR6",  30.3,    60,   121,   121, 242.5,     0,   48, kL4},
    {"L40",
         142,  48,   864, "GDDR6",  90.5,  90.5, 181.1, 181.1,   362,     0,   96, kL40},
    {"L40S",
         142,  48,   864, "GDDR6",  91.6,   183,   362,   362,   733,     0,   96, kL40S},
    {"RTX 6000 Ada Generation",
         142,  48,   960, "GDDR6",  91.1, 182.1, 364.2, 364.2, 728.5,     0,   96, kAda6000},
    {"GeForce RTX 4060",
          24,   8,   272, "GDDR6",  15.1,  15.1,  30.2,  30.2,  60.5,     0,   24, kAdaGeForce},
    {"GeForce RTX 4060 Ti",
          34,   8,   288, "GDDR6",  22.1,  22.1,  44.1,  44.1,  88.2,     0,   32, kAdaGeForce},
    {"GeForce RTX 4070",
          46,  12,   504, "GDDR6X", 29.1,  29.1,  58.3,  58.3, 116.6,     0,   36, kAdaGeForce},
    {"GeForce RTX 4070 SUPER",
          56,  12,   504, "GDDR6X", 35.5,  35.5,    71,    71,   142,     0,   48, kAdaGeForce},
    {"GeForce RTX 4070 Ti",
          60,  12,   504, "GDDR6X", 40.1,  40.1,  80.2,  80.2, 160.4,     0,   48, kAdaGeForce},
    {"GeForce RTX 4070 Ti SUPER",
          66,  16,   672, "GDDR6X", 44.1,  44.1,  88.2,  88.2, 176.4,     0,   48, kAdaGeForce},
    {"GeForce RTX 4080",
          76,  16, 716.8, "GDDR6X", 48.7,  48.7,  97.5,  97.5, 194.9,     0,   64, kAda},
    {"GeForce RTX 4080 SUPER",
          80,  16,   736, "GDDR6X", 52.2,  52.2, 104.4, 104.4, 208.9,     0,   64, kAdaGeForce},
    {"GeForce RTX 4090",
         128,  24,  1008, "GDDR6X", 82.6,  82.6, 165.2, 165.2, 330.3,     0,   72, kAda},

    {"H100 80GB HBM3",
         132,  80,  3350, "HBM3",   66.9, 494.7, 989.4, 989.4, 1978.9,    0,   50, kH100},
    {"H100 PCIe",
         114,  80,  2000, "HBM2e",  51.2, 378.1, 756.5, 756.5, 1513,      0,   50, kH100},
    {"H100 NVL",
         132,  94,  3938, "HBM3",   60.3, 417.5, 835.5, 835.5, 1670.5,    0,   50, kH100},
    {"H200",
         132, 141,  4800, "HBM3e",  66.9, 494.7, 989.4, 989.4, 1978.9,    0,   50, kH200},
    {"H200 NVL",
         132, 141,  4800, "HBM3e",  60.3, 417.5, 835.5, 835.5, 1670.5,    0,   50, kH200},
    {"GH200 480GB",
         132,  96,  4000, "HBM3",   66.9, 494.7, 989.4, 989.4, 1978.9,    0,   50, kGH200},
    {"B200",
         148, 180,  7700, "HBM3e",    75,  1100,  2250,  2250,  4500,  9000,  126, kB200},
    {"GB200",
         152, 186,  8000, "HBM3e",    80,  1250,  2500,  2500,  5000, 10000,  126, kGB200},

    {"RTX PRO 6000 Blackwell Workstation Edition",
         188,  96,  1792, "GDDR7",   125,   250,   500,   500,  1000,  2000,  128, kPro6000},
    {"GeForce RTX 5070",
          48,  12,   672, "GDDR7",  30.9,  30.9,  61.7,  61.7, 123.5, 493.9,   48, kBlackwell},
    {"GeForce RTX 5070 Ti",
          70,  16,   896, "GDDR7",  43.9,  43.9,  87.9,  87.9, 175.8,   703,   48, kBlackwell},
    {"GeForce RTX 5080",
          84,  16,   960, "GDDR7",  56.3,  56.3, 112.6, 112.6, 225.1, 900.4,   64, kBlackwell},
    {"GeForce RTX 5090",
         170,  32,  1792, "GDDR7", 104.8, 104.8, 209.5, 209.5,   419,  1676,   96, kBlackwell},
};
// clang-format on

DevicePeaks peaks_of_row(const Row& row) {
  DevicePeaks peaks;
  peaks.name = std::string(std::string_view(row.name).starts_with("Tesla") ? "" : "NVIDIA ") + row.name;
  peaks.memory = row.memory;
  peaks.bandwidth = row.bandwidth_gbs * kGB;
  peaks.fp32 = row.fp32 * kTera;
  peaks.tf32 = row.tf32 * kTera;
  peaks.fp16 = row.fp16 * kTera;
  peaks.bf16 = row.bf16 * kTera;
  peaks.fp8 = row.fp8 * kTera;
  peaks.fp4 = row.fp4 * kTera;
  peaks.l2_bytes = static_cast<std::size_t>(row.l2_mib * 1024 * 1024);
  peaks.sm_count = row.sm;
  peaks.memory_gb = row.memory_gb;
  peaks.source = row.source;
  peaks.from_data_sheet = true;
  return peaks;
}

/// The device's own name: no vendor, no MIG slice. Older drivers leave "NVIDIA " out.
std::string_view plain_name(std::string_view name) {
  if (name.starts_with("NVIDIA ")) name.remove_prefix(7);
  if (const auto slice = name.find(" MIG "); slice != std::string_view::npos) name = name.substr(0, slice);
  return name;
}

/// Memory of a MIG slice from its profile, "… MIG 3g.40gb": 40; 0 when the name has none.
double slice_gb(std::string_view name) {
  const auto slice = name.find(" MIG ");
  if (slice == std::string_view::npos) return 0;
  const auto dot = name.find('.', slice);
  return dot == std::string_view::npos ? 0 : std::strtod(std::string(name.substr(dot + 1)).c_str(), nullptr);
}

/// A slice has a share of the SMs, and of the memory controllers in eighths.
DevicePeaks slice_of(DevicePeaks peaks, const DeviceAttributes& attributes, double gigabytes) {
  const double compute =
      attributes.sm_count > 0 ? static_cast<double>(attributes.sm_count) / peaks.sm_count : 1.0;
  const double memory =
      gigabytes > 0 ? std::clamp(std::round(8 * gigabytes / peaks.memory_gb), 1.0, 8.0) / 8 : 1.0;
  for (double* rate : {&peaks.fp32, &peaks.tf32, &peaks.fp16, &peaks.bf16, &peaks.fp8, &peaks.fp4})
    *rate *= compute;
  peaks.bandwidth *= memory;
  peaks.l2_bytes = static_cast<std::size_t>(static_cast<double>(peaks.l2_bytes) * memory);
  if (attributes.sm_count > 0) peaks.sm_count = attributes.sm_count;
  peaks.memory_gb = gigabytes;
  peaks.name = attributes.name;
  peaks.source += ", scaled to the MIG slice";
  return peaks;
}

/// What one SM does a clock: FP32 lanes, and dense FP16 tensor multiply-adds with FP32 accumulation.
struct SmRates {
  int major, minor, lanes, tensor_fma;
};
// NVIDIA CUDA C++ Programming Guide, "Arithmetic instructions"; the architecture whitepapers for tensor
// cores. Where GeForce and workstation parts of one architecture differ (8.6, 8.9), the larger: a ceiling may
// not be too low.
constexpr SmRates kSmRates[] = {{7, 0, 64, 512},    {7, 2, 64, 512},    {7, 5, 64, 512},   {8, 0, 64, 1024},
                                {8, 6, 128, 512},   {8, 7, 128, 1024},  {8, 9, 128, 512},  {9, 0, 128, 2048},
                                {10, 0, 128, 4096}, {10, 3, 128, 4096}, {12, 0, 128, 512}, {12, 1, 128, 512}};

DevicePeaks computed(const DeviceAttributes& attributes) {
  DevicePeaks peaks;
  peaks.name = attributes.name;
  peaks.memory = "device memory";
  peaks.bandwidth = 2.0 * attributes.memory_clock_hz * attributes.bus_bits / 8.0;  // two transfers a clock
  peaks.l2_bytes = attributes.l2_bytes;
  peaks.sm_count = attributes.sm_count;
  peaks.source = "computed from device attributes";
  const auto* rates = std::find_if(std::begin(kSmRates), std::end(kSmRates), [&](const SmRates& row) {
    return row.major == attributes.major && row.minor == attributes.minor;
  });
  const double clocks = attributes.clock_hz * attributes.sm_count * 2.0;  // a multiply-add is two operations
  peaks.fp32 = clocks * (rates == std::end(kSmRates) ? 128 : rates->lanes);
  if (rates == std::end(kSmRates)) return peaks;
  peaks.fp16 = clocks * rates->tensor_fma;
  if (attributes.major < 8) return peaks;
  peaks.bf16 = peaks.fp16;
  peaks.tf32 = peaks.fp16 / 2;
  if (attributes.major > 8 || attributes.minor == 9) peaks.fp8 = 2 * peaks.fp16;
  if (attributes.major >= 10) peaks.fp4 = 2 * peaks.fp8;
  return peaks;
}

}  // namespace

std::optional<DevicePeaks> find_device(const std::string& name, int sm_count) {
  const std::string_view wanted = plain_name(name);
  const bool slice = name.find(" MIG ") != std::string::npos;
  for (const Row& row : kTable)
    if (wanted == row.name && (slice || sm_count == 0 || sm_count == row.sm)) return peaks_of_row(row);
  return std::nullopt;
}

Result<DevicePeaks> find_device_like(const std::string& wanted) {
  const auto lower = [](std::string text) {
    for (char& c : text)
      c = c == '-' || c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  const auto holds_word = [](const std::string& name, const std::string& word) {
    for (std::size_t at = 0; (at = name.find(word, at)) != std::string::npos; ++at)
      if (at == 0 || name[at - 1] == ' ') return true;
    return false;
  };
  std::vector<std::string> words;
  for (const std::string& word : split(lower(wanted), ' '))
    if (!word.empty() && word != "nvidia") words.push_back(word);
  for (const Row& row : kTable) {
    const std::string name = lower(row.name);
    if (!words.empty() && std::all_of(words.begin(), words.end(),
                                      [&](const std::string& word) { return holds_word(name, word); }))
      return peaks_of_row(row);
  }
  std::vector<std::string> names;
  for (const Row& row : kTable) names.emplace_back(row.name);
  const auto meant = nearest(wanted, names);
  return fail("no device is known as \"" + wanted + "\"", {},
              (meant ? "did you mean \"" + *meant + "\"? " : std::string()) +
                  "for example h100, h200, a100, l4, t4, 4090, 5090");
}

DevicePeaks peaks_of(const DeviceAttributes& attributes) {
  const auto row = find_device(attributes.name, attributes.sm_count);
  if (!row) return computed(attributes);
  if (attributes.name.find(" MIG ") == std::string::npos) return *row;
  return slice_of(*row, attributes, slice_gb(attributes.name));
}

ComputePeak peak_of(const DevicePeaks& peaks, Precision precision) {
  // Units a class may use, fastest first; a class runs on stricter units where it has none of its own.
  const ComputePeak fp4{peaks.fp4, "FP4 tensor"}, fp8{peaks.fp8, "FP8 tensor"},
      fp16{peaks.fp16, "FP16 tensor"}, bf16{peaks.bf16, "BF16 tensor"}, tf32{peaks.tf32, "TF32 tensor"},
      fp32{peaks.fp32, "FP32 FMA"};
  std::array<ComputePeak, 4> choices{};
  switch (precision) {
    case Precision::kFp32:
      choices = {fp32};
      break;
    case Precision::kTf32:
      choices = {tf32, fp32};
      break;
    case Precision::kFp16:
      choices = {fp16, fp32};
      break;
    case Precision::kBf16:
      choices = {bf16, fp32};
      break;
    case Precision::kFp8:
      choices = {fp8, fp16, fp32};
      break;
    case Precision::kFp4:
      choices = {fp4, fp8, fp16, fp32};
      break;
  }
  for (const ComputePeak& choice : choices)
    if (choice.flops > 0) return choice;
  return {};
}

}  // namespace capstone
