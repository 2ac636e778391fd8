#include "harness/correctness/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "harness/correctness/compare.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone {
namespace {

constexpr std::size_t kWrongSample = 192, kRightSample = 64;  // elements that a trial must explain
constexpr double kAlmostAll = 0.97;
constexpr double kMuchLess = 0.1;  // of the error may be left where a trial explains it
constexpr double kMuchWork = 4e6;  // [FLOP] of the whole case, above which fewer elements are sampled
constexpr std::int64_t kTiles[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

/// In the words of a diagnosis.
struct TriedMistake {
  std::string pattern;  ///< "as if bias were 0"
  std::string hint;
};

using Values = std::vector<double>;
/// Tensors that a trial changes, by their place in the layout.
using Changes = std::map<std::size_t, Values>;

/// A float tensor that the kernel reads.
struct Operand {
  std::size_t slot;
  std::string name;
  DType type;
  std::vector<std::int64_t> shape;
  Values values;

  std::int64_t total() const { return static_cast<std::int64_t>(values.size()); }
  std::int64_t columns() const { return shape.back(); }
  /// Elements from one index of an axis to the next.
  std::int64_t step(std::size_t axis) const {
    std::int64_t elements = 1;
    for (std::size_t d = axis + 1; d < shape.size(); ++d) elements *= shape[d];
    return elements;
  }
  std::int64_t rows() const { return shape.size() < 2 ? 1 : shape[shape.size() - 2]; }

  /// The tensor as `source` reads it: element i holds what lies at source(i); outside of the tensor, nothing.
  std::optional<Values> read(const std::function<std::int64_t(std::int64_t)>& source) const {
    Values changed(values.size());
    for (std::int64_t i = 0; i < total(); ++i) {
      const std::int64_t at = source(i);
      if (at < 0 || at >= total()) return std::nullopt;
      changed[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(at)];
    }
    return changed;
  }
  Values each(const std::function<double(double)>& change) const {
    Values changed(values);
    for (double& value : changed) value = change(value);
    return changed;
  }
  /// Columns for which `skipped` holds have a value that adds nothing.
  Values without(const std::function<bool(std::int64_t)>& skipped, double neutral) const {
    Values changed(values);
    for (std::int64_t i = 0; i < total(); ++i)
      if (skipped(i % columns())) changed[static_cast<std::size_t>(i)] = neutral;
    return changed;
  }
};

class Trials {
 public:
  Trials(const Problem& problem, const PreparedCase& prepared, const PreparedCase::Output& output,
         std::span<const std::byte> image, std::span<const std::byte> got, const Oracle& oracle)
      : problem_(problem),
        prepared_(prepared),
        output_(output),
        slot_(prepared.layout.tensors[static_cast<std::size_t>(output.slot)]),
        type_(problem.signature[static_cast<std::size_t>(output.parameter)].dtype),
        got_(got),
        oracle_(oracle) {
    for (const TensorSlot& slot : prepared.layout.tensors) {
      const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
      const auto bytes = image.subspan(slot.offset, slot.bytes);
      tensors_.emplace_back(parameter.role == Role::kOutput ? std::span<const std::byte>() : bytes);
      if (parameter.role == Role::kOutput || !is_float(parameter.dtype) || slot.shape.empty()) continue;
      Operand operand{tensors_.size() - 1, parameter.name, parameter.dtype, slot.shape, {}};
      operand.values.resize(static_cast<std::size_t>(slot.elements));
      load_all(parameter.dtype, bytes, std::span<double>(operand.values));
      operands_.push_back(std::move(operand));
    }
  }

  Result<std::optional<TriedMistake>> run() {
    CAPSTONE_TRY(const Cost cost, cost_at(problem_, prepared_.plan.sizes));
    choose_sample(cost.flops > kMuchWork ? 4 : 1);
    if (wrong_.empty() || (wrong_.size() < 3 && output_.expected.size() > 1)) return nothing();
    using Family = void (Trials::*)();
    for (const Family family : {&Trials::outputs, &Trials::rounded, &Trials::values, &Trials::pairs,
                                &Trials::order, &Trials::matrices, &Trials::shifts, &Trials::broadcasts,
                                &Trials::parts, &Trials::blocks, &Trials::tiles}) {
      (this->*family)();
      if (error_) return fail(*error_);
      if (found_) return found_;
    }
    return nothing();
  }

 private:
  static Result<std::optional<TriedMistake>> nothing() { return std::optional<TriedMistake>(); }

  bool right_at(std::int64_t i, double expected, double scale, double slack = 1) const {
    const Tolerance tolerance{slack * problem_.tolerance.rtol, slack * problem_.tolerance.atol};
    return is_right(type_, load_as_double(type_, got_.data(), i), expected, scale, tolerance);
  }

  // Evenly spaced, so that every part of the output takes part.
  void choose_sample(std::size_t thinner) {
    std::vector<std::int64_t> wrong, right;
    for (std::size_t i = 0; i < output_.expected.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      (right_at(at, output_.expected[i], output_.scale[i]) ? right : wrong).push_back(at);
    }
    const auto thin = [](const std::vector<std::int64_t>& all, std::size_t most) {
      std::vector<std::int64_t> chosen;
      const double step = std::max(1.0, static_cast<double>(all.size()) / static_cast<double>(most));
      for (double at = 0; at < static_cast<double>(all.size()); at += step)
        chosen.push_back(all[static_cast<std::size_t>(at)]);
      return chosen;
    };
    wrong_ = thin(wrong, kWrongSample / thinner);
    right_ = thin(right, kRightSample / thinner);
  }

  /// Whether the oracle gives the kernel's outputs for the changed inputs.
  /// `aside`: columns of the output that the mistake itself says nothing about
  /// `least`: elements of the sample that must be left
  bool explains(const Changes& changes, const std::function<bool(std::int64_t)>& aside = {},
                std::size_t least = 0) {
    auto tensors = tensors_;
    std::vector<std::vector<std::byte>> stored;
    stored.reserve(changes.size());
    bool changed = false;
    for (const auto& [slot, values] : changes) {
      const DType type =
          problem_.signature[static_cast<std::size_t>(prepared_.layout.tensors[slot].parameter)].dtype;
      stored.emplace_back(values.size() * size_of(type));
      store_all(type, std::span<const double>(values), std::span<std::byte>(stored.back()));
      changed |= !std::equal(stored.back().begin(), stored.back().end(), tensors[slot].begin());
      tensors[slot] = stored.back();
    }
    if (!changed) return false;
    for (const auto* sample : {&wrong_, &right_}) {
      std::vector<std::int64_t> asked;
      for (const std::int64_t i : *sample)
        if (!aside || !aside(i % slot_.shape.back())) asked.push_back(i);
      if (least ? sample == &wrong_ && asked.size() < least : asked.size() * 2 < sample->size()) return false;
      Values value(asked.size()), scale(asked.size());
      if (auto computed = oracle_.evaluate(problem_, prepared_.plan.sizes, tensors, output_.parameter, asked,
                                           value, scale);
          !computed) {
        error_ = computed.error();
        return false;
      }
      std::size_t held = 0;
      double left = 0, before = 0;  // errors against the trial's values, and against the right ones
      for (std::size_t i = 0; i < asked.size(); ++i) {
        held += std::isfinite(value[i]) && right_at(asked[i], value[i], scale[i], 4);
        const double got = load_as_double(type_, got_.data(), asked[i]);
        left += std::fabs(got - value[i]);
        before += std::fabs(got - expected_at(asked[i]));
      }
      if (static_cast<double>(held) < kAlmostAll * static_cast<double>(asked.size())) return false;
      // An output that is wrong by little more than the tolerance is near to many things.
      if (sample == &wrong_ && !(left <= kMuchLess * before)) return false;
    }
    return true;
  }

  void attempt(const Operand& operand, const std::optional<Values>& values, const std::string& pattern,
               const std::string& hint, const std::function<bool(std::int64_t)>& aside = {},
               std::size_t least = 0) {
    if (!found_ && !error_ && values && explains({{operand.slot, *values}}, aside, least))
      found_ = TriedMistake{pattern, hint};
  }

  /// Whether the kernel's outputs are what `other` makes of the right ones, where it says something.
  bool are(const std::function<std::optional<double>(std::int64_t)>& other) const {
    for (const auto* sample : {&wrong_, &right_}) {
      std::size_t held = 0, asked = 0;
      for (const std::int64_t i : *sample)
        if (const auto value = other(i)) {
          ++asked;
          held += right_at(i, *value, output_.scale[static_cast<std::size_t>(i)], 4);
        }
      if (2 * asked < sample->size() || static_cast<double>(held) < kAlmostAll * static_cast<double>(asked))
        return false;
    }
    return true;
  }
  double expected_at(std::int64_t i) const { return output_.expected[static_cast<std::size_t>(i)]; }

  // Right values in wrong places, or a single value times a number that means something.
  void outputs() {
    if (output_.expected.size() == 1) {
      std::vector<double> factors{2, 32, 64, 128, 256, 512, 1024};
      for (const auto& [symbol, size] : prepared_.plan.sizes) factors.push_back(static_cast<double>(size));
      for (const double factor : factors)
        for (const double f : {factor, 1 / factor})
          if (!found_ && f != 1 && are([&](std::int64_t i) { return f * expected_at(i); }))
            found_ = {f > 1 ? fmt::format("{} times the right result", factor)
                            : fmt::format("the right result divided by {}", factor),
                      f > 1 ? "several threads or blocks add the same sum: let one of them do it"
                            : "a mean is computed where a sum is wanted, or a part of the terms is lost"};
      return;
    }
    if (slot_.shape.size() < 2) return;
    const std::int64_t c = slot_.shape.back(), r = slot_.shape[slot_.shape.size() - 2], matrix = r * c;
    for (const std::int64_t tile : {4, 8, 16, 32, 64})
      if (!found_ && tile < c && tile < r && are([&](std::int64_t i) -> std::optional<double> {
            const std::int64_t base = i / matrix * matrix, row = (i - base) / c, column = (i - base) % c;
            const std::int64_t at = row / tile * tile + column % tile, to = column / tile * tile + row % tile;
            return at < r && to < c ? std::optional(expected_at(base + at * c + to)) : std::nullopt;
          }))
        found_ = {
            fmt::format("transposed inside each tile of {} x {}", tile, tile),
            "the tile is stored as it was loaded: exchange its two indices, or those of the thread, once"};
  }

  // One operand is left out, or counts differently.
  void values() {
    const bool all_zero = std::all_of(wrong_.begin(), wrong_.end(), [&](std::int64_t i) {
      return load_as_double(type_, got_.data(), i) == 0;
    });
    if (all_zero) return;
    for (const Operand& t : operands_) {
      const double last = static_cast<double>(t.columns()), root = std::sqrt(last);
      attempt(t, t.each([](double) { return 0; }), fmt::format("as if {} were 0", t.name),
              fmt::format("{} has no effect on the output: it is not added, or its sum is lost before the "
                          "store",
                          t.name));
      attempt(t, t.each([](double) { return 1; }), fmt::format("as if {} were 1", t.name),
              fmt::format("the multiplication by {} is missing", t.name));
      attempt(
          t, t.each([](double v) { return 2 * v; }), fmt::format("as if {} counted twice", t.name),
          fmt::format("{} is added twice: look for a second addition, or for two threads that both add it",
                      t.name));
      attempt(t, t.each([](double v) { return -v; }), fmt::format("as if {} had the other sign", t.name),
              fmt::format("a + and a - are exchanged where {} enters", t.name));
      attempt(t, t.each([](double v) { return v * v; }), fmt::format("as if {} were squared", t.name),
              fmt::format("{} is multiplied in twice", t.name));
      attempt(t, t.each([](double v) { return v != 0 ? 1 / v : v; }),
              fmt::format("as if the output were divided by {}", t.name),
              fmt::format("a division and a multiplication by {} are exchanged", t.name));
      attempt(t, t.each([](double v) { return std::fabs(v); }), fmt::format("as if {} had no sign", t.name),
              "an absolute value too many");
      attempt(t, t.each([](double v) { return std::max(v, 0.0); }),
              fmt::format("as if {} were at least 0", t.name),
              fmt::format("a ReLU or fmaxf(…, 0) is applied to {} itself; for a maximum, start at -INFINITY",
                          t.name));
      attempt(t, t.each([](double v) { return v / 2; }), fmt::format("as if {} counted half", t.name),
              fmt::format("a factor 0.5 too many where {} enters", t.name));
      attempt(t, t.each([root](double v) { return v * root; }),
              fmt::format("as if the factor 1/sqrt({}) were missing", t.columns()),
              fmt::format("divide by the square root of {}, the row length of {}", t.columns(), t.name));
      attempt(t, t.each([root](double v) { return v / root; }),
              fmt::format("as if the factor 1/sqrt({}) were applied twice", t.columns()),
              fmt::format("one division by the square root of {} is too much", t.columns()));
    }
  }

  // A product of tensor cores, or a load, that rounds what it reads.
  void rounded() {
    constexpr std::pair<DType, const char*> kTypes[] = {{DType::kF16, "fp16"},
                                                        {DType::kBF16, "bf16"},
                                                        {DType::kE4M3, "fp8 (e4m3)"},
                                                        {DType::kE5M2, "fp8 (e5m2)"}};
    for (const auto& [type, name] : kTypes) {
      Changes changes;
      for (const Operand& t : operands_)
        changes[t.slot] = t.each([type = type](double v) { return rounded_to(type, v); });
      if (found_ || error_ || !explains(changes)) continue;
      found_ = {
          fmt::format("precision: as if the inputs were rounded to {}", name),
          fmt::format("the inputs of a tensor-core product, or a copy of them, have the type {}: keep the "
                      "problem's precision",
                      name)};
    }
  }

  // Two operands of one shape are exchanged.
  void pairs() {
    for (std::size_t i = 0; i < operands_.size(); ++i)
      for (std::size_t j = i + 1; j < operands_.size(); ++j) {
        const Operand &a = operands_[i], &b = operands_[j];
        if (found_ || error_ || a.type != b.type || a.values.size() != b.values.size()) continue;
        if (explains({{a.slot, b.values}, {b.slot, a.values}}))
          found_ = {fmt::format("as if {} and {} were swapped", a.name, b.name),
                    "two arguments or two loads are exchanged"};
        else if (explains({{b.slot, a.values}}))
          found_ = {fmt::format("as if {} were read in place of {}", a.name, b.name),
                    fmt::format("a load of {} uses the pointer of {}", b.name, a.name)};
        else if (explains({{a.slot, b.values}}))
          found_ = {fmt::format("as if {} were read in place of {}", b.name, a.name),
                    fmt::format("a load of {} uses the pointer of {}", a.name, b.name)};
      }
  }

  // (x + u) * v and x * v + u.
  void order() {
    for (const Operand& u : operands_)
      for (const Operand& v : operands_) {
        if (found_ || error_ || u.slot == v.slot || u.values.size() != v.values.size()) continue;
        Values divided(u.values), multiplied(u.values);
        for (std::size_t i = 0; i < u.values.size(); ++i) {
          if (v.values[i] != 0) divided[i] /= v.values[i];
          multiplied[i] *= v.values[i];
        }
        const std::string hint = fmt::format("follow the reference's order of {} and {}", u.name, v.name);
        if (explains({{u.slot, divided}}))
          found_ = {
              fmt::format("as if {} were added after the multiplication by {}, not before", u.name, v.name),
              hint};
        else if (explains({{u.slot, multiplied}}))
          found_ = {
              fmt::format("as if {} were added before the multiplication by {}, not after", u.name, v.name),
              hint};
      }
  }

  // Row-major indices with another extent.
  void matrices() {
    for (const Operand& t : operands_) {
      if (t.shape.size() < 2) continue;
      const std::int64_t c = t.columns(), r = t.rows(), matrix = r * c;
      attempt(t, t.read([&](std::int64_t i) {
        const std::int64_t base = i / matrix * matrix, at = i - base;
        return base + at % c * r + at / c;
      }),
              fmt::format("as if {} were stored by columns", t.name),
              fmt::format("{0} is read at column * {1} + row: its rows lie one after the other, so element "
                          "(row, column) is at row * {2} + column",
                          t.name, r, c));
      if (t.shape.size() > 2) {
        const std::int64_t first = t.shape[0], second = t.shape[1], inner = t.total() / (first * second);
        attempt(t, t.read([&](std::int64_t i) {
          const std::int64_t at = i / inner;
          return (at % second * first + at / second) * inner + i % inner;
        }),
                fmt::format("as if the first two axes of {} were exchanged", t.name),
                fmt::format("{} is read at [j, i], not at [i, j]: follow the strides of its first two axes",
                            t.name));
      }
      std::vector<std::int64_t> strides{r};
      for (const auto& [symbol, size] : prepared_.plan.sizes) strides.push_back(size);
      strides.insert(strides.end(), {c + 1, c - 1});
      for (const std::int64_t stride : strides)
        if (stride != c && stride > 0)
          attempt(t, t.read([&](std::int64_t i) {
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
  void shifts() {
    for (const Operand& t : operands_)
      for (std::size_t axis = t.shape.size(); axis-- > 0;) {
        const std::int64_t step = t.step(axis);
        if (t.shape[axis] < 2) continue;
        for (const std::int64_t by : {1, -1}) {
          const std::string along = t.shape.size() == 1 ? "" : fmt::format(" along axis {}", axis);
          attempt(t, t.read([&](std::int64_t i) {
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
  void broadcasts() {
    for (const Operand& t : operands_)
      for (std::size_t axis = 0; axis < t.shape.size(); ++axis) {
        if (t.shape[axis] < 2) continue;
        const std::int64_t step = t.step(axis);
        attempt(
            t, t.read([&](std::int64_t i) { return i - i / step % t.shape[axis] * step; }),
            t.shape.size() == 1
                ? fmt::format("as if {}[0] were read for every element", t.name)
                : fmt::format("as if index 0 of axis {} of {} were read for all of that axis", axis, t.name),
            fmt::format("an index of {} does not move: see what it is made of", t.name));
      }
  }

  // A reduction over a part of each row.
  void parts() {
    for (const Operand& t : operands_) {
      const std::int64_t c = t.columns();
      if (c < 2) continue;
      const bool same = !slot_.shape.empty() && slot_.shape.back() == c;
      const double least = t.type == DType::kF32 || t.type == DType::kBF16 ? -1e30 : -6e4;
      for (const double neutral : {0.0, least}) {
        const auto skip = [&](const std::string& pattern, const std::string& hint, auto skipped) {
          attempt(t, t.without(skipped, neutral), pattern, hint,
                  same ? std::function<bool(std::int64_t)>(skipped) : std::function<bool(std::int64_t)>(),
                  same ? 6 : 0);
        };
        const std::string what = t.shape.size() == 1 ? t.name : "each row of " + t.name;
        skip(fmt::format("as if the first element of {} were left out", what),
             "the loop starts at 1, or the first element is overwritten",
             [](std::int64_t j) { return j == 0; });
        skip(fmt::format("as if the last element of {} were left out", what),
             "the loop ends one element early: < n, not < n - 1", [c](std::int64_t j) { return j == c - 1; });
        for (const std::int64_t tile : kTiles) {
          if (tile < c && c % tile != 0)
            skip(
                fmt::format("as if the last {} of {} elements of {} were left out", c % tile, c, what),
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
  void blocks() {
    for (const Operand& t : operands_) {
      const std::int64_t c = t.columns();
      if (slot_.shape.empty() || slot_.shape.back() != c) continue;
      for (const std::int64_t tile : kTiles) {
        if (found_ || error_ || 3 * tile > c || tile < 8) continue;
        const auto alone = [&](std::int64_t block) {
          const auto outside = [&](std::int64_t j) { return j / tile != block; };
          return explains({{t.slot, t.without(outside, 0)}}, outside, 1);
        };
        if (alone(1) && alone(c / tile / 2))
          found_ = {fmt::format("as if each part of {} elements of {} stood alone", tile, t.name),
                    fmt::format("the results of the parts of {} before it are not added", tile)};
      }
    }
  }

  // A tile that is not the one whose turn it is.
  void tiles() {
    for (const Operand& t : operands_)
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
          attempt(
              t, moved([&](std::int64_t at) { return at % tile; }),
              fmt::format("stale tile: as if the first tile of {} ({} elements) were used again and again",
                          t.name, tile),
              "the tile's index does not advance, or the next tile is never loaded");
          attempt(t, moved([&](std::int64_t at) { return at < tile ? at : at - tile; }),
                  fmt::format("stale tile: as if each tile of {} ({} elements) were the one before it",
                              t.name, tile),
                  "the buffer is used before the new tile is in it: which of the two buffers is read?");
        }
      }
  }

  const Problem& problem_;
  const PreparedCase& prepared_;
  const PreparedCase::Output& output_;
  const TensorSlot& slot_;
  DType type_;
  std::span<const std::byte> got_;
  const Oracle& oracle_;
  std::vector<std::span<const std::byte>> tensors_;  ///< for the oracle
  std::vector<Operand> operands_;
  std::vector<std::int64_t> wrong_, right_;  ///< the sample
  std::optional<TriedMistake> found_;
  std::optional<Error> error_;
};

}  // namespace

Result<void> try_mistakes(const Problem& problem, const PreparedCase& prepared,
                          std::span<const std::byte> before, std::span<const std::byte> after,
                          const Oracle& oracle, CaseResult& result) {
  constexpr std::int64_t kMostElements = 1 << 20;  // of all tensors together
  if (!result.diagnosis || result.diagnosis->exact) return {};
  std::int64_t elements = 0;
  for (const TensorSlot& slot : prepared.layout.tensors) elements += slot.elements;
  if (elements > kMostElements) return {};
  for (std::size_t i = 0; i < prepared.outputs.size(); ++i) {
    const PreparedCase::Output& output = prepared.outputs[i];
    if (problem.signature[static_cast<std::size_t>(output.parameter)].name != result.diagnosis->output)
      continue;
    const TensorSlot& slot = prepared.layout.tensors[static_cast<std::size_t>(output.slot)];
    CAPSTONE_TRY(
        const auto found,
        Trials(problem, prepared, output, before, after.subspan(slot.offset, slot.bytes), oracle).run());
    if (!found) continue;
    result.diagnosis->pattern = found->pattern;
    result.diagnosis->hint = result.hint = found->hint;
    result.diagnosis->exact = true;
    result.problem = "wrong result: " + found->pattern;
  }
  return {};
}

}  // namespace capstone
