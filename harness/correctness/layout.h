#pragma once
// The position of each tensor of a case in the arena, and the bytes that must never be written.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/model/bound.h"

namespace capstone {

/// One tensor of a case.
struct TensorSlot {
  int parameter = 0;  ///< index in problem.signature
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;  ///< [B] from the start of the arena; a multiple of Layout::kAlign
};

/// The arena of one case: guard, tensor, guard, tensor, … guard; if the problem has `prepare`, the output of
/// prepare() and a guard; and at the end, where no copy of the rest has to hold it, the workspace and a
/// guard.
struct Layout {
  static constexpr std::size_t kGuard = 4096;  ///< [B] minimum width of a guard band
  static constexpr std::size_t kAlign = 256;   ///< [B] of every tensor's base

  std::vector<TensorSlot> tensors;  ///< in signature order, without scalars
  std::size_t workspace_offset = 0;
  std::size_t workspace_bytes = 0;  ///< as requested; may be 0
  std::size_t prepared_offset = 0;  ///< 0 if the problem has no `prepare`
  std::size_t prepared_bytes = 0;   ///< as requested; may be 0
  std::size_t bytes = 0;            ///< of the whole arena

  /// Bytes before the workspace: what an image of the arena holds.
  std::size_t image_bytes() const { return workspace_offset; }

  /// The slot of a parameter, or null for a scalar.
  const TensorSlot* find(int parameter) const;

  /// Every byte that is not tensor, workspace or prepared, as (offset, bytes), ascending: the bands, and the
  /// gaps that alignment leaves, so that a write one element past the end is detected.
  std::vector<std::pair<std::size_t, std::size_t>> guards() const;
};

/// Lays out a case.
///
/// @param workspace_bytes, prepared_bytes  results of the candidate's functions of these names
/// @error a shape that cannot be evaluated, or an arena of more than 2^46 bytes (an absurd workspace).
Result<Layout> make_layout(const BoundProblem& bound, std::size_t workspace_bytes,
                           std::size_t prepared_bytes = 0);
/// The same, for sizes that are used only once.
Result<Layout> make_layout(const Problem& problem, const Sizes& sizes, std::size_t workspace_bytes,
                           std::size_t prepared_bytes = 0);

}  // namespace capstone
