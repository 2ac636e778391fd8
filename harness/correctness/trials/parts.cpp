// Loops that see a part of their elements, or a part of them twice.
#include <fmt/format.h>

#include <set>

#include "harness/correctness/trials/trial.h"

namespace capstone::trials {

// A reduction over a part of each row.
void try_parts(Trial& trial) {
  for (const Operand& t : trial.operands()) {
    const std::int64_t c = t.columns();
    if (c < 2) continue;
    const bool same = !trial.shape().empty() && trial.shape().back() == c;
    const double least = t.type == DType::kF32 || t.type == DType::kBF16 ? -1e30 : -6e4;
    for (const double neutral : {0.0, least}) {
      const auto skip = [&](const std::string& pattern, const std::string& hint, auto skipped) {
        const Aside its_own = [c, skipped](std::int64_t i) { return skipped(i % c); };
        trial.attempt(t, t.without(skipped, neutral), pattern, hint, same ? its_own : Aside(), same ? 6 : 0);
      };
      const std::string what = t.shape.size() == 1 ? t.name : "each row of " + t.name;
      skip(fmt::format("as if the first element of {} were left out", what),
           "the loop starts at 1, or the first element is overwritten",
           [](std::int64_t j) { return j == 0; });
      skip(fmt::format("as if the last element of {} were left out", what),
           "the loop ends one element early: < n, not < n - 1", [c](std::int64_t j) { return j == c - 1; });
      for (const std::int64_t tile : kTiles) {
        if (tile < c && c % tile != 0)
          skip(fmt::format("as if the last {} of {} elements of {} were left out", c % tile, c, what),
               fmt::format("the tail behind the last whole tile of {} is not processed: round the number of "
                           "tiles up and guard the last one",
                           tile),
               [c, tile](std::int64_t j) { return j >= c / tile * tile; });
        if (tile < c)
          skip(fmt::format("as if only the first {} of {} elements of {} took part", tile, c, what),
               "the loop over the row ends after one step: the stride of the loop, or its bound",
               [tile](std::int64_t j) { return j >= tile; });
        if (tile > 32)
          skip(fmt::format("as if only the first 32 of every {} elements of {} took part", tile, what),
               "only the first warp's sum is kept: combine the partial sums of all warps",
               [tile](std::int64_t j) { return j % tile >= 32; });
        if (tile <= 32)
          skip(fmt::format("as if only every {}th element of {} took part", tile, what),
               "the partial results of the other lanes or iterations are lost",
               [tile](std::int64_t j) { return j % tile != 0; });
      }
    }
  }
}

// Each part of a row sees itself alone: what the parts before it came to is not added.
void try_parts_alone(Trial& trial) {
  for (const Operand& t : trial.operands()) {
    const std::int64_t c = t.columns();
    if (trial.shape().empty() || trial.shape().back() != c) continue;
    for (const std::int64_t tile : kTiles) {
      if (trial.done() || 3 * tile > c || tile < 8) continue;
      const auto alone = [&](std::int64_t block) {
        const auto outside = [&](std::int64_t j) { return j / tile != block; };
        return trial.explains(
            {{t.slot, t.without(outside, 0)}}, [&](std::int64_t i) { return outside(i % c); }, 1);
      };
      if (alone(1) && alone(c / tile / 2))
        trial.name(fmt::format("as if each part of {} elements of {} stood alone", tile, t.name),
                   fmt::format("the results of the parts of {} before it are not added", tile));
    }
  }
}

// A tile that is not the one whose turn it is.
void try_stale_tiles(Trial& trial) {
  for (const Operand& t : trial.operands())
    for (std::size_t axis = t.shape.size(); axis-- > 0;) {
      const std::int64_t extent = t.shape[axis];
      const std::int64_t step = t.step(axis);
      for (const std::int64_t tile : kTiles) {
        if (tile < 4 || tile >= extent) continue;
        const auto moved = [&](auto to) {
          return t.read([&](std::int64_t i) {
            const std::int64_t at = i / step % extent;
            return i + (to(at) - at) * step;
          });
        };
        trial.attempt(
            t, moved([&](std::int64_t at) { return at % tile; }),
            fmt::format("stale tile: as if the first tile of {} ({} elements) were used again and again",
                        t.name, tile),
            "the tile's index does not advance, or the next tile is never loaded");
        trial.attempt(t, moved([&](std::int64_t at) { return at < tile ? at : at - tile; }),
                      fmt::format("stale tile: as if each tile of {} ({} elements) were the one before it",
                                  t.name, tile),
                      "the buffer is used before the new tile is in it: which of the two buffers is read?");
      }
    }
}

// A size that is too small, too large, or made of one tile.
void try_extents(Trial& trial) {
  for (const auto& [symbol, size] : trial.prepared().plan.sizes) {
    const std::int64_t whole = size;
    std::set<std::int64_t> tried;
    const auto attempt = [&](std::int64_t extent, std::int64_t period, const std::string& pattern,
                             const std::string& hint) {
      if (trial.done() || extent < 1) return;
      const auto source = [&](std::int64_t j) { return period ? j % period : j < whole ? j : -1; };
      if (const auto other = trial.resized(symbol, extent, source); other && trial.explains(*other))
        trial.name(pattern, hint);
    };
    for (const std::int64_t tile : kTiles) {
      const std::int64_t fewer = whole / tile * tile, more = fewer + tile;
      if (tile >= whole) continue;
      if (whole % tile != 0 && tried.insert(fewer).second)
        attempt(
            fewer, 0,
            fmt::format("as if only the first {} of {} elements along {} took part", fewer, whole, symbol),
            fmt::format(
                "the tail behind the last whole tile of {} is not processed: round the number of tiles "
                "up and guard the last one",
                tile));
      if (whole % tile != 0 && tried.insert(more).second)
        attempt(
            more, 0,
            fmt::format("as if {} were {}, not {}: zeros behind the end took part", symbol, more, whole),
            fmt::format("the last tile of {} is padded with zeros: leave them out of the maximum and of the "
                        "sum of exponentials",
                        tile));
      if (tile >= 4)
        attempt(
            (whole + tile - 1) / tile * tile, tile,
            fmt::format("stale tile: as if the first tile along {} ({} elements) were used again and again",
                        symbol, tile),
            "the product reads the same buffer in every step: exchange the buffers after each one");
    }
    if (tried.insert(whole - 1).second)
      attempt(whole - 1, 0,
              fmt::format("as if the last of {} elements along {} were left out", whole, symbol),
              fmt::format("the loop over {} ends one element early", symbol));
  }
}

}  // namespace capstone::trials
