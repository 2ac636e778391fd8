// An operand that is read at other indices.
#include <fmt/format.h>

#include "harness/correctness/trials/trial.h"

namespace capstone::trials {

// Row-major indices with another extent.
void try_strides(Trial& trial) {
  for (const Operand& t : trial.operands()) {
    if (t.shape.size() < 2) continue;
    const std::int64_t c = t.columns(), r = t.rows(), matrix = r * c;
    trial.attempt(
        t, t.read([&](std::int64_t i) {
          const std::int64_t base = i / matrix * matrix, at = i - base;
          return base + at % c * r + at / c;
        }),
        fmt::format("as if {} were stored by columns", t.name),
        fmt::format("{0} is read at column * {1} + row: its rows lie one after the other, so element "
                    "(row, column) is at row * {2} + column",
                    t.name, r, c));
    if (t.shape.size() > 2) {
      const std::int64_t first = t.shape[0], second = t.shape[1], inner = t.total() / (first * second);
      trial.attempt(
          t, t.read([&](std::int64_t i) {
            const std::int64_t at = i / inner;
            return (at % second * first + at / second) * inner + i % inner;
          }),
          fmt::format("as if the first two axes of {} were exchanged", t.name),
          fmt::format("{} is read at [j, i], not at [i, j]: follow the strides of its first two axes",
                      t.name));
    }
    std::vector<std::int64_t> strides{r};
    for (const auto& [symbol, size] : trial.prepared().plan.sizes) strides.push_back(size);
    strides.insert(strides.end(), {c + 1, c - 1});
    for (const std::int64_t stride : strides)
      if (stride != c && stride > 0)
        trial.attempt(
            t, t.read([&](std::int64_t i) {
              const std::int64_t base = i / matrix * matrix, at = i - base;
              return base + at / c * stride + at % c;
            }),
            fmt::format("as if a row of {} had {} elements, not {}", t.name, stride, c),
            fmt::format("the row stride (leading dimension) of {} is {}: element (row, column) is at "
                        "row * {} + column",
                        t.name, c, c));
  }
}

// An index that is off by one. Elements at the edge are left as they are.
void try_shifts(Trial& trial) {
  for (const Operand& t : trial.operands())
    for (std::size_t axis = t.shape.size(); axis-- > 0;) {
      const std::int64_t step = t.step(axis);
      if (t.shape[axis] < 2) continue;
      for (const std::int64_t by : {1, -1}) {
        const std::string along = t.shape.size() == 1 ? "" : fmt::format(" along axis {}", axis);
        trial.attempt(t, t.read([&](std::int64_t i) {
          const std::int64_t at = i / step % t.shape[axis] + by;
          return at < 0 || at >= t.shape[axis] ? i : i + by * step;
        }),
                      fmt::format("off by one: as if each element of {} were read at its index {}{}", t.name,
                                  by > 0 ? "+ 1" : "- 1", along),
                      fmt::format("check where the loop over {} starts, and the index of its load", t.name));
      }
    }
}

// An index that is missing.
void try_missing_indices(Trial& trial) {
  for (const Operand& t : trial.operands())
    for (std::size_t axis = 0; axis < t.shape.size(); ++axis) {
      if (t.shape[axis] < 2) continue;
      const std::int64_t step = t.step(axis);
      trial.attempt(
          t, t.read([&](std::int64_t i) { return i - i / step % t.shape[axis] * step; }),
          t.shape.size() == 1
              ? fmt::format("as if {}[0] were read for every element", t.name)
              : fmt::format("as if index 0 of axis {} of {} were read for all of that axis", axis, t.name),
          fmt::format("an index of {} does not move: see what it is made of", t.name));
    }
}

// A stencil or a convolution without its padding: both of its indices are off by one.
void try_shifts_along_two_axes(Trial& trial) {
  const auto& to = trial.shape();
  for (const Operand& t : trial.operands()) {
    const std::size_t axes = t.shape.size();
    if (axes < 2 || to.size() < 2 || t.rows() < 3 || t.columns() < 3) continue;
    if (to.back() != t.columns() || to[to.size() - 2] != t.rows()) continue;
    for (const std::int64_t by : {1, -1}) {
      const std::int64_t rows = t.rows(), columns = t.columns();
      Values moved(t.values.size());
      for (std::int64_t i = 0; i < t.total(); ++i) {
        const std::int64_t row = i / columns % rows + by, column = i % columns + by;
        if (row >= 0 && row < rows && column >= 0 && column < columns)
          moved[static_cast<std::size_t>(i)] = t.values[static_cast<std::size_t>(i + by * (columns + 1))];
      }
      // There, the shifted tensor lacks what the kernel reads.
      const auto edge = [&](std::int64_t i) {
        const std::int64_t row = i / columns % rows, column = i % columns;
        return by > 0 ? row == 0 || column == 0 : row == rows - 1 || column == columns - 1;
      };
      trial.attempt(
          t, moved,
          fmt::format("off by one: as if each element of {} were read at its index {} along its last "
                      "two axes",
                      t.name, by > 0 ? "+ 1" : "- 1"),
          "the padding: output (y, x) reads input (y + dy - 1, x + dx - 1) in a 3 x 3 window", edge);
    }
  }
}

// u[row] where u[column] is wanted.
void try_rows_as_indices(Trial& trial) {
  if (trial.shape().size() < 2 || trial.wrong().empty()) return;
  const std::int64_t columns = trial.shape().back();
  const auto row_of = [&](std::int64_t i) { return i / columns; };
  for (const Operand& t : trial.operands()) {
    if (trial.done() || t.shape.size() != 1 || t.total() != columns) continue;
    const auto& wrong = trial.wrong();
    bool all = true;
    for (const std::int64_t i : {wrong.front(), wrong[wrong.size() / 2], wrong.back()}) {
      const std::int64_t row = row_of(i);
      all = all && row < t.total() &&
            trial.explains(
                {{t.slot, t.each([&](double) { return t.values[static_cast<std::size_t>(row)]; })}},
                [&](std::int64_t at) { return row_of(at) != row; }, 2);
    }
    if (all)
      trial.name(fmt::format("as if {} were read at the row's index, not at the column's", t.name),
                 fmt::format("{} has one element for each column", t.name));
  }
}

}  // namespace capstone::trials
