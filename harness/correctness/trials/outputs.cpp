// Right values in wrong places, times a number that means something, or with a sum too many.
#include <fmt/format.h>

#include <algorithm>

#include "harness/correctness/trials/trial.h"

namespace capstone::trials {

void try_factors(Trial& trial) {
  if (trial.total() != 1 || trial.are([](std::int64_t) { return 0.0; })) return;
  std::vector<double> factors{2, 32, 64, 128, 256, 512, 1024};
  for (const auto& [symbol, size] : trial.prepared().plan.sizes) factors.push_back(static_cast<double>(size));
  for (const double factor : factors)
    for (const double f : {factor, 1 / factor})
      if (!trial.done() && f != 1 && trial.are([&](std::int64_t i) { return f * trial.expected(i); }))
        trial.name(f > 1 ? fmt::format("{} times the right result", factor)
                         : fmt::format("the right result divided by {}", factor),
                   f > 1 ? "several threads or blocks add the same sum: let one of them do it"
                         : "a mean is computed where a sum is wanted, or a part of the terms is lost");
}

void try_tiles_of_output(Trial& trial) {
  const auto& shape = trial.shape();
  if (shape.size() < 2) return;
  const std::int64_t c = shape.back(), r = shape[shape.size() - 2], matrix = r * c;
  for (const std::int64_t tile : {4, 8, 16, 32, 64})
    if (!trial.done() && tile < c && tile < r && trial.are([&](std::int64_t i) -> std::optional<double> {
          const std::int64_t base = i / matrix * matrix, row = (i - base) / c, column = (i - base) % c;
          const std::int64_t at = row / tile * tile + column % tile, to = column / tile * tile + row % tile;
          return at < r && to < c ? std::optional(trial.expected(base + at * c + to)) : std::nullopt;
        }))
      trial.name(
          fmt::format("transposed inside each tile of {} x {}", tile, tile),
          "the tile is stored as it was loaded: exchange its two indices, or those of the thread, once");
}

// A scan in parts: each part needs the sum of all parts before it, and not its own.
void try_running_sums(Trial& trial) {
  if (trial.shape().empty()) return;
  const std::int64_t c = trial.shape().back();
  // The running sum before element j of the row that begins at `row`.
  const auto before = [&](std::int64_t row, std::int64_t j) {
    return j == 0 ? 0.0 : trial.expected(row + std::min(j, c) - 1);
  };
  if (trial.are([&](std::int64_t i) { return trial.expected(i) + before(i - i % c, c); }))
    trial.name(fmt::format("off by one: as if the sum of all {} elements were added to each, too", c),
               "the offset of a part is the sum of the parts before it: an exclusive scan of the sums");
  for (const std::int64_t part : kTiles) {
    if (part < 4 || part >= c || trial.done()) continue;
    if (trial.are([&](std::int64_t i) {
          const std::int64_t j = i % c, row = i - j, begin = j / part * part;
          return trial.expected(i) + before(row, begin + part) - before(row, begin);
        }))
      trial.name(
          fmt::format("off by one: as if the sum of each part of {} elements were added to that part, too",
                      part),
          "the offset of a part is the sum of the parts before it: an exclusive scan of the sums");
    for (const std::int64_t block : kTiles)
      if (block > 2 * part && !trial.done() && trial.are([&](std::int64_t i) {
            const std::int64_t j = i % c, row = i - j, begin = j / block * block;
            const std::int64_t previous = std::max(begin, j / part * part - part);
            return trial.expected(i) - before(row, previous) + before(row, begin);
          }))
        trial.name(fmt::format("as if only the part of {} elements before each part took part", part),
                   fmt::format("inside a block of {}, add the sums of all parts before, not of one", block));
  }
}

}  // namespace capstone::trials
