#include "harness/analysis/lint/reference.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/correctness/cases.h"
#include "harness/correctness/compare.h"
#include "harness/correctness/diagnose.h"
#include "harness/correctness/dtype_convert.h"
#include "harness/runtime/python/python.h"

namespace capstone {
namespace {

constexpr int kNoTorch = 3;  // run_reference.py's exit code

// As PyTorch has it: the last dimension of a packed tensor counts bytes.
std::vector<std::int64_t> python_shape(const TensorSlot& slot, DType type) {
  std::vector<std::int64_t> shape = slot.shape;
  if (is_packed(type)) shape.back() /= elements_per_unit(type);
  return shape;
}

// Writes a tensor for run_reference.py: every type is widened to float64 or int64, packed types are bytes.
Result<Json> store_wide(const PreparedCase& prepared, const TensorSlot& slot, const Parameter& parameter,
                        const fs::path& scratch) {
  const std::byte* data = prepared.image.data() + slot.offset;
  const bool real = is_float(parameter.dtype);
  const fs::path file = scratch / (parameter.name + ".in");
  Json tensor{{"file", file.string()},
              {"kind", is_packed(parameter.dtype) ? "uint8"
                       : real                     ? "float64"
                                                  : "int64"},
              {"shape", python_shape(slot, parameter.dtype)},
              {"python", parameter.python}};
  if (is_packed(parameter.dtype)) {
    CAPSTONE_CHECK(write_file_atomic(file, std::string(reinterpret_cast<const char*>(data), slot.bytes)));
    return tensor;
  }
  std::string bytes(static_cast<std::size_t>(slot.elements) * 8, '\0');
  for (std::int64_t i = 0; i < slot.elements; ++i) {
    const double value = load_as_double(parameter.dtype, data, i);
    const auto whole = static_cast<std::int64_t>(value);
    std::memcpy(bytes.data() + 8 * i, real ? static_cast<const void*>(&value) : &whole, 8);
  }
  CAPSTONE_CHECK(write_file_atomic(file, bytes));
  return tensor;
}

// A scalar as launch() gets it.
Json as_passed(DType type, double value) {
  if (is_float(type)) return static_cast<double>(static_cast<float>(value));
  return static_cast<std::int64_t>(value);
}

Result<Json> request_for(const Problem& problem, const PreparedCase& prepared, const fs::path& scratch) {
  Json request{{"reference", (problem.folder / "reference.py").string()},
               {"sizes", sizes_json(prepared.plan.sizes)},
               {"inputs", Json::array()},
               {"parameters", Json::array()},
               {"outputs", Json::array()}};
  CAPSTONE_TRY(const BoundProblem bound, bound_at(problem, prepared.plan.sizes));
  auto slots = prepared.layout.tensors.begin();
  auto scalar = bound.scalars.begin();
  for (const Parameter& parameter : problem.signature) {
    if (parameter.is_scalar()) {
      // The others are constants of reference.py.
      if (!parameter.python.empty())
        request["inputs"].push_back({{"value", as_passed(parameter.dtype, *scalar)}});
      ++scalar;
      continue;
    }
    const TensorSlot& slot = *slots++;
    if (parameter.role != Role::kOutput) {
      CAPSTONE_TRY(Json tensor, store_wide(prepared, slot, parameter, scratch));
      const bool is_attribute = parameter.role == Role::kParameter && !parameter.python.empty();
      request[is_attribute ? "parameters" : "inputs"].push_back(std::move(tensor));
    }
    if (parameter.is_written())
      request["outputs"].push_back({{"name", parameter.name},
                                    {"file", (scratch / (parameter.name + ".out")).string()},
                                    {"shape", python_shape(slot, parameter.dtype)}});
  }
  return request;
}

// Describes the first element on which the two disagree; empty if none.
Result<std::string> disagreement(const Problem& problem, const PreparedCase& prepared,
                                 const fs::path& scratch) {
  for (const PreparedCase::Output& output : prepared.outputs) {
    const Parameter& parameter = problem.signature[static_cast<std::size_t>(output.parameter)];
    const TensorSlot& slot = prepared.layout.tensors[static_cast<std::size_t>(output.slot)];
    const std::size_t units = units_of(parameter.dtype, output.expected.size());
    const auto in_a_unit = static_cast<std::size_t>(elements_per_unit(parameter.dtype));
    CAPSTONE_TRY(const std::string bytes, read_file(scratch / (parameter.name + ".out"), units * 8));
    if (bytes.size() != units * 8) return parameter.name + " has the wrong number of elements";
    for (std::size_t i = 0; i < output.expected.size(); ++i) {
      double got = 0;
      std::memcpy(&got, bytes.data() + i / in_a_unit * 8, sizeof got);
      if (is_packed(parameter.dtype)) {  // a byte with two codes, which are rounded: gate one's rule decides
        const auto byte = static_cast<std::byte>(static_cast<unsigned char>(got));
        got = load_as_double(parameter.dtype, &byte, static_cast<std::int64_t>(i % in_a_unit));
        if (is_right(parameter.dtype, got, output.expected[i], output.scale[i], problem.tolerance)) continue;
      }
      if (std::fabs(got - output.expected[i]) <=
          kCrossCheck * (output.scale[i] + std::fabs(output.expected[i])))
        continue;
      if (got == output.expected[i] || (std::isnan(got) && std::isnan(output.expected[i]))) continue;
      std::string index;
      for (std::int64_t at : multi_index(slot.shape, static_cast<std::int64_t>(i)))
        index += (index.empty() ? "" : ", ") + std::to_string(at);
      std::string difference =
          fmt::format("{}[{}] is {} by reference.py and {} by the oracle", parameter.name, index,
                      number_text(got, 9), number_text(output.expected[i], 9));
      if (std::isfinite(got) && std::isfinite(output.expected[i]))
        difference +=
            fmt::format("; they differ by {:.2g}, and {:.2g} is allowed", std::fabs(got - output.expected[i]),
                        kCrossCheck * (output.scale[i] + std::fabs(output.expected[i])));
      return difference;
    }
  }
  return std::string();
}

}  // namespace

Result<LintCheck> check_reference(const Problem& problem, const Oracle& oracle, const Resources& resources,
                                  const fs::path& scratch) {
  using State = LintCheck::State;
  const std::string where = (problem.folder / "reference.py").string();
  std::error_code code;
  if (!fs::exists(where, code))
    return LintCheck{State::kFailed, "reference", "there is no reference.py", where,
                     "write Model, get_inputs() and get_init_inputs()"};
  const auto python = find_python("auto", resources);
  if (!python && python.error().code == ExitCode::kInterrupted) return fail(python.error());
  if (!python) return LintCheck{State::kNotRun, "reference", python.error().what, {}, {}};
  // One process for all sizes: importing PyTorch takes longer than all runs together.
  std::vector<PreparedCase> cases;
  std::vector<fs::path> folders;
  Json requests = Json::array();
  for (const Sizes& sizes : problem.check) {
    CAPSTONE_TRY(PreparedCase prepared,
                 prepare_case(problem, {"reference", sizes, cases.size() + 1, Battery::kPlain}, oracle, 0));
    folders.push_back(scratch / std::to_string(cases.size()));
    CAPSTONE_CHECK(make_folders(folders.back()));
    CAPSTONE_TRY(Json request, request_for(problem, prepared, folders.back()));
    requests.push_back(std::move(request));
    cases.push_back(std::move(prepared));
  }
  CAPSTONE_CHECK(write_file_atomic(scratch / "requests.json", requests.dump()));
  std::vector<std::string> packages;
  for (const fs::path& path : python->paths) packages.push_back(path.string());
  ProcessSpec spec;
  spec.argv = {python->program.string(),
               (resources.share / "harness" / "analysis" / "lint" / "run_reference.py").string(),
               (scratch / "requests.json").string()};
  spec.env = {{"PYTHONPATH", join(packages, ":")}};
  spec.timeout = std::chrono::minutes(3);
  CAPSTONE_TRY(const ProcessResult ran, run_process(spec));
  if (ran.end == ProcessResult::End::kInterrupted) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  if (ran.end == ProcessResult::End::kExited && ran.status == kNoTorch)
    return LintCheck{
        State::kNotRun, "reference", fmt::format("PyTorch cannot be imported: {}", trim(ran.err)), {}, {}};
  if (!ran.ok()) {
    const auto lines = split(std::string(trim(ran.err)), '\n');
    return LintCheck{State::kFailed, "reference", "reference.py fails " + lines.back(), where,
                     "it must run with its size constants set to every size under `check`"};
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPSTONE_TRY(const std::string difference, disagreement(problem, cases[i], folders[i]));
    if (!difference.empty())
      return LintCheck{State::kFailed, "reference",
                       fmt::format("at {}: {}", to_string(cases[i].plan.sizes), difference), where,
                       "reference.py and oracle.cpp must compute the same; fix one of them"};
  }
  return LintCheck{State::kOk,
                   "reference",
                   fmt::format("agrees with the oracle at {} sizes", problem.check.size()),
                   {},
                   {}};
}

}  // namespace capstone
