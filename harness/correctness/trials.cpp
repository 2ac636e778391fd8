#include "harness/correctness/trials.h"

#include "harness/correctness/trials/trial.h"

namespace capstone {
namespace {

using namespace trials;

// Those that say the most about a mistake come first.
constexpr Family kFamilies[] = {
    try_factors,         try_tiles_of_output, try_rounding, try_scalars, try_values,
    try_pairs,           try_order,           try_strides,  try_shifts,  try_shifts_along_two_axes,
    try_missing_indices, try_rows_as_indices, try_parts,    try_extents, try_parts_alone,
    try_stale_tiles,     try_running_sums};

Result<std::optional<Trial::Mistake>> tried(Trial trial) {
  // Two wrong elements of many agree with too much.
  const bool enough = trial.wrong().size() > 2 || (!trial.wrong().empty() && trial.total() == 1);
  for (const Family family : kFamilies)
    if (enough && !trial.done()) family(trial);
  return trial.result();
}

}  // namespace

Result<void> try_mistakes(const Problem& problem, const PreparedCase& prepared,
                          std::span<const std::byte> before, std::span<const std::byte> after,
                          const Oracle& oracle, CaseResult& result) {
  constexpr std::int64_t kMostElements = 1 << 20;  // of all tensors together
  if (!result.diagnosis || result.diagnosis->exact) return {};
  std::int64_t elements = 0;
  for (const TensorSlot& slot : prepared.layout.tensors) elements += slot.elements;
  if (elements > kMostElements) return {};
  for (const PreparedCase::Output& output : prepared.outputs) {
    if (problem.signature[static_cast<std::size_t>(output.parameter)].name != result.diagnosis->output)
      continue;
    const TensorSlot& slot = prepared.layout.tensors[static_cast<std::size_t>(output.slot)];
    CAPSTONE_TRY(const auto found, tried(Trial(problem, prepared, output, before,
                                               after.subspan(slot.offset, slot.bytes), oracle)));
    if (!found) continue;
    result.diagnosis->pattern = found->pattern;
    result.diagnosis->hint = result.hint = found->hint;
    result.diagnosis->exact = true;
    result.problem = "wrong result: " + found->pattern;
  }
  return {};
}

}  // namespace capstone
