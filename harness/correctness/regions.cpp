#include "harness/correctness/regions.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr double kLeastFill = 0.3;  // some wrong elements have the right value by chance, such as a ReLU's
                                    // zeros

/// The coordinates along one dimension that occur among the marked elements.
struct Axis {
  std::string one, many;              ///< "row", "rows"
  std::vector<std::uint8_t> present;  ///< [extent]
  std::int64_t members = 0;
};

/// Describes a restriction along one axis; `size` coordinates satisfy it.
struct Restriction {
  std::string text, hint;
  std::int64_t size = 0;
};

std::pair<std::string, std::string> names_of(std::size_t dimension, std::size_t dimensions) {
  if (dimensions == 1) return {"element", "elements"};
  if (dimensions == 2 && dimension == 0) return {"row", "rows"};
  if (dimension + 1 == dimensions) return {"column", "columns"};
  return {fmt::format("index of dimension {}", dimension), fmt::format("indices of dimension {}", dimension)};
}

std::vector<Axis> axes_of(const std::vector<std::int64_t>& shape, const std::vector<std::uint8_t>& marked) {
  std::vector<Axis> axes(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::tie(axes[d].one, axes[d].many) = names_of(d, shape.size());
    axes[d].present.assign(static_cast<std::size_t>(shape[d]), 0);
  }
  std::vector<std::size_t> index(shape.size(), 0);
  for (const std::uint8_t mark : marked) {
    if (mark)
      for (std::size_t d = 0; d < shape.size(); ++d) axes[d].present[index[d]] = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {  // the next index, last dimension fastest
      if (++index[d] < static_cast<std::size_t>(shape[d])) break;
      index[d] = 0;
    }
  }
  for (Axis& axis : axes)
    axis.members = std::count(axis.present.begin(), axis.present.end(), std::uint8_t{1});
  return axes;
}

std::string tail_hint(const std::string& many, std::int64_t from, std::int64_t extent) {
  for (const std::int64_t tile : {256, 128, 64, 32, 16, 8, 4})
    if (from % tile == 0 && extent % tile != 0)
      return fmt::format(
          "{} in total, so the last tile of {} is not full: round the grid up, (n + {} - 1) / {}, and guard "
          "every "
          "load and store against the edge",
          extent - from, tile, tile, tile);
  return fmt::format(
      "the last {} are not handled like the others: check the grid size (ceil division), the loop bound and "
      "the "
      "guard at the edge",
      many);
}

Restriction contiguous(const Axis& axis, std::int64_t low, std::int64_t high) {
  const auto extent = static_cast<std::int64_t>(axis.present.size());
  if (low == high && high == extent - 1)
    return {fmt::format("the last {}", axis.one),
            "look for an off-by-one in a loop bound or guard: < n against < n - 1", 1};
  if (low == high)
    return {fmt::format("{} {}", axis.one, low),
            fmt::format("follow the one thread or block that computes {} {}", axis.one, low), 1};
  if (high == extent - 1)
    return {fmt::format("{} >= {}", axis.many, low), tail_hint(axis.many, low, extent), extent - low};
  if (low == 0)
    return {fmt::format("{} < {}", axis.many, high + 1),
            "the first part is wrong, the rest is right: check what the first block or iteration does "
            "differently (initial values, halo)",
            high + 1};
  return {fmt::format("{} {} to {}", axis.many, low, high),
          "one contiguous part is wrong: find the block, warp or tile that computes it", high - low + 1};
}

std::string ordinal(std::int64_t n) { return n == 2 ? "second" : n == 3 ? "third" : fmt::format("{}th", n); }

/// Members that repeat with a power-of-two period, in one contiguous range of residues.
std::optional<Restriction> periodic(const Axis& axis) {
  const auto extent = static_cast<std::int64_t>(axis.present.size());
  for (std::int64_t period = 2; period <= extent / 2; period *= 2) {
    std::vector<std::uint8_t> residues(static_cast<std::size_t>(period), 0);
    for (std::int64_t c = 0; c < extent; ++c)
      residues[static_cast<std::size_t>(c % period)] |= axis.present[static_cast<std::size_t>(c)];
    const auto first = std::find(residues.begin(), residues.end(), 1),
               end = std::find(first, residues.end(), 0);
    const auto low = first - residues.begin(), run = end - first;
    if (run == period || std::find(end, residues.end(), 1) != residues.end()) continue;
    std::int64_t size = 0;
    for (std::int64_t c = low; c < extent; c += period) size += std::min<std::int64_t>(run, extent - c);
    if (static_cast<double>(axis.members) < 0.9 * static_cast<double>(size)) continue;
    if (run == 1)
      return Restriction{
          fmt::format("every {} {} (index mod {} = {})", ordinal(period), axis.one, period, low),
          fmt::format("the error has a period of {}: a lane of a vectorised load or store, an unrolled loop "
                      "or a group of "
                      "threads omits number {}",
                      period, low),
          size};
    return Restriction{
        fmt::format("{} whose index mod {} is {} to {}", axis.many, period, low, low + run - 1),
        fmt::format(
            "only a part of each tile of {} is right: check the indices inside a tile and which warps "
            "compute that part",
            period),
        size};
  }
  return std::nullopt;
}

std::optional<Restriction> restriction_of(const Axis& axis) {
  const auto extent = static_cast<std::int64_t>(axis.present.size());
  if (axis.members == 0 || axis.members == extent) return std::nullopt;
  const auto begin = axis.present.begin();
  const std::int64_t low = std::find(begin, axis.present.end(), 1) - begin;
  std::int64_t high = extent - 1;
  while (!axis.present[static_cast<std::size_t>(high)]) --high;
  if (high - low + 1 == axis.members) return contiguous(axis, low, high);
  return periodic(axis);
}

/// "elements from flat index k on": the end of the buffer, beginning inside a row.
std::optional<Region> flat_tail(const std::vector<std::int64_t>& shape,
                                const std::vector<std::uint8_t>& marked, std::int64_t count) {
  const std::int64_t total = static_cast<std::int64_t>(marked.size()), columns = shape.back();
  const std::int64_t first =
      std::find_if(marked.begin(), marked.end(), [](std::uint8_t m) { return m; }) - marked.begin();
  if (shape.size() < 2 || 10 * first < total || first % columns == 0) return std::nullopt;
  if (static_cast<double>(count) < 0.8 * static_cast<double>(total - first)) return std::nullopt;
  return Region{
      fmt::format("the tail: elements from flat index {} on ({} of {})", first, total - first, total),
      "the threads do not reach the end of the buffer: check the grid size (ceil division), a vectorised "
      "loop that "
      "drops the remainder, and overflow of 32-bit indices or element counts"};
}

/// Both ragged edges of a matrix: everything outside [0, rows) x [0, columns).
std::optional<Region> both_edges(const std::vector<std::int64_t>& shape,
                                 const std::vector<std::uint8_t>& marked, std::int64_t count) {
  if (shape.size() != 2) return std::nullopt;
  const std::int64_t rows = shape[0], columns = shape[1];
  const auto at = [&](std::int64_t r, std::int64_t c) {
    return marked[static_cast<std::size_t>(r * columns + c)];
  };
  std::int64_t good_rows = 0, good_columns = 0;
  while (good_rows < rows && !at(good_rows, 0)) ++good_rows;
  while (good_columns < columns && !at(0, good_columns)) ++good_columns;
  if (good_rows == 0 || good_columns == 0 || good_rows == rows || good_columns == columns)
    return std::nullopt;
  // the rest is too large for an edge
  if (4 * good_rows * good_columns < rows * columns) return std::nullopt;
  for (std::int64_t r = 0; r < good_rows; ++r)
    for (std::int64_t c = 0; c < good_columns; ++c)
      if (at(r, c)) return std::nullopt;
  if (static_cast<double>(count) < 0.5 * static_cast<double>(rows * columns - good_rows * good_columns))
    return std::nullopt;
  return Region{fmt::format("both edges: rows >= {} and columns >= {}", good_rows, good_columns),
                "the full tiles are right, the ragged ones are not: round the grid up in both directions and "
                "guard both indices"};
}

}  // namespace

std::optional<Region> describe_region(const std::vector<std::int64_t>& shape,
                                      const std::vector<std::uint8_t>& marked, std::int64_t count) {
  const auto total = static_cast<std::int64_t>(marked.size());
  if (shape.empty() || count == 0 || 100 * count > 98 * total) return std::nullopt;
  if (auto tail = flat_tail(shape, marked, count)) return tail;
  std::vector<std::string> texts;
  std::string hint;
  double volume = static_cast<double>(total);
  for (const Axis& axis : axes_of(shape, marked)) {
    const auto restriction = restriction_of(axis);
    if (!restriction) continue;
    texts.push_back(restriction->text);
    if (hint.empty()) hint = restriction->hint;
    volume *= static_cast<double>(restriction->size) / static_cast<double>(axis.present.size());
  }
  if (!texts.empty() && static_cast<double>(count) >= kLeastFill * volume) {
    if (count == 1) return std::nullopt;  // a single element is not a region
    return Region{join(texts, ", "), hint};
  }
  return both_edges(shape, marked, count);
}

}  // namespace capstone
