#pragma once
// Turns wrong numbers into an explanation for the kernel's author.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/dtype.h"
#include "harness/model/problem.h"
#include "harness/model/record.h"

namespace capstone {

/// An input that the output may be a copy of.
struct NamedTensor {
  std::string name;
  DType type = DType::kF32;
  std::span<const std::byte> bytes;
};

/// The cells of Diagnosis::map: no element of the cell is wrong, at most a third, at most two thirds, more,
/// all.
inline constexpr std::array<std::string_view, 5> kMapCells{"·", "░", "▒", "▓", "█"};
inline constexpr std::string_view kMapKey = "· right, ░▒▓ some wrong, █ all wrong";
inline constexpr std::int64_t kMapLines = 16, kMapColumns = 64;  ///< at most

/// Explains how an output differs from the expected values: how many elements, the first and the worst, and
/// the pattern with a hint. Tests, in this order: nothing written, part not written, NaN results, all zeros,
/// one constant, a copy of an input, transposed, off by one, sign, scale and offset (whole tensor, per row,
/// per column), lower precision, where the wrong elements are (tail, rows, columns, strides), scattered
/// elements. Call it for outputs that failed. The judge itself reports runs that differ from the previous
/// run.
///
/// @param output       tensor name, for the record
/// @param got          the output's bytes; expected, scale: [n], as for compare()
/// @param poison_seed  the seed of the poison that the output held before the run
/// @param inputs       optional, for "a copy of …"
Diagnosis diagnose(const std::string& output, DType type, const std::vector<std::int64_t>& shape,
                   std::span<const std::byte> got, std::span<const double> expected,
                   std::span<const double> scale, Tolerance tolerance, std::uint64_t poison_seed,
                   const std::vector<NamedTensor>& inputs = {});

/// Row-major multi-index of a flat index.
std::vector<std::int64_t> multi_index(const std::vector<std::int64_t>& shape, std::int64_t flat);

}  // namespace capstone
