#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace capstone {

/// Element types of tensors. `int4x2` (signed, two's complement) and `e2m1x2` (fp4) are packed: two elements
/// are in a byte, the first in its low half. `e8m0` is a power of two without a sign, a scale of blocks.
enum class DType { kF32, kF16, kBF16, kE4M3, kE5M2, kI32, kI64, kU8, kInt4x2, kE2M1x2, kE8M0 };

constexpr bool is_packed(DType type) { return type == DType::kInt4x2 || type == DType::kE2M1x2; }

/// Elements in one unit of memory: two in the byte of a packed type, else one.
constexpr int elements_per_unit(DType type) { return is_packed(type) ? 2 : 1; }

/// Bytes of one unit of memory: of an element, or of the byte that holds two.
constexpr std::size_t unit_bytes(DType type) {
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
    case DType::kInt4x2:
    case DType::kE2M1x2:
    case DType::kE8M0:
      return 1;
  }
  return 0;
}

/// Units that hold so many elements, and their bytes.
constexpr std::size_t units_of(DType type, std::size_t elements) {
  return is_packed(type) ? (elements + 1) / 2 : elements;
}
constexpr std::size_t bytes_of(DType type, std::size_t elements) {
  return units_of(type, elements) * unit_bytes(type);
}

constexpr bool is_float(DType type) {
  return type != DType::kI32 && type != DType::kI64 && type != DType::kU8 && type != DType::kInt4x2;
}

/// The whole numbers that a type holds exactly, as a range; of e8m0 those that follow one another.
constexpr std::pair<std::int64_t, std::int64_t> whole_numbers(DType type) {
  switch (type) {
    case DType::kU8:
      return {0, 255};
    case DType::kI32:
      return {INT32_MIN, INT32_MAX};
    case DType::kI64:
      return {INT64_MIN, INT64_MAX};
    case DType::kF32:
      return {-(1 << 24), 1 << 24};
    case DType::kF16:
      return {-2048, 2048};
    case DType::kBF16:
      return {-256, 256};
    case DType::kE4M3:
      return {-16, 16};
    case DType::kE5M2:
      return {-8, 8};
    case DType::kInt4x2:
      return {-8, 7};
    case DType::kE2M1x2:
      return {-4, 4};
    case DType::kE8M0:
      return {1, 2};
  }
  return {0, 0};
}

/// Stored bits of a floating type's significand, without the implicit one; 0 for whole numbers, which no
/// class of precision rounds.
constexpr int significand_bits(DType type) {
  switch (type) {
    case DType::kF32:
      return 23;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 7;
    case DType::kE4M3:
      return 3;
    case DType::kE5M2:
      return 2;
    case DType::kE2M1x2:
      return 1;
    default:
      return 0;
  }
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
    case DType::kInt4x2:
      return "int4x2";
    case DType::kE2M1x2:
      return "e2m1x2";
    case DType::kE8M0:
      return "e8m0";
  }
  return "?";
}
inline constexpr std::string_view kDTypeNames[] = {"f32", "f16", "bf16",   "e4m3",   "e5m2", "i32",
                                                   "i64", "u8",  "int4x2", "e2m1x2", "e8m0"};
constexpr std::optional<DType> dtype_from(std::string_view name) {
  for (int i = 0; i < static_cast<int>(sizeof kDTypeNames / sizeof *kDTypeNames); ++i)
    if (kDTypeNames[i] == name) return static_cast<DType>(i);
  return std::nullopt;
}
/// The C++ type in a kernel's signature: "float", "__half", "__nv_bfloat16", "__nv_fp8_e4m3", "int32_t" …
/// A packed type's is the type of a byte with two elements; CUDA has none for int4x2.
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
    case DType::kInt4x2:
      return "uint8_t";
    case DType::kE2M1x2:
      return "__nv_fp4x2_e2m1";
    case DType::kE8M0:
      return "__nv_fp8_e8m0";
  }
  return "?";
}

}  // namespace capstone
