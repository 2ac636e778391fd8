#include "harness/judge/reference_oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "harness/base/text.h"
#include "harness/correctness/cases.h"
#include "harness/correctness/inputs.h"
#include "harness/judge/gate_one.h"
#include "harness/runtime/oracle/sandboxed_oracle.h"
#include "harness/runtime/python/runner.h"

namespace capstone {
namespace {

constexpr auto kPatience = std::chrono::seconds(300);  // for one set of inputs: float64 on a few cores

Error oracle_failure(const WorkerFailure& failure) {
  if (failure.kind == WorkerFailure::Kind::kInterrupted)
    return {"interrupted", {}, {}, ExitCode::kInterrupted};
  using Kind = WorkerFailure::Kind;
  const bool surroundings = failure.report_kind == kNoPyTorch || failure.report_kind == kOutOfMemory ||
                            failure.kind != Kind::kReported;
  // What a worker is advised to do when it is stopped is meant for kernels.
  const bool too_large = failure.kind == Kind::kMemory || failure.kind == Kind::kTimedOut;
  return {"the reference cannot be computed in float64: " + failure.what, failure.where,
          too_large ? "smaller sizes under `check` and `vary` in problem.yaml" : failure.hint,
          surroundings ? ExitCode::kEnvironment : ExitCode::kUsage, failure.trace};
}

class PythonOracle : public ReferenceOracle {
 public:
  PythonOracle(const Problem& problem, std::unique_ptr<Runner> runner)
      : runner_(std::move(runner)), id_(problem.id) {}

  Result<void> evaluate(const Problem& problem, const Sizes& sizes,
                        const std::vector<std::span<const std::byte>>& tensors, int output_parameter,
                        std::span<const std::int64_t> indices, std::span<double> value,
                        std::span<double> scale) override {
    const std::lock_guard lock(mutex_);
    const std::string key = key_of(sizes, tensors);
    if (key != key_) {
      key_.clear();
      CAPSTONE_CHECK(compute(problem, sizes, tensors));
      key_ = key;
    }
    for (const Answer& answer : answers_) {
      if (answer.parameter != output_parameter) continue;
      const double* values = at(answer.value);
      const double* scales = at(answer.scale);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] < 0 || indices[i] >= answer.elements)
          return fail(fmt::format("element {} of {} is asked for", indices[i], answer.elements), id_, {},
                      ExitCode::kInternal);
        value[i] = values[indices[i]];
        scale[i] = scales[indices[i]];
      }
      return {};
    }
    return fail(fmt::format("parameter {} of {} is no output", output_parameter, id_), {}, {},
                ExitCode::kInternal);
  }

  double rounding() const override { return rounding_; }

 private:
  struct Answer {
    int parameter;
    std::int64_t elements;
    std::size_t value, scale;  ///< [B] from the start of image_
  };

  const double* at(std::size_t offset) const {
    return reinterpret_cast<const double*>(image_.data() + offset);
  }

  static std::string key_of(const Sizes& sizes, const std::vector<std::span<const std::byte>>& tensors) {
    std::string key = to_string(sizes);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      key += fmt::format(" {:x}", fingerprint(tensors[i], i + 1));
    return key;
  }

  Result<void> compute(const Problem& problem, const Sizes& sizes,
                       const std::vector<std::span<const std::byte>>& tensors) {
    CAPSTONE_TRY(const BoundProblem bound, bound_at(problem, sizes));
    CAPSTONE_TRY(const Layout layout, make_layout(bound, 0));
    answers_.clear();
    std::size_t bytes = layout.bytes;
    auto more = [&bytes](std::int64_t elements) {
      const std::size_t begin = (bytes + Layout::kAlign - 1) / Layout::kAlign * Layout::kAlign;
      bytes = begin + static_cast<std::size_t>(elements) * sizeof(double);
      return begin;
    };
    Json places = Json::array();
    for (const TensorSlot& slot : layout.tensors) {
      if (!problem.signature[static_cast<std::size_t>(slot.parameter)].is_written()) continue;
      answers_.push_back({slot.parameter, slot.elements, more(slot.elements), more(slot.elements)});
      places.push_back({{"value_at", answers_.back().value}, {"scale_at", answers_.back().scale}});
    }
    image_.assign(bytes, std::byte{0});
    for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
      if (tensors.at(i).empty()) continue;
      std::memcpy(image_.data() + layout.tensors[i].offset, tensors[i].data(), tensors[i].size());
    }
    CAPSTONE_TRY(int memory, arena_.resize(bytes));
    CAPSTONE_CHECK(arena_.load(image_));
    if (auto mapped = runner_->ask({{"op", "arena"}, {"bytes", bytes}}, std::chrono::seconds(60), memory);
        !mapped)
      return fail(oracle_failure(mapped.error()));
    CAPSTONE_TRY(Json args, call_arguments(bound, layout));
    auto answer = runner_->ask({{"op", "exact"}, {"args", args}, {"places", places}}, kPatience, -1);
    if (!answer) return fail(oracle_failure(answer.error()));
    const auto worst = answer->message.find("worst");
    rounding_ = worst != answer->message.end() && worst->is_number() ? worst->get<double>() : 0;
    return arena_.fetch(image_);
  }

  std::unique_ptr<Runner> runner_;
  std::string id_;
  std::mutex mutex_;
  MemfdArena arena_;
  std::string key_;  ///< of what answers_ belong to
  std::vector<Answer> answers_;
  double rounding_ = 0;
  std::vector<std::byte> image_;
};

}  // namespace

Result<std::shared_ptr<ReferenceOracle>> load_reference_oracle(const Problem& problem,
                                                               const Resources& resources,
                                                               const std::string& wanted) {
  CAPSTONE_TRY(const Python python, find_python(wanted == "none" ? "auto" : wanted, resources));
  PythonWork work;
  work.problem = &problem;
  work.resources = &resources;
  work.python = &python;
  work.builds = resources.cache / "python" / "oracle";
  auto runner = start_python(work, Sandbox::detect(resources));
  if (!runner) return fail(oracle_failure(runner.error()));
  return std::make_shared<PythonOracle>(problem, std::move(*runner));
}

Result<Oracle> load_oracle(const Problem& problem, const Resources& resources, const std::string& wanted,
                           const Sandbox* sandbox) {
  if (!problem.oracle_is_reference)
    return start_oracle(problem, resources, sandbox ? *sandbox : Sandbox::detect(resources));
  CAPSTONE_TRY(auto reference, load_reference_oracle(problem, resources, wanted));
  return Oracle(std::move(reference));
}

}  // namespace capstone
