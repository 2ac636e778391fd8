#include "harness/correctness/trials/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/correctness/compare.h"
#include "harness/correctness/dtype_convert.h"
#include "harness/correctness/narrow.h"

namespace capstone::trials {
namespace {

constexpr std::size_t kWrongSample = 192, kRightSample = 64;  // elements that a trial must explain
constexpr double kAlmostAll = 0.97;
// Of the error may be left where a trial explains it: an output that is wrong by little more than the
// tolerance is near to many things.
constexpr double kMuchLess = 0.1;
constexpr double kMuchLessAlone = 1.0 / 64;  // for one number: of many trials, one comes near to it by chance
constexpr double kMuchWork = 4e6;  // [FLOP] of the whole case, above which fewer elements are sampled
constexpr double kSlack = 4;       // tolerances: the mistaken kernel rounds, too; one number: a tolerance

double slack(std::size_t elements) { return elements == 1 ? 1 : kSlack; }
double much_less(std::size_t elements) { return elements == 1 ? kMuchLessAlone : kMuchLess; }

// Evenly spaced, so that every part of the output takes part.
std::vector<std::int64_t> thinned(const std::vector<std::int64_t>& all, std::size_t most) {
  std::vector<std::int64_t> chosen;
  const double step = std::max(1.0, static_cast<double>(all.size()) / static_cast<double>(most));
  for (double at = 0; at < static_cast<double>(all.size()); at += step)
    chosen.push_back(all[static_cast<std::size_t>(at)]);
  return chosen;
}

}  // namespace

std::int64_t Operand::step(std::size_t axis) const {
  std::int64_t elements = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) elements *= shape[d];
  return elements;
}

std::optional<Values> Operand::read(const std::function<std::int64_t(std::int64_t)>& source) const {
  Values changed(values.size());
  for (std::int64_t i = 0; i < total(); ++i) {
    const std::int64_t at = source(i);
    if (at < 0 || at >= total()) return std::nullopt;
    changed[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(at)];
  }
  return changed;
}

Values Operand::each(const std::function<double(double)>& change) const {
  Values changed(values);
  for (double& value : changed) value = change(value);
  return changed;
}

Values Operand::without(const std::function<bool(std::int64_t)>& skipped, double neutral) const {
  Values changed(values);
  for (std::int64_t i = 0; i < total(); ++i)
    if (skipped(i % columns())) changed[static_cast<std::size_t>(i)] = neutral;
  return changed;
}

Trial::Trial(const Problem& problem, const PreparedCase& prepared, const PreparedCase::Output& output,
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
  choose_sample();
}

double Trial::got(std::int64_t i) const { return load_as_double(type_, got_.data(), i); }

bool Trial::right_at(std::int64_t i, double expected, double scale, double slack) const {
  const Tolerance tolerance{slack * problem_.tolerance.rtol, slack * problem_.tolerance.atol};
  return is_right(type_, got(i), expected, scale, tolerance);
}

void Trial::choose_sample() {
  const auto cost = cost_at(problem_, prepared_.plan.sizes);
  if (!cost) {
    error_ = cost.error();
    return;
  }
  const std::size_t thinner = cost->flops > kMuchWork ? 4 : 1;
  std::vector<std::int64_t> wrong, right;
  for (std::int64_t i = 0; i < total(); ++i)
    (right_at(i, expected(i), output_.scale[static_cast<std::size_t>(i)]) ? right : wrong).push_back(i);
  wrong_ = thinned(wrong, kWrongSample / thinner);
  right_ = thinned(right, kRightSample / thinner);
}

bool Trial::agree(const Problem& problem, const Sizes& sizes,
                  const std::vector<std::span<const std::byte>>& tensors,
                  const std::function<std::optional<std::int64_t>(std::int64_t)>& place, std::size_t least) {
  for (const auto* sample : {&wrong_, &right_}) {
    std::vector<std::int64_t> asked, places;
    for (const std::int64_t i : *sample)
      if (const auto at = place(i)) {
        asked.push_back(i);
        places.push_back(*at);
      }
    if (least ? sample == &wrong_ && asked.size() < least : asked.size() * 2 < sample->size()) return false;
    Values value(asked.size()), scale(asked.size());
    if (auto computed = oracle_.evaluate(problem, sizes, tensors, output_.parameter, places, value, scale);
        !computed) {
      error_ = computed.error();
      return false;
    }
    std::size_t held = 0;
    double left = 0, before = 0;  // errors against the trial's values, and against the right ones
    for (std::size_t i = 0; i < asked.size(); ++i) {
      held += std::isfinite(value[i]) && right_at(asked[i], value[i], scale[i], slack(asked.size()));
      left += std::fabs(got(asked[i]) - value[i]);
      before += std::fabs(got(asked[i]) - expected(asked[i]));
    }
    if (static_cast<double>(held) < kAlmostAll * static_cast<double>(asked.size())) return false;
    if (sample == &wrong_ && !(left <= much_less(asked.size()) * before)) return false;
  }
  return true;
}

bool Trial::explains(const Changes& changes, const Aside& aside, std::size_t least) {
  auto tensors = tensors_;
  std::vector<std::vector<std::byte>> stored;
  stored.reserve(changes.size());
  bool changed = false;
  for (const auto& [slot, values] : changes) {
    const DType type =
        problem_.signature[static_cast<std::size_t>(prepared_.layout.tensors[slot].parameter)].dtype;
    stored.emplace_back(bytes_of(type, values.size()));
    store_all(type, std::span<const double>(values), std::span<std::byte>(stored.back()));
    changed |= !std::equal(stored.back().begin(), stored.back().end(), tensors[slot].begin());
    tensors[slot] = stored.back();
  }
  return changed &&
         agree(
             problem_, prepared_.plan.sizes, tensors,
             [&](std::int64_t i) { return aside && aside(i) ? std::nullopt : std::optional(i); }, least);
}

bool Trial::explains_scalar(std::size_t parameter, double value) {
  Problem other = problem_;
  other.signature[parameter].value = Expression{fmt::format("{}", value)};
  return agree(
      other, prepared_.plan.sizes, tensors_, [](std::int64_t i) { return std::optional(i); }, 0);
}

std::optional<Resized> Trial::resized(const std::string& symbol, std::int64_t extent,
                                      const std::function<std::int64_t(std::int64_t)>& source) const {
  Resized other{prepared_.plan.sizes, {}, {}};
  const auto size = std::find_if(other.sizes.begin(), other.sizes.end(),
                                 [&](const auto& named) { return named.first == symbol; });
  const std::int64_t whole = size->second;
  bool any = false;
  for (std::size_t slot = 0; slot < tensors_.size(); ++slot) {
    const TensorSlot& old = prepared_.layout.tensors[slot];
    const Parameter& parameter = problem_.signature[static_cast<std::size_t>(old.parameter)];
    size->second = whole + 1;  // the axes of this size are those that grow with it
    const auto grown = shape_at(parameter, other.sizes);
    if (!grown) return std::nullopt;
    std::vector<std::int64_t> shape = old.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if ((*grown)[axis] == old.shape[axis]) continue;
      if (old.shape[axis] != whole || (*grown)[axis] != whole + 1) return std::nullopt;
      shape[axis] = extent;
    }
    size->second = extent;  // an extent such as ceil_div(k, 128) may follow the size without growing by that one
    const auto needed = shape_at(parameter, other.sizes);
    if (!needed || *needed != shape) return std::nullopt;
    if (old.parameter == output_.parameter) other.shape = shape;
    other.tensors.emplace_back();
    if (tensors_[slot].empty()) continue;
    any |= *grown != old.shape;
    const auto width = static_cast<std::int64_t>(unit_bytes(parameter.dtype));
    std::int64_t elements = 1;
    for (const std::int64_t each : shape) elements *= each;
    std::vector<std::byte>& bytes = other.tensors.back();
    bytes.resize(bytes_of(parameter.dtype, static_cast<std::size_t>(elements)));
    for (std::int64_t i = 0; i < elements; ++i) {
      std::int64_t rest = i, at = 0, step = 1;
      for (std::size_t axis = shape.size(); axis-- > 0 && at >= 0;) {
        const std::int64_t index = rest % shape[axis];
        const std::int64_t from = (*grown)[axis] == old.shape[axis] ? index : source(index);
        at = from < 0 ? -1 : at + from * step;
        step *= old.shape[axis];
        rest /= shape[axis];
      }
      if (at < 0) continue;
      if (is_packed(parameter.dtype))
        narrow::store_nibble(bytes.data(), i, narrow::nibble_at(tensors_[slot].data(), at));
      else
        std::copy_n(tensors_[slot].begin() + at * width, width, bytes.begin() + i * width);
    }
  }
  size->second = extent;
  return any ? std::optional(std::move(other)) : std::nullopt;
}

bool Trial::explains(const Resized& resized) {
  const auto place = [&](std::int64_t i) -> std::optional<std::int64_t> {
    std::int64_t at = 0, step = 1;
    for (std::size_t axis = shape().size(); axis-- > 0;) {
      const std::int64_t index = i % shape()[axis];
      if (index >= resized.shape[axis]) return std::nullopt;
      at += index * step;
      step *= resized.shape[axis];
      i /= shape()[axis];
    }
    return at;
  };
  return agree(problem_, resized.sizes, {resized.tensors.begin(), resized.tensors.end()}, place, 0);
}

void Trial::attempt(const Operand& operand, const std::optional<Values>& values, const std::string& pattern,
                    const std::string& hint, const Aside& aside, std::size_t least) {
  if (!done() && values && explains({{operand.slot, *values}}, aside, least)) name(pattern, hint);
}

bool Trial::are(const std::function<std::optional<double>(std::int64_t)>& other) const {
  for (const auto* sample : {&wrong_, &right_}) {
    std::size_t held = 0, asked = 0;
    double left = 0, before = 0;
    for (const std::int64_t i : *sample)
      if (const auto value = other(i)) {
        ++asked;
        held += right_at(i, *value, output_.scale[static_cast<std::size_t>(i)], slack(sample->size()));
        left += std::fabs(got(i) - *value);
        before += std::fabs(got(i) - expected(i));
      }
    if (2 * asked < sample->size() || static_cast<double>(held) < kAlmostAll * static_cast<double>(asked))
      return false;
    if (sample == &wrong_ && !(left <= much_less(asked) * before)) return false;
  }
  return true;
}

Result<std::optional<Trial::Mistake>> Trial::result() const {
  if (error_) return fail(*error_);
  return found_;
}

}  // namespace capstone::trials
