#include "tests/model/oracle_case.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include "harness/correctness/dtype_convert.h"
#include "problems/oracle.h"

namespace capstone::testing {
namespace {

using OracleFunction = decltype(&capstone_oracle);

OracleFunction oracle_of(const std::string& id) {
  const std::string path = std::string(CAPSTONE_ORACLES) + "/" + id + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<OracleFunction>(dlsym(library, "capstone_oracle"));
}

/// Cuts that fall anywhere, whatever lengths the problem wants.
std::vector<float> draw(const InitOffsets& init, const Sizes& sizes, std::mt19937_64& random) {
  std::uniform_int_distribution<std::int64_t> cut(0, init.total.evaluate_integer(sizes).value());
  std::vector<float> cuts{0.0f, static_cast<float>(cut.max())};
  for (std::int64_t i = 1; i < init.segments.evaluate_integer(sizes).value(); ++i)
    cuts.push_back(static_cast<float>(cut(random)));
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

/// Where a problem has pages, the oracle must not read what no sequence uses; here that is a number, too.
std::vector<float> draw(const Parameter& parameter, const Sizes& sizes, std::mt19937_64& random) {
  if (const auto* offsets = std::get_if<InitOffsets>(&parameter.init)) return draw(*offsets, sizes, random);
  std::vector<float> values(static_cast<std::size_t>(elements_at(parameter, sizes).value()));
  if (const auto* lengths = std::get_if<InitLengths>(&parameter.init)) {
    const double low = lengths->low.evaluate(sizes).value(), high = lengths->high.evaluate(sizes).value();
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(
          std::round(low + (high - low) * static_cast<double>(i) / std::max<double>(1, values.size() - 1)));
    return values;
  }
  if (std::holds_alternative<InitGenerator>(parameter.init) && parameter.dtype == DType::kF32) {
    // Probabilities: a row sums to about one.
    const double columns = parameter.shape.back().evaluate(sizes).value();
    std::uniform_real_distribution<float> uniform(0, 2);
    for (float& value : values) value = uniform(random) / static_cast<float>(columns);
    return values;
  }
  if (const auto* whole = std::get_if<InitInteger>(&parameter.init)) {
    std::uniform_int_distribution<std::int64_t> integer(whole->min, whole->max);
    for (float& value : values) value = static_cast<float>(integer(random));
    return values;
  }
  if (const auto* choice = std::get_if<InitChoice>(&parameter.init)) {
    std::uniform_int_distribution<std::size_t> which(0, choice->values.size() - 1);
    for (float& value : values) value = static_cast<float>(choice->values[which(random)]);
    return values;
  }
  const auto* generator = std::get_if<InitGenerator>(&parameter.init);
  if (generator && generator->name == "mixed_magnitudes") {
    std::normal_distribution<float> normal(0, 1);
    std::uniform_int_distribution<int> power(-9, 12);
    int exponent = 0;  // of 16 neighbours
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 16 == 0) exponent = power(random);
      values[i] = static_cast<float>(rounded_to(parameter.dtype, std::ldexp(normal(random), exponent)));
    }
    return values;
  }
  if (generator && generator->name == "latent_tokens") {
    // Rows of 656 bytes: codes of e4m3 below 128, four scales of 1 / 64 or 1 / 128, 64 numbers in bf16.
    std::uniform_int_distribution<int> code(0, 0x6f), low(0, 255);
    std::bernoulli_distribution either(0.5);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = i % 656;
      const bool upper = at % 2 == 1;
      if (at < 512)
        values[i] = static_cast<float>(code(random) | (either(random) ? 0x80 : 0));
      else if (at < 528)
        values[i] = at % 4 == 3 ? 0x3c : at % 4 == 2 ? (either(random) ? 0x80 : 0) : 0;
      else
        values[i] = static_cast<float>(upper ? (either(random) ? 0x3f : 0xbf) : low(random));
    }
    return values;
  }
  if (std::holds_alternative<InitPermutation>(parameter.init) ||
      (generator && generator->name == "page_table")) {
    std::iota(values.begin(), values.end(), 0.0f);
    std::shuffle(values.begin(), values.end(), random);
    return values;
  }
  if (const auto* list = std::get_if<InitTopK>(&parameter.init)) {
    // Neighbouring numbers; every second list is the shortest.
    const auto of = list->of.evaluate_integer(sizes).value();
    const auto least = list->least.evaluate_integer(sizes).value();
    const auto k = parameter.shape.back().evaluate_integer(sizes).value();
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i)
      values[static_cast<std::size_t>(i)] =
          i / k % 2 == 1 && i % k >= least ? -1.0f : static_cast<float>((i / k * 7 + i % k) % of);
    return values;
  }
  if (const auto* range = std::get_if<InitUniform>(&parameter.init)) {
    std::uniform_real_distribution<float> uniform(static_cast<float>(range->low),
                                                  static_cast<float>(range->high));
    for (float& value : values) value = static_cast<float>(rounded_to(parameter.dtype, uniform(random)));
    return values;
  }
  const auto init =
      std::holds_alternative<InitPages>(parameter.init) ? InitNormal{} : std::get<InitNormal>(parameter.init);
  std::normal_distribution<float> normal(static_cast<float>(init.mean), static_cast<float>(init.std));
  for (float& value : values) value = static_cast<float>(rounded_to(parameter.dtype, normal(random)));
  return values;
}

}  // namespace

OracleCase::OracleCase(const std::string& id, Sizes sizes, std::uint64_t seed) : sizes_(std::move(sizes)) {
  auto problem = load_problem(std::filesystem::path(CAPSTONE_PROBLEMS) / id);
  if (!problem) throw std::runtime_error(render(problem.error()));
  problem_ = *problem;
  std::mt19937_64 random(seed);
  for (const Parameter& parameter : problem_.signature) {
    shapes_.push_back(shape_at(parameter, sizes_).value());
    if (parameter.is_scalar())
      tensors_.push_back({static_cast<float>(parameter.value->evaluate(sizes_).value())});
    else
      tensors_.push_back(draw(parameter, sizes_, random));
  }
  judge();
}

std::size_t OracleCase::index_of(const std::string& name) const {
  for (std::size_t i = 0; i < problem_.signature.size(); ++i)
    if (problem_.signature[i].name == name) return i;
  throw std::out_of_range(name);
}

std::size_t OracleCase::output_index() const {
  if (!output_.empty()) return index_of(output_);
  for (std::size_t i = 0; i < problem_.signature.size(); ++i)
    if (problem_.signature[i].role == Role::kOutput) return i;
  throw std::out_of_range("no output");
}

std::vector<float>& OracleCase::tensor(const std::string& name) { return tensors_[index_of(name)]; }

std::int64_t OracleCase::output_elements() const {
  return static_cast<std::int64_t>(tensors_[output_index()].size());
}

void OracleCase::for_each_input(const std::function<float(float)>& change) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Role role = problem_.signature[i].role;
    if (role != Role::kInput && role != Role::kParameter) continue;
    for (float& value : tensors_[i]) value = change(value);
  }
}

void OracleCase::judge(const std::string& output) {
  output_ = output;
  std::vector<std::int64_t> all(static_cast<std::size_t>(output_elements()));
  std::iota(all.begin(), all.end(), 0);
  evaluate(all, expected, scale);
}

void OracleCase::evaluate(const std::vector<std::int64_t>& indices, std::vector<double>& value,
                          std::vector<double>& condition) const {
  std::vector<CapstoneTensor> parameters;
  std::vector<std::vector<std::byte>> stored(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Parameter& p = problem_.signature[i];
    const bool has_data = !p.is_scalar() && p.role != Role::kOutput;
    if (has_data) {
      stored[i].resize(bytes_of(p.dtype, tensors_[i].size()));
      store_all(p.dtype, tensors_[i], stored[i]);
    }
    parameters.push_back({p.name.c_str(), name_of(p.dtype).data(), has_data ? stored[i].data() : nullptr,
                          shapes_[i].data(), static_cast<int>(shapes_[i].size()),
                          p.is_scalar() ? tensors_[i][0] : 0.0});
  }
  std::vector<std::int64_t> sizes;
  for (const auto& [symbol, extent] : sizes_) sizes.push_back(extent);
  const CapstoneCase c{parameters.data(), static_cast<int>(parameters.size()), sizes.data(),
                       static_cast<int>(sizes.size())};
  value.assign(indices.size(), 0);
  condition.assign(indices.size(), 0);
  oracle_of(problem_.id)(&c, static_cast<int>(output_index()), indices.data(),
                         static_cast<std::int64_t>(indices.size()), value.data(), condition.data());
}

double OracleCase::badness(const std::vector<float>& got) const {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = got[i] == expected[i] ? 0 : std::fabs(got[i] - expected[i]);  // of infinities, too
    const double bound =
        problem_.tolerance.atol * scale[i] + problem_.tolerance.rtol * std::fabs(expected[i]);
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
    if (error > 0) worst = std::max(worst, error / bound);
  }
  return worst;
}

}  // namespace capstone::testing
