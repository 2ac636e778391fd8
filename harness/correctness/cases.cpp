#include "harness/correctness/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "harness/correctness/compare.h"
#include "harness/correctness/diagnose.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone {
namespace {

// A scalar's argument in its own type.
Result<Json> scalar_argument(const Parameter& parameter, double value) {
  switch (parameter.dtype) {
    case DType::kI32:
      return Json{{"i32", static_cast<std::int64_t>(std::llround(value))}};
    case DType::kI64:
      return Json{{"i64", static_cast<std::int64_t>(std::llround(value))}};
    case DType::kU8:
      return Json{{"u8", static_cast<std::int64_t>(std::llround(value))}};
    case DType::kF32:
      return Json{{"f32", static_cast<double>(static_cast<float>(value))}};
    default:
      return fail(
          "a scalar of type " + std::string(name_of(parameter.dtype)) + " cannot be passed to launch()",
          parameter.name, "use f32, i32, i64 or u8");
  }
}

Result<Json> arguments(const BoundProblem& bound, const Layout* layout) {
  Json args = Json::array();
  std::size_t slot = 0, scalar = 0;
  for (const Parameter& parameter : bound.problem->signature) {
    if (parameter.is_scalar()) {
      CAPSTONE_TRY(Json argument, scalar_argument(parameter, bound.scalars[scalar++]));
      args.push_back(std::move(argument));
    } else {
      args.push_back({{"at", layout ? layout->tensors[slot].offset : 0}});
      ++slot;
    }
  }
  for (const auto& [symbol, value] : bound.sizes) args.push_back({{"i64", value}});
  return args;
}

std::span<std::byte> part(std::span<std::byte> image, const TensorSlot& slot) {
  return image.subspan(slot.offset, slot.bytes);
}
std::span<const std::byte> part(std::span<const std::byte> image, const TensorSlot& slot) {
  return image.subspan(slot.offset, slot.bytes);
}

// A battery asks about values, not about sizes: small draws, so that all of them cost no more than one
// hidden case.
constexpr DrawLimits kBatteryLimits{4e6, 1e6};

Result<Sizes> cheapest_check(const Problem& problem) {
  const Sizes* cheapest = nullptr;
  double least = 0;
  for (const Sizes& sizes : problem.check) {
    CAPSTONE_TRY(Cost cost, cost_at(problem, sizes));
    if (cheapest && cost.flops + cost.bytes >= least) continue;
    cheapest = &sizes;
    least = cost.flops + cost.bytes;
  }
  return cheapest ? *cheapest : problem.emulate;
}

// Sizes that have the measured value of these symbols, and drawn ones of the others; nothing where that costs
// too much.
std::optional<Sizes> with_measured(const Problem& problem, const std::vector<std::string>& symbols,
                                   const DrawLimits& limits, const std::function<std::uint64_t()>& random) {
  Problem fixed = problem;
  Sizes least;  // the cheapest of all: where that costs too much, no draw needs to be tried
  for (const auto& [symbol, value] : problem.measure) {
    Vary& vary = fixed.vary[symbol];
    if (std::find(symbols.begin(), symbols.end(), symbol) != symbols.end()) vary.one_of = {value};
    least.emplace_back(symbol, vary.one_of.empty()
                                   ? std::max<std::int64_t>(vary.low, vary.multiple_of)
                                   : *std::min_element(vary.one_of.begin(), vary.one_of.end()));
  }
  if (auto cost = cost_at(problem, least); !cost || cost->flops > limits.flops || cost->bytes > limits.bytes)
    return std::nullopt;
  auto sizes = draw_sizes(fixed, random, Cost{limits.flops, limits.bytes});
  if (!sizes) return std::nullopt;
  return std::move(*sizes);
}

// A fast path for an extent that is measured, and for no other, shows at no drawn size. So few small cases
// have, among them, each symbol at its measured value: all symbols but one where that is cheap, else one.
std::vector<Sizes> measured_extents(const Problem& problem, const DrawLimits& limits,
                                    const std::function<std::uint64_t()>& random) {
  std::vector<Sizes> all;
  std::vector<std::string> left = problem.symbols;
  const auto add = [&](const std::vector<std::string>& symbols, const DrawLimits& within) {
    const auto covers = [&](const std::string& symbol) {
      return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
    };
    if (std::none_of(left.begin(), left.end(), covers)) return;
    if (auto sizes = with_measured(problem, symbols, within, random)) {
      all.push_back(std::move(*sizes));
      std::erase_if(left, covers);
    }
  };
  if (problem.vary.empty()) return all;
  for (const std::string& free : problem.symbols) {
    std::vector<std::string> others = problem.symbols;
    std::erase(others, free);
    add(others, kBatteryLimits);
  }
  for (const std::string& symbol : problem.symbols) {
    add({symbol}, kBatteryLimits);
    add({symbol}, limits);
  }
  return all;
}

// "[3, 7]"
std::string index_text(const std::vector<std::int64_t>& index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace

std::uint64_t fresh_seed() {
  std::uint64_t seed = 0;
  while (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) {
  }
  return seed;
}

std::string seed_text(std::uint64_t seed) { return fmt::format("{:016x}", seed); }

Json sizes_json(const Sizes& sizes) {
  Json json = Json::object();
  for (const auto& [symbol, value] : sizes) json[symbol] = value;
  return json;
}

Result<std::vector<CasePlan>> plan_cases(const Problem& problem, int hidden, const DrawLimits& limits,
                                         const std::function<std::uint64_t()>& random) {
  std::vector<CasePlan> plans;
  int measured = 0;
  for (std::size_t i = 0; i < problem.check.size(); ++i)
    plans.push_back({fmt::format("check-{}", i), problem.check[i], random(), Battery::kPlain});
  // The first one once more, directly behind itself: other inputs of the same sizes at the same addresses.
  // Whatever was kept from the call before is wrong now.
  if (!plans.empty())
    plans.insert(plans.begin() + 1, {"check-0-again", problem.check.front(), random(), Battery::kPlain});
  for (int i = 0; i < hidden && !problem.vary.empty(); ++i) {
    CAPSTONE_TRY(Sizes sizes, draw_sizes(problem, random, Cost{limits.flops, limits.bytes}));
    plans.push_back({fmt::format("hidden-{}", i), std::move(sizes), random(), Battery::kPlain});
  }
  for (Sizes& sizes : measured_extents(problem, limits, random))
    plans.push_back(
        {fmt::format("measured-{}", measured++), std::move(sizes), random(), Battery::kPlain, {}, true});
  // Where `vary` has nothing that small, which only a long search shows, the cheapest size under `check`
  // serves all.
  bool drawable = !problem.vary.empty();
  for (const Battery battery : kBatteries) {
    if (!battery_applies(problem, battery)) continue;
    auto sizes = drawable ? draw_sizes(problem, random, Cost{kBatteryLimits.flops, kBatteryLimits.bytes})
                          : cheapest_check(problem);
    if (!sizes && drawable) {
      drawable = false;
      sizes = cheapest_check(problem);
    }
    if (!sizes) return fail(sizes.error());
    plans.push_back({std::string(name_of(battery)), std::move(*sizes), random(), battery});
  }
  return plans;
}

Result<CasePlan> plan_of(const Problem& problem, const CaseResult& recorded) {
  if (recorded.seed.empty() || !recorded.sizes.is_object())
    return fail("case " + recorded.id + " has no inputs of its own to run again", {},
                "run the whole of: capstone measure");
  CasePlan plan;
  plan.id = recorded.id;
  const char* end = recorded.seed.data() + recorded.seed.size();
  if (auto [stop, code] = std::from_chars(recorded.seed.data(), end, plan.seed, 16);
      code != std::errc() || stop != end)
    return fail("the seed of case " + recorded.id + " is not a number: " + recorded.seed);
  for (const std::string& symbol : problem.symbols) {
    auto value = recorded.sizes.find(symbol);
    if (value == recorded.sizes.end() || !value->is_number_integer())
      return fail(fmt::format("case {} was recorded without the size {}", recorded.id, symbol), problem.id,
                  "the problem has changed since; run the whole of: capstone measure");
    plan.sizes.emplace_back(symbol, value->get<std::int64_t>());
  }
  if (!recorded.battery.empty()) {
    auto battery = battery_named(recorded.battery);
    if (!battery)
      return fail(fmt::format("case {} has inputs of an unknown kind: {}", recorded.id, recorded.battery));
    plan.battery = *battery;
  }
  return plan;
}

CaseResult blank_result(const CasePlan& plan) {
  CaseResult result;
  result.id = plan.id;
  result.sizes = sizes_json(plan.sizes);
  result.seed = seed_text(plan.seed);
  if (plan.battery != Battery::kPlain) result.battery = name_of(plan.battery);
  return result;
}

Result<std::vector<BoundCase>> bind_cases(const Problem& problem, std::vector<CasePlan> plans) {
  std::vector<BoundCase> cases;
  for (CasePlan& plan : plans) {
    CAPSTONE_TRY(BoundProblem bound, bound_at(problem, plan.sizes));
    cases.push_back({std::move(plan), std::move(bound)});
  }
  return cases;
}

Result<Json> call_arguments(const BoundProblem& bound, const Layout& layout) {
  return arguments(bound, &layout);
}
Result<Json> call_arguments(const Problem& problem, const Layout& layout, const Sizes& sizes) {
  CAPSTONE_TRY(const BoundProblem bound, bound_at(problem, sizes));
  return call_arguments(bound, layout);
}
Json call_extents(const Problem& problem, const Layout& layout) {
  Json extents = Json::array();
  auto add = [&](const std::string& name, std::size_t at, std::size_t bytes, bool written) {
    if (bytes)
      extents.push_back(
          {{"name", name}, {"at", at}, {"bytes", bytes}, {"written", written}, {"device", true}});
  };
  for (const TensorSlot& slot : layout.tensors) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
    add(parameter.name, slot.offset, slot.bytes, parameter.role != Role::kOutput);
  }
  add("the workspace", layout.workspace_offset, layout.workspace_bytes, false);
  add("prepared", layout.prepared_offset, layout.prepared_bytes, true);
  return extents;
}
Result<Json> workspace_arguments(const BoundProblem& bound) { return arguments(bound, nullptr); }
Result<Json> workspace_arguments(const Problem& problem, const Sizes& sizes) {
  CAPSTONE_TRY(const BoundProblem bound, bound_at(problem, sizes));
  return workspace_arguments(bound);
}

Result<PreparedCase> prepare_inputs(const BoundCase& which, std::size_t workspace_bytes,
                                    std::size_t prepared_bytes) {
  const Problem& problem = *which.bound.problem;
  const CasePlan& plan = which.plan;
  PreparedCase prepared;
  prepared.plan = plan;
  CAPSTONE_TRY(prepared.layout, make_layout(which.bound, workspace_bytes, prepared_bytes));
  prepared.image.resize(prepared.layout.image_bytes());
  for (std::size_t i = 0; i < prepared.layout.tensors.size(); ++i) {
    const TensorSlot& slot = prepared.layout.tensors[i];
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
    if (const auto chosen = plan.values.find(slot.parameter); chosen != plan.values.end())
      store_all(parameter.dtype, std::span<const double>(chosen->second),
                part(std::span<std::byte>(prepared.image), slot));
    else if (parameter.role != Role::kOutput)
      CAPSTONE_CHECK(fill_tensor(problem, slot.parameter, plan.sizes, plan.seed, plan.battery,
                                 part(std::span<std::byte>(prepared.image), slot)));
    if (parameter.is_written()) prepared.outputs.push_back({slot.parameter, static_cast<int>(i), {}, {}});
  }
  return prepared;
}

Result<PreparedCase> prepare_inputs(const Problem& problem, const CasePlan& plan, std::size_t workspace_bytes,
                                    std::size_t prepared_bytes) {
  CAPSTONE_TRY(BoundProblem bound, bound_at(problem, plan.sizes));
  return prepare_inputs({plan, std::move(bound)}, workspace_bytes, prepared_bytes);
}

std::vector<std::span<const std::byte>> oracle_tensors(const Problem& problem, const PreparedCase& prepared) {
  std::vector<std::span<const std::byte>> tensors;
  for (const TensorSlot& slot : prepared.layout.tensors)
    if (problem.signature[static_cast<std::size_t>(slot.parameter)].role == Role::kOutput)
      tensors.emplace_back();
    else
      tensors.push_back(part(std::span<const std::byte>(prepared.image), slot));
  return tensors;
}

Result<PreparedCase> prepare_case(const BoundCase& which, const Oracle& oracle, std::size_t workspace_bytes,
                                  std::size_t prepared_bytes) {
  const Problem& problem = *which.bound.problem;
  CAPSTONE_TRY(PreparedCase prepared, prepare_inputs(which, workspace_bytes, prepared_bytes));
  const auto tensors = oracle_tensors(problem, prepared);
  for (PreparedCase::Output& output : prepared.outputs) {
    std::int64_t n = prepared.layout.tensors[static_cast<std::size_t>(output.slot)].elements;
    output.expected.resize(static_cast<std::size_t>(n));
    output.scale.resize(static_cast<std::size_t>(n));
    CAPSTONE_CHECK(oracle.evaluate_all(problem, which.plan.sizes, tensors, output.parameter, output.expected,
                                       output.scale));
  }
  return prepared;
}

Result<PreparedCase> prepare_case(const Problem& problem, const CasePlan& plan, const Oracle& oracle,
                                  std::size_t workspace_bytes, std::size_t prepared_bytes) {
  CAPSTONE_TRY(BoundProblem bound, bound_at(problem, plan.sizes));
  return prepare_case({plan, std::move(bound)}, oracle, workspace_bytes, prepared_bytes);
}

void poison_image(const Problem& problem, const PreparedCase& prepared, std::span<std::byte> image,
                  std::uint64_t seed) {
  const Layout& layout = prepared.layout;
  for (auto [offset, bytes] : layout.guards())
    if (offset < layout.image_bytes()) poison_bytes(image.subspan(offset, bytes), seed ^ offset);
  for (const TensorSlot& slot : layout.tensors) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
    if (parameter.role == Role::kOutput) poison(part(image, slot), parameter.dtype, seed);
  }
}

void hide_inputs(const Problem& problem, const PreparedCase& prepared, std::span<std::byte> image,
                 std::uint64_t seed) {
  for (const TensorSlot& slot : prepared.layout.tensors) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
    if (parameter.role != Role::kParameter) poison(part(image, slot), parameter.dtype, seed);
  }
  poison_bytes(image.subspan(prepared.layout.prepared_offset, prepared.layout.prepared_bytes),
               seed ^ 0xc2b2ae3d27d4eb4fu);
}

namespace {

// The tensor that lies nearest before a byte, for "written 12 bytes behind the end of y".
std::string describe_byte(const Problem& problem, const Layout& layout, std::size_t at) {
  const TensorSlot* before = nullptr;
  const TensorSlot* after = nullptr;
  for (const TensorSlot& slot : layout.tensors) {
    if (slot.offset + slot.bytes <= at && (!before || slot.offset > before->offset)) before = &slot;
    if (slot.offset > at && (!after || slot.offset < after->offset)) after = &slot;
  }
  auto name = [&](const TensorSlot& slot) {
    return problem.signature[static_cast<std::size_t>(slot.parameter)].name;
  };
  std::size_t behind = before ? at - (before->offset + before->bytes) : ~std::size_t{0};
  std::size_t ahead = after ? after->offset - at : ~std::size_t{0};
  if (before && behind <= ahead) return fmt::format("{} bytes behind the end of {}", behind, name(*before));
  if (after) return fmt::format("{} bytes before the start of {}", ahead, name(*after));
  return "outside every tensor";
}

// Notes a write outside of every tensor, the workspace and what prepare() made; true when there was one.
bool guards_broken(const Problem& problem, const Layout& layout, std::span<const std::byte> before,
                   std::span<const std::byte> after, std::optional<std::size_t> overwritten,
                   CaseResult& result) {
  std::optional<std::size_t> written;
  for (auto [offset, bytes] : layout.guards()) {
    if (offset >= layout.image_bytes()) break;
    if (std::memcmp(before.data() + offset, after.data() + offset, bytes) == 0) continue;
    for (written = offset; before[*written] == after[*written];) ++*written;
    break;
  }
  if (!written) written = overwritten;
  if (!written) return false;
  result.problem = "memory outside the tensors was written";
  result.where = describe_byte(problem, layout, *written);
  result.hint = "an index runs past the end: guard the last block with `if (i < n)`, and check ragged sizes";
  return true;
}

bool same_bytes(std::span<const std::byte> before, std::span<const std::byte> after, std::size_t offset,
                std::size_t bytes) {
  return std::memcmp(before.data() + offset, after.data() + offset, bytes) == 0;
}

}  // namespace

std::string first_difference(const Problem& problem, const Layout& layout, std::span<const std::byte> one,
                             std::span<const std::byte> other) {
  for (const TensorSlot& slot : layout.tensors) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
    if (!parameter.is_written()) continue;
    const auto a = part(one, slot), b = part(other, slot);
    const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first;
    if (at == a.end()) continue;
    const auto element =
        static_cast<std::int64_t>(static_cast<std::size_t>(at - a.begin()) / unit_bytes(parameter.dtype)) *
        elements_per_unit(parameter.dtype);
    return parameter.name + index_text(multi_index(slot.shape, element));
  }
  return {};
}

CaseResult examine_preparation(const Problem& problem, const PreparedCase& prepared,
                               std::span<const std::byte> before, std::span<const std::byte> after,
                               std::optional<std::size_t> overwritten) {
  CaseResult result = blank_result(prepared.plan);
  const Layout& layout = prepared.layout;
  const bool in_workspace = overwritten && *overwritten < layout.workspace_offset + layout.workspace_bytes;
  if (guards_broken(problem, layout, before, after, in_workspace ? std::nullopt : overwritten, result)) {
    result.problem = "prepare(): " + result.problem;
    return result;
  }
  for (const TensorSlot& slot : layout.tensors) {
    if (same_bytes(before, after, slot.offset, slot.bytes)) continue;
    result.problem = "prepare() changed " + problem.signature[static_cast<std::size_t>(slot.parameter)].name;
    result.hint = "prepare() writes to `prepared` alone";
    return result;
  }
  if (in_workspace) {
    result.problem = "prepare() wrote to the workspace";
    result.hint = "prepare() writes to `prepared` alone; the workspace belongs to one launch";
    return result;
  }
  result.passed = true;
  return result;
}

CaseResult examine(const Problem& problem, const PreparedCase& prepared, std::span<const std::byte> before,
                   std::span<const std::byte> after, std::uint64_t poison_seed,
                   std::optional<std::size_t> overwritten) {
  CaseResult result = blank_result(prepared.plan);
  if (guards_broken(problem, prepared.layout, before, after, overwritten, result)) return result;
  for (const TensorSlot& slot : prepared.layout.tensors) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
    if (parameter.is_written()) continue;
    if (same_bytes(before, after, slot.offset, slot.bytes)) continue;
    result.problem = "the input " + parameter.name + " was changed";
    result.hint = "inputs are read-only: write intermediates to the workspace (declare workspace_bytes)";
    return result;
  }
  if (!same_bytes(before, after, prepared.layout.prepared_offset, prepared.layout.prepared_bytes)) {
    result.problem = "launch() changed what prepare() made";
    result.hint = "`prepared` is read-only in launch(): nothing may be kept from one launch to the next";
    return result;
  }
  result.passed = true;
  std::vector<NamedTensor> inputs;
  for (const TensorSlot& slot : prepared.layout.tensors) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
    if (!parameter.is_written()) inputs.push_back({parameter.name, parameter.dtype, part(before, slot)});
  }
  for (const PreparedCase::Output& output : prepared.outputs) {
    const TensorSlot& slot = prepared.layout.tensors[static_cast<std::size_t>(output.slot)];
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(output.parameter)];
    auto got = part(after, slot);
    Comparison comparison = compare(parameter.dtype, got, output.expected, output.scale, problem.tolerance);
    result.max_abs = std::max(result.max_abs, comparison.max_abs);
    result.max_rel = std::max(result.max_rel, comparison.max_rel);
    result.rms = std::max(result.rms, comparison.rms);
    if (comparison.passed) continue;
    Diagnosis diagnosis = diagnose(parameter.name, parameter.dtype, slot.shape, got, output.expected,
                                   output.scale, problem.tolerance, poison_seed, inputs);
    result.passed = false;
    result.problem = "wrong result: " + diagnosis.pattern;
    result.hint = diagnosis.hint;
    result.diagnosis = std::move(diagnosis);
    break;
  }
  return result;
}

}  // namespace capstone
