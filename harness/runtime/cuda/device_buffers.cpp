#include "harness/runtime/cuda/device_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "harness/base/json_number.h"
#include "harness/correctness/compare.h"
#include "harness/model/record.h"

namespace capstone {
namespace {

constexpr int kProbes = 2048;      // elements that the oracle computes at the measured size
constexpr int kNearby = 8;         // parts on each side whose scales an element may have, too
constexpr double kTimedSlack = 2;  // timed runs are compared with a reference that has errors of its own

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

Json fingerprint_step(const TensorSlot& slot, std::uint64_t seed) {
  return {{"do", "fingerprint"}, {"at", slot.offset}, {"bytes", slot.bytes}, {"seed", seed}};
}

// Value k of what a "gather" step returned.
Result<double> gathered(const Json& result, std::size_t k) {
  const std::optional<double> value = number_from(result.at("values").at(k));
  if (!value) return fail("the GPU host answered with something that is no number");
  return *value;
}

// Ascending; the same index may come twice in a small tensor.
std::vector<std::int64_t> one_in_each_part(std::int64_t elements, std::mt19937_64& random) {
  std::vector<std::int64_t> indices(kProbes);
  for (std::int64_t k = 0; k < kProbes; ++k) {
    const std::int64_t begin = elements * k / kProbes;
    const std::int64_t end = std::max(begin + 1, elements * (k + 1) / kProbes);
    indices[static_cast<std::size_t>(k)] =
        std::min(elements - 1, std::uniform_int_distribution<std::int64_t>(begin, end - 1)(random));
  }
  return indices;
}

// Scales differ from element to element; one probe a part would say too little about its neighbours.
std::vector<double> largest_nearby(const std::vector<double>& scale) {
  std::vector<double> most(scale.size());
  for (std::size_t k = 0; k < scale.size(); ++k) {
    const auto first = scale.begin() + static_cast<std::ptrdiff_t>(k > kNearby ? k - kNearby : 0);
    const auto last = scale.begin() + static_cast<std::ptrdiff_t>(std::min(scale.size(), k + kNearby + 1));
    most[k] = *std::max_element(first, last);
  }
  return most;
}

// Lengths and counts that come in another order with each seed: what one seed says about an element's scale
// does not hold for the next.
bool scales_move(const Problem& problem) {
  return std::any_of(problem.signature.begin(), problem.signature.end(), [](const Parameter& p) {
    return std::holds_alternative<InitLengths>(p.init) || std::holds_alternative<InitOffsets>(p.init) ||
           std::holds_alternative<InitCounts>(p.init) || std::holds_alternative<InitTopK>(p.init);
  });
}

// The scales that timed runs with other seeds are compared by. An element that they cannot decide costs the
// inputs once more on the host, some seconds for each GB.
std::vector<double> scales_of_timed_runs(const Problem& problem, const std::vector<double>& scale) {
  if (!scales_move(problem)) return largest_nearby(scale);
  return std::vector<double>(scale.size(), *std::max_element(scale.begin(), scale.end()));
}

}  // namespace

Result<void> DeviceBuffers::lay_out(PrivateBytes bytes) {
  CAPSTONE_TRY(const BoundProblem bound, bound_at(problem_, problem_.measure));
  CAPSTONE_TRY(layout_, make_layout(bound, bytes.workspace, bytes.prepared));
  for (const TensorSlot& slot : layout_.tensors) {
    expected_at_.push_back(expected_bytes_);
    if (parameter(slot).is_written()) expected_bytes_ += aligned(slot.bytes);
  }
  expected_prepared_ = expected_bytes_;
  expected_bytes_ += aligned(bytes.prepared);
  // The same calls every time: made once.
  CAPSTONE_TRY(args_, call_arguments(bound, layout_));
  expected_args_ = args_;
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i)
    if (parameter(layout_.tensors[i]).is_written())
      expected_args_[static_cast<std::size_t>(layout_.tensors[i].parameter)] = {
          {"expected", expected_at_[i]}};
  return {};
}

Result<void> DeviceBuffers::map() {
  CAPSTONE_TRY(memory_, gpu_host_.resize(layout_.bytes));
  CAPSTONE_TRY(expected_memory_, gpu_host_.make_expected(expected_bytes_));
  return {};
}

tl::expected<void, WorkerFailure> DeviceBuffers::share(Runner& runner, bool trusted) const {
  constexpr auto kTimeout = std::chrono::seconds(60);
  if (auto mapped = runner.ask({{"op", "arena"}, {"bytes", layout_.bytes}}, kTimeout, memory_); !mapped)
    return tl::unexpected(mapped.error());
  if (!trusted) return {};
  if (auto mapped = runner.ask({{"op", "expected"}, {"bytes", expected_bytes_}}, kTimeout, expected_memory_);
      !mapped)
    return tl::unexpected(mapped.error());
  return {};
}

// The table and the lengths are in place when the steps run: they are uploaded before.
Json DeviceBuffers::poison_step(const PagedCache& cache, const char* arena, std::size_t place,
                                DType dtype) const {
  const auto slot_of = [this](int parameter) -> const TensorSlot& {
    return *std::find_if(layout_.tensors.begin(), layout_.tensors.end(),
                         [&](const TensorSlot& slot) { return slot.parameter == parameter; });
  };
  const TensorSlot &table = slot_of(cache.table), &lengths = slot_of(cache.lengths);
  return {{"do", "poison_pages"},
          {"arena", arena},
          {"at", place},
          {"dtype", name_of(dtype)},
          {"seed", cache.unused.seed},
          {"table", table.offset},
          {"table_dtype", name_of(parameter(table).dtype)},
          {"lengths", lengths.offset},
          {"lengths_dtype", name_of(parameter(lengths).dtype)},
          {"sequences", cache.sequences},
          {"pages_each", cache.unused.pages_each},
          {"slots", cache.unused.slots},
          {"row", cache.unused.row}};
}

Result<void> DeviceBuffers::fill_tensor_on_device(Json& steps, const TensorSlot& slot, const char* arena,
                                                  std::size_t place, std::uint64_t seed) {
  const Parameter& p = parameter(slot);
  CAPSTONE_TRY(auto draw, draw_of(problem_, slot.parameter, problem_.measure, seed, Battery::kPlain));
  if (draw) {
    steps.push_back({{"do", "fill"},
                     {"arena", arena},
                     {"at", place},
                     {"elements", slot.elements},
                     {"dtype", name_of(p.dtype)},
                     {"draw", draw_json(*draw)}});
    CAPSTONE_TRY(const auto cache, paged_cache_of(problem_, slot.parameter, problem_.measure, seed));
    if (cache) steps.push_back(poison_step(*cache, arena, place, p.dtype));
    return {};
  }
  // Permutations, offsets and tables of whole numbers are made on the host.
  std::vector<std::byte> bytes(slot.bytes);
  CAPSTONE_CHECK(fill_tensor(problem_, slot.parameter, problem_.measure, seed, Battery::kPlain, bytes));
  return gpu_host_.upload(place, bytes, arena);
}

Result<void> DeviceBuffers::fill_parameters(std::uint64_t seed) {
  Json steps = Json::array();
  for (const TensorSlot& slot : layout_.tensors) {
    const Parameter& p = parameter(slot);
    if (p.role == Role::kParameter)
      CAPSTONE_CHECK(fill_tensor_on_device(steps, slot, "tensors", slot.offset, seed));
    else
      steps.push_back({{"do", "poison"},
                       {"at", slot.offset},
                       {"elements", slot.elements},
                       {"dtype", name_of(p.dtype)},
                       {"seed", seed + 2}});
  }
  steps.push_back({{"do", "poison_bytes"},
                   {"at", layout_.prepared_offset},
                   {"bytes", layout_.prepared_bytes},
                   {"seed", seed + 3}});
  CAPSTONE_TRY(auto done, gpu_host_.batch(std::move(steps)));
  (void)done;
  return {};
}

Result<void> DeviceBuffers::fill(std::uint64_t seed, bool dirty) {
  seed_ = seed;
  Json steps = Json::array();
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    const TensorSlot& slot = layout_.tensors[i];
    const Parameter& p = parameter(slot);
    if (p.role == Role::kOutput) {
      for (const char* arena : {"tensors", "expected"})
        steps.push_back({{"do", "poison"},
                         {"arena", arena},
                         {"at", arena[0] == 't' ? slot.offset : expected_at_[i]},
                         {"elements", slot.elements},
                         {"dtype", name_of(p.dtype)},
                         {"seed", seed}});
      continue;
    }
    CAPSTONE_CHECK(fill_tensor_on_device(steps, slot, "tensors", slot.offset, seed));
    if (p.is_written()) CAPSTONE_CHECK(fill_tensor_on_device(steps, slot, "expected", expected_at_[i], seed));
  }
  for (auto [offset, size] : layout_.guards())
    steps.push_back({{"do", "poison_bytes"}, {"at", offset}, {"bytes", size}, {"seed", seed ^ offset}});
  if (layout_.workspace_bytes)
    steps.push_back({{"do", "poison_bytes"},
                     {"at", layout_.workspace_offset},
                     {"bytes", layout_.workspace_bytes},
                     {"seed", seed + 1}});
  // Inputs are known again by a number; making them once more would cost more than a launch.
  std::vector<std::size_t> read_only;
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i)
    if (!parameter(layout_.tensors[i]).is_written()) read_only.push_back(i);
  const std::size_t first = steps.size();
  for (std::size_t i : read_only) steps.push_back(fingerprint_step(layout_.tensors[i], seed));
  steps.push_back({{"do", "flush"}, {"dirty", dirty}});
  CAPSTONE_TRY(Json done, gpu_host_.batch(std::move(steps)));
  for (std::size_t k = 0; k < read_only.size(); ++k)
    inputs_[read_only[k]] = done[first + k].at("value").get<std::uint64_t>();
  return {};
}

Json DeviceBuffers::run_request(bool into_expected, int repeat, std::int64_t hide_ns) const {
  Json request{{"op", "run"},
               {"args", into_expected ? expected_args_ : args_},
               {"repeat", repeat},
               {"hide_ns", hide_ns}};
  request["workspace"] = layout_.workspace_bytes ? Json(layout_.workspace_offset) : Json(nullptr);
  if (problem_.prepare)
    request["prepared"] =
        into_expected ? Json{{"expected", expected_prepared_}} : Json(layout_.prepared_offset);
  return request;
}

Json DeviceBuffers::prepare_request(bool into_expected) const {
  Json request{{"op", "prepare"}, {"args", into_expected ? expected_args_ : args_}};
  request["prepared"] =
      into_expected ? Json{{"expected", expected_prepared_}} : Json(layout_.prepared_offset);
  return request;
}

Json DeviceBuffers::guard_bands() const {
  Json bands = Json::array();
  for (auto [offset, size] : layout_.guards())
    bands.push_back({{"at", offset}, {"bytes", size}, {"seed", seed_ ^ offset}});
  return bands;
}

void DeviceBuffers::add_fingerprints(Json& steps) const {
  for (const TensorSlot& slot : layout_.tensors)
    if (parameter(slot).is_written()) steps.push_back(fingerprint_step(slot, hash_seed_));
}

Result<std::vector<std::uint64_t>> DeviceBuffers::fingerprints() {
  hash_seed_ = fresh_seed();  // drawn late, so that no candidate can aim at a collision
  Json steps = Json::array();
  add_fingerprints(steps);
  CAPSTONE_TRY(Json results, gpu_host_.batch(std::move(steps)));
  std::vector<std::uint64_t> values;
  for (const Json& result : results) values.push_back(result.at("value").get<std::uint64_t>());
  return values;
}

Result<std::string> DeviceBuffers::verify(const std::vector<std::uint64_t>& before) {
  Json steps = Json::array();
  add_fingerprints(steps);
  const std::size_t outputs = steps.size();
  for (auto [offset, size] : layout_.guards())
    steps.push_back({{"do", "check_bytes"}, {"at", offset}, {"bytes", size}, {"seed", seed_ ^ offset}});
  const std::size_t guards_end = steps.size();
  std::vector<std::pair<std::size_t, std::size_t>> compared;  // step, tensor
  std::vector<std::pair<std::size_t, std::size_t>> again;     // step, tensor: inputs by their fingerprints
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    const TensorSlot& slot = layout_.tensors[i];
    const Parameter& p = parameter(slot);
    if (p.is_written()) {
      compared.emplace_back(steps.size(), i);
      steps.push_back({{"do", "compare"},
                       {"got", slot.offset},
                       {"expected", expected_at_[i]},
                       {"elements", slot.elements},
                       {"dtype", name_of(p.dtype)},
                       {"rtol", kTimedSlack * problem_.tolerance.rtol},
                       {"atol", kTimedSlack * problem_.tolerance.atol},
                       {"scales", i}});
    } else {
      again.emplace_back(steps.size(), i);
      steps.push_back(fingerprint_step(slot, seed_));
    }
  }
  CAPSTONE_TRY(Json results, gpu_host_.batch(std::move(steps)));
  for (std::size_t i = 0; i < outputs && i < before.size(); ++i)
    if (results[i].at("value").get<std::uint64_t>() != before[i])
      return std::string(
          "an output changed after launch() had ended: work was still going on that `stream` does not wait "
          "for");
  for (std::size_t i = outputs; i < guards_end; ++i)
    if (results[i].at("wrong").get<std::int64_t>())
      return std::string("memory outside the tensors was written in a timed run");
  for (auto& [at, tensor] : again)
    if (results[at].at("value").get<std::uint64_t>() != inputs_[tensor])
      return fmt::format("the input {} was changed in a timed run", parameter(layout_.tensors[tensor]).name);
  for (auto& [at, tensor] : compared) {
    const Parameter& p = parameter(layout_.tensors[tensor]);
    const auto wrong = results[at].at("wrong").get<std::int64_t>();
    if (wrong)
      return fmt::format(
          "wrong result in a timed run: {} elements of the output {} differ from the reference's", wrong,
          p.name);
    if (results[at].at("suspects").empty()) continue;
    CAPSTONE_TRY(std::string why,
                 decide_suspects(tensor, results[at]["suspects"].get<std::vector<std::int64_t>>()));
    if (!why.empty()) return why;
  }
  return std::string();
}

Result<std::vector<std::vector<std::byte>>> DeviceBuffers::inputs_on_host() const {
  std::vector<std::vector<std::byte>> inputs(layout_.tensors.size());
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    const TensorSlot& slot = layout_.tensors[i];
    if (parameter(slot).role == Role::kOutput) continue;
    inputs[i].resize(slot.bytes);
    CAPSTONE_CHECK(
        fill_tensor(problem_, slot.parameter, problem_.measure, seed_, Battery::kPlain, inputs[i], 0));
  }
  return inputs;
}

Result<std::string> DeviceBuffers::decide_suspects(std::size_t tensor,
                                                   const std::vector<std::int64_t>& suspects) {
  if (problem_.oracle_is_reference) return std::string();  // its scale is the same everywhere
  const TensorSlot& slot = layout_.tensors[tensor];
  const Parameter& p = parameter(slot);
  std::vector<std::int64_t> indices = suspects;
  std::sort(indices.begin(), indices.end());
  CAPSTONE_TRY(const auto inputs, inputs_on_host());
  std::vector<double> value(indices.size()), scale(indices.size());
  CAPSTONE_CHECK(oracle_.evaluate(problem_, problem_.measure,
                                  std::vector<std::span<const std::byte>>(inputs.begin(), inputs.end()),
                                  slot.parameter, indices, value, scale));
  CAPSTONE_TRY(Json results, gpu_host_.batch(Json::array({{{"do", "gather"},
                                                           {"arena", "tensors"},
                                                           {"at", slot.offset},
                                                           {"dtype", name_of(p.dtype)},
                                                           {"indices", indices}}})));
  Tolerance allowed = problem_.tolerance;
  allowed.atol *= kTimedSlack;
  allowed.rtol *= kTimedSlack;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    CAPSTONE_TRY(const double got, gathered(results[0], k));
    if (!is_right(p.dtype, got, value[k], scale[k], allowed))
      return fmt::format(
          "wrong result in a timed run: element {} of the output {} is {}, the oracle says {}", indices[k],
          p.name, number_text(got, 7), number_text(value[k], 7));
    const auto part = std::min<std::size_t>(
        static_cast<std::size_t>(double(indices[k]) * double(scales_[tensor].size()) / double(slot.elements)),
        scales_[tensor].size() - 1);
    scales_[tensor][part] = std::max(scales_[tensor][part], scale[k]);
  }
  CAPSTONE_CHECK(send_scales(tensor));
  return std::string();
}

Result<void> DeviceBuffers::send_scales(std::size_t tensor) {
  CAPSTONE_TRY(
      auto done,
      gpu_host_.batch(Json::array({{{"do", "scales"}, {"id", tensor}, {"values", scales_[tensor]}}})));
  (void)done;
  return {};
}

Result<void> DeviceBuffers::ask_oracle() {
  if (!probes_.empty() && probe_seed_ == seed_) return {};
  CAPSTONE_TRY(const auto inputs, inputs_on_host());
  const std::vector<std::span<const std::byte>> tensors(inputs.begin(), inputs.end());
  std::mt19937_64 random(fresh_seed());
  probes_.assign(layout_.tensors.size(), {});
  scales_.assign(layout_.tensors.size(), {});
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    const TensorSlot& slot = layout_.tensors[i];
    if (!parameter(slot).is_written()) continue;
    Probe& probe = probes_[i];
    probe.indices = one_in_each_part(slot.elements, random);
    probe.value.resize(kProbes);
    probe.scale.resize(kProbes);
    CAPSTONE_CHECK(oracle_.evaluate(problem_, problem_.measure, tensors, slot.parameter, probe.indices,
                                    probe.value, probe.scale));
    scales_[i] = scales_of_timed_runs(problem_, probe.scale);
    CAPSTONE_CHECK(send_scales(i));
  }
  probe_seed_ = seed_;
  return {};
}

Result<void> DeviceBuffers::take_scale_of_reference() {
  std::mt19937_64 random(fresh_seed());
  scales_.assign(layout_.tensors.size(), {});
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    const TensorSlot& slot = layout_.tensors[i];
    if (!parameter(slot).is_written()) continue;
    const std::vector<std::int64_t> indices = one_in_each_part(slot.elements, random);
    CAPSTONE_TRY(Json results, gpu_host_.batch(Json::array({{{"do", "gather"},
                                                             {"arena", "expected"},
                                                             {"at", expected_at_[i]},
                                                             {"dtype", name_of(parameter(slot).dtype)},
                                                             {"indices", indices}}})));
    double sum = 0;
    int finite = 0;
    for (const Json& value : results[0].at("values"))
      if (value.is_number() && std::isfinite(value.get<double>())) {
        sum += value.get<double>() * value.get<double>();
        ++finite;
      }
    scales_[i] = {finite ? std::sqrt(sum / finite) : 0};
    CAPSTONE_CHECK(send_scales(i));
  }
  return {};
}

Result<std::string> DeviceBuffers::probe(bool expected_copy) {
  if (problem_.oracle_is_reference) {
    if (expected_copy) CAPSTONE_CHECK(take_scale_of_reference());
    return std::string();
  }
  CAPSTONE_CHECK(ask_oracle());
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    const TensorSlot& slot = layout_.tensors[i];
    const Parameter& p = parameter(slot);
    if (!p.is_written()) continue;
    const Probe& probe = probes_[i];
    CAPSTONE_TRY(Json results,
                 gpu_host_.batch(Json::array({{{"do", "gather"},
                                               {"arena", expected_copy ? "expected" : "tensors"},
                                               {"at", expected_copy ? expected_at_[i] : slot.offset},
                                               {"dtype", name_of(p.dtype)},
                                               {"indices", probe.indices}}})));
    int wrong = 0;
    double worst = 0;
    for (int k = 0; k < kProbes; ++k) {
      CAPSTONE_TRY(const double got, gathered(results[0], static_cast<std::size_t>(k)));
      if (!is_right(p.dtype, got, probe.value[k], probe.scale[k], problem_.tolerance)) ++wrong;
      if (got != probe.value[k]) worst = std::max(worst, std::fabs(got - probe.value[k]));
    }
    if (wrong)
      return fmt::format(
          "wrong result at the measured size: {} of {} probed elements of {} are outside the tolerance "
          "(largest error {:.3g})",
          wrong, kProbes, p.name, worst);
  }
  return std::string();
}

}  // namespace capstone
