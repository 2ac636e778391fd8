#include "harness/lint/reference.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/check/compare.h"
#include "harness/check/diagnose.h"
#include "harness/check/dtype_convert.h"
#include "harness/judge/cases.h"

namespace capstone {
namespace {

constexpr int kNoTorch = 3;  // run_reference.py's exit code

// A tensor as run_reference.py reads it: every type widened to float64 or int64.
Result<Json> store_wide(const PreparedCase& prepared, const TensorSlot& slot, const Parameter& parameter, const fs::path& scratch) {
  const std::byte* data = prepared.image.data() + slot.offset;
  const bool real = is_float(parameter.dtype);
  std::string bytes(static_cast<std::size_t>(slot.elements) * 8, '\0');
  for (std::int64_t i = 0; i < slot.elements; ++i) {
    const double value = load_as_double(parameter.dtype, data, i);
    const auto whole = static_cast<std::int64_t>(value);
    std::memcpy(bytes.data() + 8 * i, real ? static_cast<const void*>(&value) : &whole, 8);
  }
  const fs::path file = scratch / (parameter.name + ".in");
  CAPSTONE_CHECK(write_file_atomic(file, bytes));
  return Json{{"file", file.string()}, {"real", real}, {"shape", slot.shape}, {"python", parameter.python}};
}

Result<Json> request_for(const Problem& problem, const PreparedCase& prepared, const fs::path& scratch) {
  Json request{{"reference", (problem.folder / "reference.py").string()}, {"sizes", sizes_json(prepared.plan.sizes)},
               {"inputs", Json::array()}, {"parameters", Json::array()}, {"outputs", Json::array()}};
  for (const TensorSlot& slot : prepared.layout.tensors) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(slot.parameter)];
    if (parameter.role != Role::kOutput) {
      CAPSTONE_TRY(Json tensor, store_wide(prepared, slot, parameter, scratch));
      request[parameter.python.empty() ? "inputs" : "parameters"].push_back(std::move(tensor));
    }
    if (parameter.is_written())
      request["outputs"].push_back({{"name", parameter.name}, {"file", (scratch / (parameter.name + ".out")).string()}, {"shape", slot.shape}});
  }
  return request;
}

// The first element on which the two disagree, in words; empty: none.
Result<std::string> disagreement(const Problem& problem, const PreparedCase& prepared, const fs::path& scratch) {
  for (const PreparedCase::Output& output : prepared.outputs) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(output.parameter)];
    const TensorSlot& slot = prepared.layout.tensors[static_cast<std::size_t>(output.slot)];
    CAPSTONE_TRY(const std::string bytes, read_file(scratch / (parameter.name + ".out"), output.expected.size() * 8));
    if (bytes.size() != output.expected.size() * 8) return parameter.name + " came back with another number of elements";
    for (std::size_t i = 0; i < output.expected.size(); ++i) {
      double got = 0;
      std::memcpy(&got, bytes.data() + 8 * i, sizeof got);
      if (is_right(parameter.dtype, got, output.expected[i], output.scale[i], problem.tolerance)) continue;
      std::string index;
      for (std::int64_t at : multi_index(slot.shape, static_cast<std::int64_t>(i))) index += (index.empty() ? "" : ", ") + std::to_string(at);
      return fmt::format("{}[{}] is {} by reference.py and {} by the oracle", parameter.name, index, number_text(got, 9),
                         number_text(output.expected[i], 9));
    }
  }
  return std::string();
}

}  // namespace

Result<LintCheck> check_reference(const Problem& problem, const Oracle& oracle, const Resources& resources, const fs::path& scratch) {
  using State = LintCheck::State;
  const std::string where = (problem.folder / "reference.py").string();
  std::error_code code;
  if (!fs::exists(where, code))
    return LintCheck{State::kFailed, "reference", "there is no reference.py", where, "write Model, get_inputs() and get_init_inputs()"};
  const auto python = find_program("python3", resources.path_variable);
  if (!python) return LintCheck{State::kNotRun, "reference", "python3 not found", {}, {}};
  std::uint64_t seed = 1;
  for (const Sizes& sizes : problem.check) {
    CAPSTONE_TRY(const PreparedCase prepared, prepare_case(problem, {"reference", sizes, seed++, Battery::kPlain}, oracle, 0));
    CAPSTONE_TRY(const Json request, request_for(problem, prepared, scratch));
    CAPSTONE_CHECK(write_file_atomic(scratch / "request.json", request.dump()));
    ProcessSpec spec;
    spec.argv = {python->string(), (resources.share / "harness" / "lint" / "run_reference.py").string(), (scratch / "request.json").string()};
    spec.timeout = std::chrono::minutes(3);
    CAPSTONE_TRY(const ProcessResult ran, run_process(spec));
    if (ran.end == ProcessResult::End::kInterrupted) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (ran.end == ProcessResult::End::kExited && ran.status == kNoTorch) return LintCheck{State::kNotRun, "reference", "torch not found", {}, {}};
    if (!ran.ok()) {
      const auto lines = split(std::string(trim(ran.err)), '\n');
      return LintCheck{State::kFailed, "reference", fmt::format("reference.py fails at {}: {}", to_string(sizes), lines.back()), where,
                       "it must run with its size constants set to every size under `check`"};
    }
    CAPSTONE_TRY(const std::string difference, disagreement(problem, prepared, scratch));
    if (!difference.empty())
      return LintCheck{State::kFailed, "reference", fmt::format("at {}: {}", to_string(sizes), difference), where,
                       "one of reference.py and oracle.cpp computes something else"};
  }
  return LintCheck{State::kOk, "reference", fmt::format("agrees with the oracle at {} sizes", problem.check.size()), {}, {}};
}

}  // namespace capstone
