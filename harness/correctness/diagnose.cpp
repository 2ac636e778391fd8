#include "harness/correctness/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "harness/correctness/compare.h"
#include "harness/correctness/dtype_convert.h"
#include "harness/correctness/inputs.h"
#include "harness/correctness/regions.h"

namespace capstone {
namespace {

constexpr std::size_t kSample = 1 << 14;  // wrong elements that the patterns are tested on
constexpr double kAlmostAll = 0.95;
constexpr std::size_t kShown = 8;  // wrong elements that are reported one by one

/// A pattern that matches, with advice.
struct Finding {
  std::string pattern, hint;
  bool spread_out = false;  ///< describes the whole output, even if most elements still pass
  bool exact = false;       ///< explains the values, not only where or how much they differ
};
using Maybe = std::optional<Finding>;

/// The output to diagnose.
struct Subject {
  DType type;
  const std::vector<std::int64_t>& shape;
  std::span<const std::byte> got;
  std::span<const double> expected, scale;
  Tolerance tolerance;
  std::uint64_t poison_seed;
  const std::vector<NamedTensor>& inputs;

  std::int64_t total() const { return static_cast<std::int64_t>(expected.size()); }
  std::int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  double got_at(std::int64_t i) const { return load_as_double(type, got.data(), i); }
  double expected_at(std::int64_t i) const { return expected[static_cast<std::size_t>(i)]; }
  double scale_at(std::int64_t i) const { return scale[static_cast<std::size_t>(i)]; }

  /// Whether element i holds the value expected for element j, with some tolerance: another element may have
  /// another error.
  bool holds(std::int64_t i, std::int64_t j) const {
    const Tolerance slack{4 * tolerance.rtol, 4 * tolerance.atol};
    return is_right(type, got_at(i), expected_at(j), scale_at(j), slack);
  }
};

/// The results of one pass over all elements.
struct Facts {
  std::vector<std::uint8_t> wrong, unwritten;  ///< [total] marks
  std::int64_t wrong_count = 0, unwritten_count = 0, wrong_nans = 0;
  bool infinite = false;  ///< an element is infinite or no number, where a number was expected
  double error_wrong = 0, error_right = 0;  ///< sums of squared finite errors
  double expected_squares = 0, largest_error = 0;
  std::int64_t finite_wrong = 0, finite_right = 0;
  std::vector<std::int64_t> sample;  ///< wrong elements, ascending, evenly spaced
};

void note_error(Facts& facts, double error, bool right) {
  if (!std::isfinite(error)) return;
  (right ? facts.error_right : facts.error_wrong) += error * error;
  ++(right ? facts.finite_right : facts.finite_wrong);
  facts.largest_error = std::max(facts.largest_error, std::fabs(error));
}

// Random bytes may be equal by chance, and a NaN of fp8 often is. Only what exceeds chance counts as not
// written.
void settle_unwritten(const Subject& subject, Facts& facts) {
  const bool by_nan = random::has_nan(subject.type);
  const double among = static_cast<double>(by_nan ? facts.wrong_nans : facts.wrong_count);
  const double least = by_nan ? 0.9 * among : 0.05 * among;
  if (facts.unwritten_count > 0 && static_cast<double>(facts.unwritten_count) >= least) return;
  facts.unwritten_count = 0;
  std::fill(facts.unwritten.begin(), facts.unwritten.end(), std::uint8_t{0});
}

Facts gather(const Subject& subject) {
  Facts facts;
  const auto total = static_cast<std::size_t>(subject.total());
  facts.wrong.assign(total, 0);
  facts.unwritten.assign(total, 0);
  for (std::size_t n = 0; n < total; ++n) {
    const auto i = static_cast<std::int64_t>(n);
    const double got = subject.got_at(i), expected = subject.expected_at(i);
    const bool right = is_right(subject.type, got, expected, subject.scale_at(i), subject.tolerance);
    note_error(facts, got - expected, right);
    if (std::isfinite(expected)) facts.expected_squares += expected * expected;
    if (right) continue;
    facts.wrong[n] = 1;
    ++facts.wrong_count;
    if (std::isnan(got)) ++facts.wrong_nans;
    facts.infinite |= !std::isfinite(got) && std::isfinite(expected);
    const bool may_be_poison = std::isnan(got) || !random::has_nan(subject.type);
    if (may_be_poison && is_poison(subject.got, subject.type, subject.poison_seed, i)) {
      facts.unwritten[n] = 1;
      ++facts.unwritten_count;
    }
  }
  settle_unwritten(subject, facts);
  return facts;
}

void choose_sample(Facts& facts) {
  const std::size_t step = static_cast<std::size_t>(facts.wrong_count) / kSample + 1;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < facts.wrong.size(); ++i)
    if (facts.wrong[i] && seen++ % step == 0) facts.sample.push_back(static_cast<std::int64_t>(i));
}

/// Whether `test` holds for almost all of the elements that it applies to. It returns nothing for elements to
/// which it does not apply.
template <class Test>
bool mostly(const std::vector<std::int64_t>& elements, const Test& test) {
  std::size_t asked = 0, yes = 0;
  for (const std::int64_t i : elements) {
    const std::optional<bool> answer = test(i);
    if (!answer) continue;
    ++asked;
    yes += *answer;
  }
  return asked > 0 && static_cast<double>(asked) >= 0.5 * static_cast<double>(elements.size()) &&
         static_cast<double>(yes) >= kAlmostAll * static_cast<double>(asked);
}

// ---- Patterns in the values of the wrong elements ---------------------------------------------------------

/// Distinguishes rows that are entirely NaN from scattered NaN.
bool whole_rows_of_nan(const Subject& subject, const Facts& facts) {
  if (subject.shape.size() < 2 || subject.columns() < 2) return false;
  std::int64_t rows_touched = 0, nans = 0;
  for (std::int64_t row = 0; row < subject.total() / subject.columns(); ++row) {
    std::int64_t here = 0;
    for (std::int64_t c = 0; c < subject.columns(); ++c) {
      const std::int64_t i = row * subject.columns() + c;
      here += facts.wrong[static_cast<std::size_t>(i)] && std::isnan(subject.got_at(i));
    }
    rows_touched += here > 0;
    nans += here;
  }
  return nans == rows_touched * subject.columns();
}

Maybe find_nan(const Subject& subject, const Facts& facts) {
  if (!mostly(facts.sample,
              [&](std::int64_t i) -> std::optional<bool> { return std::isnan(subject.got_at(i)); }))
    return {};
  if (facts.wrong_count == subject.total())
    return Finding{
        "NaN everywhere",
        "one NaN spread to all elements: look for 0/0, inf - inf, sqrt of a negative number (a variance as "
        "E[x^2] - E[x]^2), or "
        "an accumulator or shared memory that is read before it is written"};
  if (whole_rows_of_nan(subject, facts))
    return Finding{"NaN in whole rows",
                   "a row's maximum or sum is wrong: in a row of -inf, -inf - (-inf) is NaN; a sum of 0 "
                   "gives 0/0. Handle "
                   "the fully masked row, and start the maximum at -inf, not at 0"};
  return Finding{"NaN results",
                 "look for 0/0, inf - inf, exp() overflow, or elements read beyond the end of an input"};
}

Maybe find_infinity(const Subject& subject, const Facts& facts) {
  if (!mostly(facts.sample,
              [&](std::int64_t i) -> std::optional<bool> { return std::isinf(subject.got_at(i)); }))
    return {};
  return Finding{"infinite results",
                 "an exp() or a sum overflows: subtract the row's maximum before exp(), accumulate half "
                 "types in float, and "
                 "look for a division by zero"};
}

Maybe find_missing_relu(const Subject& subject, const Facts& facts) {
  const auto negative_for_zero = [&](std::int64_t i) -> std::optional<bool> {
    return subject.expected_at(i) == 0 && subject.got_at(i) < 0;
  };
  if (!mostly(facts.sample, negative_for_zero)) return {};
  return Finding{"negative where 0 is expected",
                 "the ReLU is missing, or is applied before the last term is added"};
}

// The emulator sets every variable that has no value to a pattern: as a float, -1.69e38.
Maybe find_unset(const Subject& subject, const Facts& facts) {
  constexpr double kAbsurd = 1e37;
  const auto absurd = [&](std::int64_t i) -> std::optional<bool> {
    const double got = subject.got_at(i);
    return std::isfinite(got) && std::fabs(got) > kAbsurd && std::fabs(subject.expected_at(i)) < 1e30;
  };
  if (subject.type != DType::kF32 || !mostly(facts.sample, absurd)) return {};
  return Finding{fmt::format("values that come from a variable that was never set: {:g}",
                             subject.got_at(facts.sample.front())),
                 "give every accumulator a value before the first += reads it", false, true};
}

Maybe find_constant(const Subject& subject, const Facts& facts) {
  if (facts.sample.size() < 2) return {};
  const double value = subject.got_at(facts.sample.front());
  if (!mostly(facts.sample,
              [&](std::int64_t i) -> std::optional<bool> { return subject.got_at(i) == value; }))
    return {};
  if (value == 0)
    return Finding{"all zeros",
                   "no result: an accumulator to which nothing is added, a store of the initial "
                   "value, or a kernel "
                   "that ended before its work (launch error, early return)",
                   false, true};
  return Finding{fmt::format("one constant: {:g}", value),
                 "every thread stores the same number: an index that does not depend on the thread, "
                 "or a reduction's result written in place of each element",
                 false, true};
}

Maybe find_copy(const Subject& subject, const Facts& facts) {
  for (const NamedTensor& input : subject.inputs) {
    if (input.bytes.size() != bytes_of(input.type, static_cast<std::size_t>(subject.total()))) continue;
    const auto same = [&](std::int64_t i) -> std::optional<bool> {
      return subject.got_at(i) == rounded_to(subject.type, load_as_double(input.type, input.bytes.data(), i));
    };
    if (mostly(facts.sample, same))
      return Finding{
          "a copy of " + input.name,
          fmt::format("{} is stored unchanged: the computation is skipped, or its result goes elsewhere",
                      input.name),
          false, true};
  }
  return {};
}

Maybe find_transposed(const Subject& subject, const Facts& facts) {
  if (subject.shape.size() < 2) return {};
  const std::int64_t columns = subject.columns(), rows = subject.shape[subject.shape.size() - 2];
  if (rows < 2 || columns < 2) return {};
  const auto transposed = [&](std::int64_t i) -> std::optional<bool> {
    const std::int64_t matrix = i / (rows * columns) * (rows * columns), at = i - matrix;
    return subject.holds(i, matrix + (at % rows) * columns + at / rows);
  };
  if (!mostly(facts.sample, transposed)) return {};
  return Finding{"transposed",
                 fmt::format("the matrix is stored by columns: element (row, column) belongs "
                             "at row * {} + column; check the store, "
                             "or a transposed operand",
                             columns),
                 false, true};
}

Maybe find_shifted(const Subject& subject, const Facts& facts) {
  const std::int64_t columns = subject.columns();
  struct Shift {
    std::int64_t by;
    std::string text;
  };
  std::vector<Shift> shifts = {{1, "element"}, {-1, "element"}};
  if (subject.shape.size() >= 2 && columns > 1) {
    shifts.push_back({columns, "row"});
    shifts.push_back({-columns, "row"});
  }
  for (const Shift& shift : shifts) {
    const auto shifted = [&](std::int64_t i) -> std::optional<bool> {
      const std::int64_t j = i + shift.by;
      if (j < 0 || j >= subject.total()) return std::nullopt;
      // across the end of a row
      if (shift.text == "element" && j / columns != i / columns) return std::nullopt;
      return subject.holds(i, j);
    };
    if (mostly(facts.sample, shifted))
      return Finding{fmt::format("off by one: each element holds the value of the {} {}",
                                 shift.by > 0 ? "next" : "previous", shift.text),
                     fmt::format("an index is shifted by {} {}: check where the loop starts and whether load "
                                 "and store use the same index",
                                 shift.by > 0 ? "+1" : "-1", shift.text),
                     false, true};
  }
  return {};
}

/// A number that is equal, up to noise, for all elements in question.
std::optional<double> common_value(std::vector<double> values) {
  if (values.size() < 3) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  const double middle = at(0.5), spread = at(0.95) - at(0.05);
  if (!std::isfinite(middle) || middle == 0 || !(spread <= 0.02 * std::fabs(middle))) return std::nullopt;
  return middle;
}

/// got / expected for the elements whose expected value is large enough for a meaningful ratio.
std::vector<double> ratios_of(const Subject& subject, const std::vector<std::int64_t>& elements) {
  double squares = 0;
  for (const std::int64_t i : elements) squares += subject.expected_at(i) * subject.expected_at(i);
  const double least =
      0.05 * std::sqrt(squares / static_cast<double>(std::max<std::size_t>(elements.size(), 1)));
  std::vector<double> ratios;
  for (const std::int64_t i : elements)
    if (std::fabs(subject.expected_at(i)) > least)
      ratios.push_back(subject.got_at(i) / subject.expected_at(i));
  return 2 * ratios.size() >= elements.size() ? ratios : std::vector<double>{};
}

std::vector<double> differences_of(const Subject& subject, const std::vector<std::int64_t>& elements) {
  std::vector<double> differences;
  for (const std::int64_t i : elements) differences.push_back(subject.got_at(i) - subject.expected_at(i));
  return differences;
}

/// A factor common to all elements. A factor near 1 must be clearly larger than the noise.
std::optional<double> common_ratio(const Subject& subject, const std::vector<std::int64_t>& elements) {
  const auto ratios = ratios_of(subject, elements);
  const auto factor = common_value(ratios);
  if (!factor) return std::nullopt;
  std::vector<double> off;
  for (const double ratio : ratios) off.push_back(ratio - 1);
  std::sort(off.begin(), off.end());
  const double spread = off[off.size() * 19 / 20] - off[off.size() / 20];
  return std::fabs(*factor - 1) > 4 * spread ? factor : std::nullopt;
}

/// Where a factor may come from, given the extents of the tensor.
std::string factor_hint(const Subject& subject, double factor) {
  const auto near = [factor](double value) { return std::fabs(factor - value) <= 2e-3 * std::fabs(value); };
  if (near(2))
    return "twice the result: accumulated twice, an output that is added to (+=), or two threads that do the "
           "same work";
  if (near(0.5)) return "half the result: half of the terms are summed, or a mean of two is taken";
  if (near(1.4426950408889634))
    return "the factor is log2(e): exp2() and log2() are mixed with exp() and log()";
  if (near(0.6931471805599453))
    return "the factor is ln(2): exp2() and log2() are mixed with exp() and log()";
  for (const std::int64_t extent : subject.shape) {
    const double n = static_cast<double>(extent);
    if (extent < 3) continue;
    if (near(n) || near(1 / n))
      return fmt::format("the factor is {} {}: a sum where a mean is needed, or the other way round",
                         near(n) ? "the extent" : "1 /", extent);
    if (near(std::sqrt(n)) || near(1 / std::sqrt(n)))
      return fmt::format(
          "the factor is the square root of {}, or one over it: check the scaling by 1/sqrt({})", extent,
          extent);
    if (std::fabs(factor * factor - n / (n - 1)) < 1e-4 / n ||
        std::fabs(factor * factor - (n - 1) / n) < 1e-4 / n)
      return fmt::format(
          "the factor is sqrt({0}/({0}-1)) or its inverse: variance divided by n - 1 instead of n, or "
          "the other way round",
          extent);
  }
  return "a constant factor: check scaling by 1/n or 1/sqrt(d), a scale applied twice or left out, and how "
         "many terms are summed";
}

Maybe find_scaled(const Subject& subject, const Facts& facts) {
  const auto factor = common_ratio(subject, facts.sample);
  if (!factor) return {};
  if (std::fabs(*factor + 1) < 1e-3)
    return Finding{"sign flipped",
                   "every value has the opposite sign: a - b instead of b - a, or a missing negation", false,
                   true};
  return Finding{fmt::format("scaled by a constant: {:.4g}", *factor), factor_hint(subject, *factor)};
}

Maybe find_offset(const Subject& subject, const Facts& facts) {
  const auto offset = common_value(differences_of(subject, facts.sample));
  if (!offset) return {};
  return Finding{fmt::format("offset by a constant: {:+.4g}", *offset),
                 "the same amount is added everywhere: a bias or epsilon in the wrong place, or an "
                 "accumulator that does not start at 0"};
}

/// The sample in groups: rows (i / columns) or columns (i % columns). Groups with too few elements are
/// omitted.
std::vector<std::vector<std::int64_t>> groups_of(const Subject& subject, const Facts& facts, bool by_row) {
  constexpr std::size_t kMostGroups = 16, kMostMembers = 64, kLeastMembers = 4;
  const std::int64_t columns = subject.columns(), rows = subject.total() / std::max<std::int64_t>(columns, 1);
  const std::int64_t groups = by_row ? rows : columns, members = by_row ? columns : rows;
  std::vector<std::vector<std::int64_t>> chosen;
  const std::int64_t step = groups / static_cast<std::int64_t>(kMostGroups) + 1;
  for (std::int64_t group = 0; group < groups; group += step) {
    std::vector<std::int64_t> elements;
    for (std::int64_t m = 0; m < members && elements.size() < kMostMembers; ++m) {
      const std::int64_t i = by_row ? group * columns + m : m * columns + group;
      if (facts.wrong[static_cast<std::size_t>(i)]) elements.push_back(i);
    }
    if (elements.size() >= kLeastMembers) chosen.push_back(std::move(elements));
  }
  return chosen;
}

/// Whether almost every group has a common value by `measure`.
template <class Measure>
bool constant_in_each(const std::vector<std::vector<std::int64_t>>& groups, const Measure& measure) {
  if (groups.size() < 2) return false;
  const auto constant = std::count_if(groups.begin(), groups.end(),
                                      [&](const auto& group) { return measure(group).has_value(); });
  return static_cast<double>(constant) >= 0.9 * static_cast<double>(groups.size());
}

Maybe find_by_group(const Subject& subject, const Facts& facts) {
  if (subject.shape.size() < 2) return {};
  const auto ratio = [&](const auto& group) { return common_ratio(subject, group); };
  const auto offset = [&](const auto& group) { return common_value(differences_of(subject, group)); };
  const auto rows = groups_of(subject, facts, true), columns = groups_of(subject, facts, false);
  if (constant_in_each(rows, ratio))
    return Finding{"each row is scaled by a different factor",
                   "follow what the row is divided by: a sum over part of the row, a missing rescaling when "
                   "the maximum grows, a reduction without some of the warps"};
  if (constant_in_each(rows, offset))
    return Finding{"each row is offset by a different amount",
                   "follow what is subtracted from the row, and the reduction that it comes from"};
  if (constant_in_each(columns, ratio))
    return Finding{"each column is scaled by a different factor",
                   "follow the factors that depend on the column"};
  if (constant_in_each(columns, offset))
    return Finding{"each column is offset by a different amount",
                   "follow the terms that depend on the column"};
  return {};
}

/// Small errors everywhere, also in the elements that still pass.
Maybe find_precision(const Subject& subject, const Facts& facts) {
  if (!is_float(subject.type) || facts.finite_wrong < facts.wrong_count || facts.expected_squares <= 0)
    return {};
  const double total = static_cast<double>(subject.total());
  const double wrong = std::sqrt(facts.error_wrong / static_cast<double>(facts.finite_wrong));
  const double right =
      facts.finite_right ? std::sqrt(facts.error_right / static_cast<double>(facts.finite_right)) : wrong;
  const double typical = std::sqrt((facts.error_wrong + facts.error_right) / total);
  const double relative = typical / std::sqrt(facts.expected_squares / total);
  // If many elements are correct, they must show errors of the same kind; a few may be correct by chance.
  const bool right_ones_exact = 20 * facts.finite_right > subject.total() && right < 0.05 * wrong;
  if (right_ones_exact || facts.largest_error > 40 * typical || relative > 0.15) return {};
  // Rounding to p bits leaves an error of about 0.4 * 2^-p of the value. The bounds lie between p = 8, 11
  // and 24. Errors of more than that have many other reasons.
  if (relative > 7e-4)
    return Finding{
        fmt::format("errors everywhere, about {:.1e} of the values", relative),
        "every element is a little wrong: a constant, a divisor (n or n - 1), an approximation, or an "
        "intermediate value in a narrow type",
        true};
  const char* like = relative > 6e-5 ? "fp16 or TF32" : nullptr;
  if (like)
    return Finding{
        fmt::format("precision: errors everywhere, about {:.1e} of the values, as after rounding to {}",
                    relative, like),
        fmt::format("an intermediate value is rounded to {}: inputs of a tensor-core product, a narrow "
                    "accumulator or "
                    "intermediate. Accumulate in float and keep the problem's precision",
                    like),
        true};
  return Finding{fmt::format("precision: errors everywhere, about {:.1e} of the values", relative),
                 "more rounding than the problem allows: fast-math functions (__expf, rsqrtf), E[x^2] - "
                 "E[x]^2 for a variance, or one "
                 "very long sum in order; use a tree or several partial sums",
                 true};
}

Maybe find_scattered(const Subject& subject, const Facts& facts) {
  if (static_cast<double>(facts.wrong_count) > 0.05 * static_cast<double>(subject.total()) &&
      facts.wrong_count > 1)
    return {};
  const char* pattern = facts.wrong_count == 1 ? "a single element" : "single elements here and there";
  return Finding{fmt::format("{} ({} of {})", pattern, facts.wrong_count, subject.total()),
                 "most elements are right: look at the inputs of these, and at the threads that store them"};
}

Finding no_pattern() {
  return {
      "no pattern found",
      "compute the first wrong element by hand from its inputs and follow the thread that stores it; simple "
      "inputs help: capstone try --input one-hot"};
}

/// The first pattern of values that matches the wrong elements.
Maybe find_content(const Subject& subject, const Facts& facts) {
  using Finder = Maybe (*)(const Subject&, const Facts&);
  constexpr Finder kAlways[] = {find_nan, find_infinity, find_unset};
  constexpr Finder kNeedSeveral[] = {find_constant,   find_copy,     find_missing_relu,
                                     find_transposed, find_shifted,  find_scaled,
                                     find_offset,     find_by_group, find_precision};
  for (const Finder finder : kAlways)
    if (auto finding = finder(subject, facts)) return finding;
  if (facts.wrong_count < 2) return {};  // a single element matches many patterns by chance
  for (const Finder finder : kNeedSeveral)
    if (auto finding = finder(subject, facts)) return finding;
  return {};
}

Finding explain_unwritten(const Subject& subject, const Facts& facts) {
  if (facts.unwritten_count == subject.total())
    return {"nothing written",
            "the kernel never stored to this output: is it launched on the given stream, with a grid that is "
            "not empty, "
            "without a launch error, and does it write through the right pointer?",
            false, true};
  const auto region = describe_region(subject.shape, facts.unwritten, facts.unwritten_count);
  Finding finding{
      region ? fmt::format("part not written: {}", region->where)
             : fmt::format("part not written: {} of {} elements", facts.unwritten_count, subject.total()),
      region ? region->hint : "the threads do not cover the output: check the grid size, strides and guards",
      false, true};
  if (facts.unwritten_count < facts.wrong_count)
    finding.pattern +=
        fmt::format("; {} more are written and wrong", facts.wrong_count - facts.unwritten_count);
  return finding;
}

Finding explain(const Subject& subject, Facts& facts) {
  if (facts.unwritten_count > 0) return explain_unwritten(subject, facts);
  choose_sample(facts);
  const auto content = find_content(subject, facts);
  const bool mostly_right = 2 * facts.wrong_count < subject.total();
  // A pattern of the whole output leaves some elements correct by chance (a diagonal, zeros). That is not a
  // region.
  if (content && (!mostly_right || content->spread_out)) return *content;
  const auto region = describe_region(subject.shape, facts.wrong, facts.wrong_count);
  if (region && content)
    return {fmt::format("only {}: {}", region->where, content->pattern), region->hint + "; " + content->hint,
            false, content->exact};
  if (region) return {fmt::format("only {}", region->where), region->hint};
  if (content)
    return {fmt::format("{} of {} elements: {}", facts.wrong_count, subject.total(), content->pattern),
            content->hint, false, content->exact};
  if (const auto scattered = find_scattered(subject, facts)) return *scattered;
  return no_pattern();
}

Mismatch mismatch_at(const Subject& subject, const Facts& facts, std::int64_t i) {
  const double expected = subject.expected_at(i);
  const double allowed = is_float(subject.type) ? subject.tolerance.atol * subject.scale_at(i) +
                                                      subject.tolerance.rtol * std::fabs(expected)
                                                : 0.0;
  return {multi_index(subject.shape, i), subject.got_at(i), expected, allowed,
          facts.unwritten[static_cast<std::size_t>(i)] != 0};
}

void describe_elements(const Subject& subject, const Facts& facts, const Comparison& comparison,
                       Diagnosis& diagnosis) {
  diagnosis.first = multi_index(subject.shape, comparison.first);
  diagnosis.worst = multi_index(subject.shape, comparison.worst);
  diagnosis.first_expected = subject.expected_at(comparison.first);
  diagnosis.first_got = subject.got_at(comparison.first);
  diagnosis.worst_expected = subject.expected_at(comparison.worst);
  diagnosis.worst_got = subject.got_at(comparison.worst);
  diagnosis.first_unwritten = facts.unwritten[static_cast<std::size_t>(comparison.first)] != 0;
  diagnosis.worst_unwritten = facts.unwritten[static_cast<std::size_t>(comparison.worst)] != 0;
  for (std::size_t i = 0; i < facts.wrong.size() && diagnosis.mismatches.size() < kShown; ++i)
    if (facts.wrong[i])
      diagnosis.mismatches.push_back(mismatch_at(subject, facts, static_cast<std::int64_t>(i)));
}

// A picture of the matrix in which the first wrong element lies; a tensor of one dimension in lines.
void draw_map(const Subject& subject, const Facts& facts, Diagnosis& diagnosis) {
  const auto right = std::find(facts.wrong.begin(), facts.wrong.end(), std::uint8_t{0});
  if (subject.total() < 2 || right == facts.wrong.end()) return;  // all wrong: the words say it
  const bool flat = subject.shape.size() < 2;
  const std::int64_t columns = flat ? std::min(subject.total(), kMapColumns) : subject.columns();
  const std::int64_t rows =
      flat ? (subject.total() + columns - 1) / columns : subject.shape[subject.shape.size() - 2];
  const std::int64_t first =
      std::find(facts.wrong.begin(), facts.wrong.end(), std::uint8_t{1}) - facts.wrong.begin();
  const std::int64_t base = flat ? 0 : first / (rows * columns) * (rows * columns);
  const std::int64_t high = (rows + kMapLines - 1) / kMapLines,
                     wide = (columns + kMapColumns - 1) / kMapColumns;
  for (std::int64_t line = 0; line < rows; line += high) {
    std::string text;
    for (std::int64_t cell = 0; cell < columns; cell += wide) {
      std::int64_t wrong = 0, all = 0;
      for (std::int64_t r = line; r < std::min(line + high, rows); ++r)
        for (std::int64_t c = cell; c < std::min(cell + wide, columns); ++c)
          if (const std::int64_t i = base + r * columns + c; i < subject.total()) {
            ++all;
            wrong += facts.wrong[static_cast<std::size_t>(i)];
          }
      text += all == 0               ? " "
              : wrong == 0           ? kMapCells[0]
              : wrong == all         ? kMapCells[4]
              : 3 * wrong <= all     ? kMapCells[1]
              : 3 * wrong <= 2 * all ? kMapCells[2]
                                     : kMapCells[3];
    }
    diagnosis.map.push_back(std::move(text));
  }
  diagnosis.map_of = diagnosis.output;
  if (subject.shape.size() > 2) {
    const auto index = multi_index(subject.shape, base);
    diagnosis.map_of += "[";
    for (std::size_t d = 0; d + 2 < index.size(); ++d) diagnosis.map_of += fmt::format("{}, ", index[d]);
    diagnosis.map_of += ":, :]";
  }
  if (high * wide > 1) diagnosis.map_of += fmt::format(", {} x {} elements a cell", high, wide);
}

}  // namespace

std::vector<std::int64_t> multi_index(const std::vector<std::int64_t>& shape, std::int64_t flat) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return index;
}

Diagnosis diagnose(const std::string& output, DType type, const std::vector<std::int64_t>& shape,
                   std::span<const std::byte> got, std::span<const double> expected,
                   std::span<const double> scale, Tolerance tolerance, std::uint64_t poison_seed,
                   const std::vector<NamedTensor>& inputs) {
  const Subject subject{type, shape, got, expected, scale, tolerance, poison_seed, inputs};
  const Comparison comparison = compare(type, got, expected, scale, tolerance);
  Diagnosis diagnosis;
  diagnosis.output = output;
  diagnosis.wrong = comparison.wrong;
  diagnosis.total = comparison.total;
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  if (got.size() != bytes_of(type, expected.size()) || scale.size() != expected.size() ||
      elements != subject.total()) {
    diagnosis.pattern = "wrong number of elements";
    diagnosis.hint = "the output must have the shape that the problem defines";
    return diagnosis;
  }
  if (comparison.passed) return diagnosis;
  Facts facts = gather(subject);
  describe_elements(subject, facts, comparison, diagnosis);
  const Finding finding = explain(subject, facts);
  diagnosis.pattern = finding.pattern;
  diagnosis.hint = finding.hint;
  diagnosis.exact = finding.exact;
  diagnosis.infinite = facts.infinite;
  draw_map(subject, facts, diagnosis);
  return diagnosis;
}

}  // namespace capstone
