#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace capstone {

/// Element types of tensors. Packed types are not supported.
enum class DType { kF32, kF16, kBF16, kE4M3, kE5M2, kI32, kI64, kU8 };

/// Bytes per element.
constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI64:
      return 8;
    case DType::kE4M3:
    case DType::kE5M2:
    case DType::kU8:
      return 1;
  }
  return 0;
}
constexpr bool is_float(DType type) {
  return type != DType::kI32 && type != DType::kI64 && type != DType::kU8;
}
/// "f32", "bf16", … as written in problem.yaml.
constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kE4M3:
      return "e4m3";
    case DType::kE5M2:
      return "e5m2";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kU8:
      return "u8";
  }
  return "?";
}
inline constexpr std::string_view kDTypeNames[] = {"f32", "f16", "bf16", "e4m3", "e5m2", "i32", "i64", "u8"};
constexpr std::optional<DType> dtype_from(std::string_view name) {
  for (int i = 0; i < 8; ++i)
    if (kDTypeNames[i] == name) return static_cast<DType>(i);
  return std::nullopt;
}
/// The C++ type in a kernel's signature: "float", "__half", "__nv_bfloat16", "__nv_fp8_e4m3", "int32_t" …
constexpr std::string_view cuda_type(DType type) {
  switch (type) {
    case DType::kF32:
      return "float";
    case DType::kF16:
      return "__half";
    case DType::kBF16:
      return "__nv_bfloat16";
    case DType::kE4M3:
      return "__nv_fp8_e4m3";
    case DType::kE5M2:
      return "__nv_fp8_e5m2";
    case DType::kI32:
      return "int32_t";
    case DType::kI64:
      return "int64_t";
    case DType::kU8:
      return "uint8_t";
  }
  return "?";
}

}  // namespace capstone
