// Slots sorted by expert, stable; each expert's rows begin at a multiple of 128. Rows are copied, so values are exact.
// Rows without a slot are zero.
#include "problems/oracle.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr std::int64_t kTile = 128;

struct Routing {
  std::vector<std::int64_t> counts, tile_offsets, place, slot_of_row;  ///< -1: dropped, or a row without a slot
};

Routing routing_of(const std::int32_t* expert, std::int64_t slots, std::int64_t experts) {
  Routing r;
  r.counts.resize(static_cast<std::size_t>(experts));
  for (std::int64_t i = 0; i < slots; ++i)
    if (expert[i] >= 0) ++r.counts[static_cast<std::size_t>(expert[i])];
  r.tile_offsets.push_back(0);
  for (const std::int64_t count : r.counts)
    r.tile_offsets.push_back(r.tile_offsets.back() + (count + kTile - 1) / kTile);
  std::vector<std::int64_t> next;
  for (const std::int64_t offset : r.tile_offsets) next.push_back(kTile * offset);
  r.slot_of_row.assign(static_cast<std::size_t>((slots + (kTile - 1) * experts) / kTile * kTile), -1);
  for (std::int64_t i = 0; i < slots; ++i) {
    r.place.push_back(expert[i] < 0 ? -1 : next[static_cast<std::size_t>(expert[i])]++);
    if (expert[i] >= 0) r.slot_of_row[static_cast<std::size_t>(r.place.back())] = i;
  }
  return r;
}

double bf16_at(const void* data, std::int64_t i) {
  const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(data)[i]} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

extern "C" void capstone_oracle(const CapstoneCase* c, int output, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const auto* weight = static_cast<const float*>(c->parameters[2].data);
  const std::int64_t t = c->sizes[0], h = c->sizes[1], k = c->sizes[2], experts = c->sizes[3];
  const Routing r = routing_of(static_cast<const std::int32_t*>(c->parameters[1].data), t * k, experts);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(indices[i]);
    scale[i] = 1;
    if (output == 3) {
      const std::int64_t slot = r.slot_of_row[static_cast<std::size_t>(indices[i] / h)];
      value[i] = slot < 0 ? 0 : bf16_at(c->parameters[0].data, slot / k * h + indices[i] % h);
    } else if (output == 4) {
      value[i] = r.slot_of_row[at] < 0 ? 0 : static_cast<double>(weight[r.slot_of_row[at]]);
    } else {
      value[i] = static_cast<double>((output == 5 ? r.place : output == 6 ? r.counts : r.tile_offsets)[at]);
    }
  }
}
