#include "harness/correctness/dtype_convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/correctness/bulk.h"
#include "harness/correctness/narrow.h"

namespace capstone {
namespace {

template <class T>
T element(const std::byte* tensor, std::int64_t i) {
  T value;
  std::memcpy(&value, tensor + i * static_cast<std::int64_t>(sizeof(T)), sizeof value);
  return value;
}

template <class T>
void put(std::byte* tensor, std::int64_t i, T value) {
  std::memcpy(tensor + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof value);
}

// Rounds to float "to odd": an inexact result gets its last bit set. Rounding that to fewer bits is the same
// as rounding the double once; rounding to nearest twice is not (Boldo & Melquiond, 2008).
float to_float_odd(double value) {
  float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) nearest = std::nextafter(nearest, 0.0f);
  return narrow::float_of(narrow::bits_of(nearest) | 1u);
}

template <class T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  // 2^63 is a double, 2^63 - 1 is not: compare with the first value that does not fit.
  if (rounded >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(rounded);
}

std::uint8_t to_int4(double value) {
  const double rounded = std::isnan(value) ? 0 : std::clamp(std::nearbyint(value), -8.0, 7.0);
  return static_cast<std::uint8_t>(static_cast<int>(rounded) & 15);
}

constexpr std::size_t kChunk = 1024;  // elements, so that the buffers stay in the L1 cache

}  // namespace

double load_as_double(DType type, const std::byte* tensor, std::int64_t i) {
  switch (type) {
    case DType::kF32:
      return static_cast<double>(element<float>(tensor, i));
    case DType::kF16:
      return static_cast<double>(narrow::from_f16(element<std::uint16_t>(tensor, i)));
    case DType::kBF16:
      return static_cast<double>(narrow::from_bf16(element<std::uint16_t>(tensor, i)));
    case DType::kE4M3:
      return static_cast<double>(narrow::from_e4m3(element<std::uint8_t>(tensor, i)));
    case DType::kE5M2:
      return static_cast<double>(narrow::from_e5m2(element<std::uint8_t>(tensor, i)));
    case DType::kI32:
      return element<std::int32_t>(tensor, i);
    case DType::kI64:
      return static_cast<double>(element<std::int64_t>(tensor, i));
    case DType::kU8:
      return element<std::uint8_t>(tensor, i);
    case DType::kInt4x2:
      return narrow::from_int4(narrow::nibble_at(tensor, i));
    case DType::kE2M1x2:
      return static_cast<double>(narrow::from_e2m1(narrow::nibble_at(tensor, i)));
    case DType::kE8M0:
      return static_cast<double>(narrow::from_e8m0(element<std::uint8_t>(tensor, i)));
  }
  return 0;
}

void store_rounded(DType type, std::byte* tensor, std::int64_t i, double value) {
  switch (type) {
    case DType::kF32:
      put(tensor, i, static_cast<float>(value));
      break;
    case DType::kF16:
      put(tensor, i, narrow::to_f16(to_float_odd(value)));
      break;
    case DType::kBF16:
      put(tensor, i, narrow::to_bf16(to_float_odd(value)));
      break;
    case DType::kE4M3:
      put(tensor, i, narrow::to_e4m3(to_float_odd(value)));
      break;
    case DType::kE5M2:
      put(tensor, i, narrow::to_e5m2(to_float_odd(value)));
      break;
    case DType::kI32:
      put(tensor, i, to_integer<std::int32_t>(value));
      break;
    case DType::kI64:
      put(tensor, i, to_integer<std::int64_t>(value));
      break;
    case DType::kU8:
      put(tensor, i, to_integer<std::uint8_t>(value));
      break;
    case DType::kInt4x2:
      narrow::store_nibble(tensor, i, to_int4(value));
      break;
    case DType::kE2M1x2:
      narrow::store_nibble(tensor, i, narrow::to_e2m1(to_float_odd(value)));
      break;
    case DType::kE8M0:
      put(tensor, i, narrow::to_e8m0(to_float_odd(value)));
      break;
  }
}

double rounded_to(DType type, double value) {
  std::byte element_bytes[8] = {};
  store_rounded(type, element_bytes, 0, value);
  return load_as_double(type, element_bytes, 0);
}

void load_all(DType type, std::span<const std::byte> in, std::span<double> out) {
  if (type == DType::kF16 || type == DType::kBF16) {
    float values[kChunk];
    for (std::size_t at = 0; at < out.size(); at += kChunk) {
      const std::size_t count = std::min(kChunk, out.size() - at);
      load_all(type, in.subspan(2 * at, 2 * count), std::span<float>(values, count));
      for (std::size_t i = 0; i < count; ++i) out[at + i] = static_cast<double>(values[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = load_as_double(type, in.data(), static_cast<std::int64_t>(i));
}

void load_all(DType type, std::span<const std::byte> in, std::span<float> out) {
  // Tensors are 256-byte aligned by contract, so the narrow words may be read directly.
  const auto* halves = reinterpret_cast<const std::uint16_t*>(in.data());
  switch (type) {
    case DType::kF32:
      std::memcpy(out.data(), in.data(), out.size_bytes());
      break;
    case DType::kF16:
      bulk::widen_f16(halves, out);
      break;
    case DType::kBF16:
      bulk::widen_bf16(halves, out);
      break;
    default:
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<float>(load_as_double(type, in.data(), static_cast<std::int64_t>(i)));
  }
}

void store_all(DType type, std::span<const double> in, std::span<std::byte> out) {
  for (std::size_t i = 0; i < in.size(); ++i)
    store_rounded(type, out.data(), static_cast<std::int64_t>(i), in[i]);
}

void store_all(DType type, std::span<const float> in, std::span<std::byte> out) {
  auto* halves = reinterpret_cast<std::uint16_t*>(out.data());
  auto* bytes = reinterpret_cast<std::uint8_t*>(out.data());
  switch (type) {
    case DType::kF32:
      std::memcpy(out.data(), in.data(), in.size_bytes());
      break;
    case DType::kF16:
      bulk::round_f16(in, halves);
      break;
    case DType::kBF16:
      bulk::round_bf16(in, halves);
      break;
    case DType::kE4M3:
      bulk::round_e4m3(in, bytes);
      break;
    case DType::kE5M2:
      bulk::round_e5m2(in, bytes);
      break;
    default:
      for (std::size_t i = 0; i < in.size(); ++i)
        store_rounded(type, out.data(), static_cast<std::int64_t>(i), static_cast<double>(in[i]));
  }
}

}  // namespace capstone
