#pragma once
// Describes where the marked elements of a tensor are. Internal to harness/correctness.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capstone {

/// A part of a tensor: "rows >= 64", with the usual cause of errors there.
struct Region {
  std::string where;
  std::string hint;
};

/// Describes the marked elements if they fill a part of the tensor, at most 98 % of it, that has a simple
/// name: a tail, rows or columns from or up to an index, a single one, a period, both edges. Empty if the
/// marked elements form no such part.
///
/// @param marked  [elements] not 0: marked
/// @param count   number of marked elements
std::optional<Region> describe_region(const std::vector<std::int64_t>& shape,
                                      const std::vector<std::uint8_t>& marked, std::int64_t count);

}  // namespace capstone
