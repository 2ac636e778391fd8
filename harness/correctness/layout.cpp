#include "harness/correctness/layout.h"

namespace capstone {
namespace {

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + Layout::kAlign - 1) / Layout::kAlign * Layout::kAlign;
}

}  // namespace

const TensorSlot* Layout::find(int parameter) const {
  for (const TensorSlot& slot : tensors)
    if (slot.parameter == parameter) return &slot;
  return nullptr;
}

std::vector<std::pair<std::size_t, std::size_t>> Layout::guards() const {
  std::vector<std::pair<std::size_t, std::size_t>> bands;
  std::size_t end = 0;  // of the blocks placed so far
  const auto band_before = [&](std::size_t start, std::size_t length) {
    if (start > end) bands.emplace_back(end, start - end);
    end = start + length;
  };
  for (const TensorSlot& slot : tensors) band_before(slot.offset, slot.bytes);
  if (prepared_offset) band_before(prepared_offset, prepared_bytes);
  band_before(workspace_offset, workspace_bytes);
  band_before(bytes, 0);
  return bands;
}

Result<Layout> make_layout(const BoundProblem& bound, std::size_t workspace_bytes,
                           std::size_t prepared_bytes) {
  const Problem& problem = *bound.problem;
  Layout layout;
  std::size_t end = 0;
  // Returns the base of a block: aligned, a whole guard band after the previous block.
  const auto place = [&end](std::size_t bytes) {
    const std::size_t offset = rounded_up(end + Layout::kGuard);
    end = offset + bytes;
    return offset;
  };
  for (const BoundTensor& tensor : bound.tensors) {
    TensorSlot slot{tensor.parameter, tensor.shape, tensor.elements, tensor.bytes, place(tensor.bytes)};
    if (end > kMostBytes)
      return too_large(problem.signature[static_cast<std::size_t>(tensor.parameter)].name, bound.sizes);
    layout.tensors.push_back(std::move(slot));
  }
  if (problem.prepare) {
    if (prepared_bytes > kMostBytes - end) return too_large("what prepare() makes", bound.sizes);
    layout.prepared_bytes = prepared_bytes;
    layout.prepared_offset = place(prepared_bytes);
  }
  if (workspace_bytes > kMostBytes - end) return too_large("the workspace", bound.sizes);
  layout.workspace_bytes = workspace_bytes;
  layout.workspace_offset = place(workspace_bytes);
  layout.bytes = rounded_up(end + Layout::kGuard);
  return layout;
}

Result<Layout> make_layout(const Problem& problem, const Sizes& sizes, std::size_t workspace_bytes,
                           std::size_t prepared_bytes) {
  CAPSTONE_TRY(const BoundProblem bound, bound_at(problem, sizes));
  return make_layout(bound, workspace_bytes, prepared_bytes);
}

}  // namespace capstone
