#pragma once
// Where marked elements of a tensor lie, in words. Internal to harness/check.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capstone {

/// A part of a tensor: "rows >= 64", with what usually causes an error just there.
struct Region {
  std::string where;
  std::string hint;
};

/// Describes the marked elements if they fill a part of the tensor, at most 98 % of it, that words can name:
/// a tail, rows or columns from or up to an index, a single one, a period, both edges; empty when they are
/// everywhere or nowhere in particular.
///
/// @param marked  [elements] not 0: marked
/// @param count   how many are
std::optional<Region> describe_region(const std::vector<std::int64_t>& shape,
                                      const std::vector<std::uint8_t>& marked, std::int64_t count);

}  // namespace capstone
