#include "harness/correctness/layout.h"

#include <fmt/format.h>

namespace capstone {
namespace {

// Far above any GPU's memory, far below where sizes and offsets could overflow.
constexpr std::size_t kMostBytes = std::size_t{1} << 46;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + Layout::kAlign - 1) / Layout::kAlign * Layout::kAlign;
}

tl::unexpected<Error> too_large(const std::string& name, const Sizes& sizes) {
  return fail(fmt::format("{} does not fit: more than {} TiB", name, kMostBytes >> 40), to_string(sizes),
              "check the shape and workspace_bytes() at these sizes");
}

Result<TensorSlot> make_slot(const Problem& problem, int parameter, const Sizes& sizes) {
  const Parameter& definition = problem.signature[static_cast<std::size_t>(parameter)];
  TensorSlot slot;
  slot.parameter = parameter;
  CAPSTONE_TRY(slot.shape, shape_at(definition, sizes));
  std::size_t bytes = size_of(definition.dtype);
  slot.elements = 1;
  for (const std::int64_t extent : slot.shape) {
    if (extent < 0 || (extent > 0 && bytes > kMostBytes / static_cast<std::size_t>(extent)))
      return too_large(definition.name, sizes);
    bytes *= static_cast<std::size_t>(extent);
    slot.elements *= extent;
  }
  slot.bytes = bytes;
  return slot;
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
  band_before(workspace_offset, workspace_bytes);
  if (prepared_offset) band_before(prepared_offset, prepared_bytes);
  band_before(bytes, 0);
  return bands;
}

Result<Layout> make_layout(const Problem& problem, const Sizes& sizes, std::size_t workspace_bytes,
                           std::size_t prepared_bytes) {
  Layout layout;
  std::size_t end = 0;
  // Returns the base of a block: aligned, a whole guard band after the previous block.
  const auto place = [&end](std::size_t bytes) {
    const std::size_t offset = rounded_up(end + Layout::kGuard);
    end = offset + bytes;
    return offset;
  };
  for (int i = 0; i < static_cast<int>(problem.signature.size()); ++i) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(i)];
    if (parameter.is_scalar()) continue;
    CAPSTONE_TRY(auto slot, make_slot(problem, i, sizes));
    slot.offset = place(slot.bytes);
    if (end > kMostBytes) return too_large(parameter.name, sizes);
    layout.tensors.push_back(std::move(slot));
  }
  if (workspace_bytes > kMostBytes - end) return too_large("the workspace", sizes);
  layout.workspace_bytes = workspace_bytes;
  layout.workspace_offset = place(workspace_bytes);
  if (problem.prepare) {
    if (prepared_bytes > kMostBytes - end) return too_large("the output of prepare()", sizes);
    layout.prepared_bytes = prepared_bytes;
    layout.prepared_offset = place(prepared_bytes);
  }
  layout.bytes = rounded_up(end + Layout::kGuard);
  return layout;
}

}  // namespace capstone
