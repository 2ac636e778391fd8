#include "harness/correctness/chosen_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <regex>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone {
namespace {

constexpr const char* kHint = "zeros, ones, one-hot, iota or a .npy file; for one tensor: --input NAME=ones";

std::vector<double> filled(const std::string& how, const std::vector<std::int64_t>& shape,
                           std::int64_t elements) {
  std::vector<double> values(static_cast<std::size_t>(elements), how == "ones" ? 1.0 : 0.0);
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  for (std::int64_t i = 0; i < elements; ++i)
    if (how == "iota")
      values[static_cast<std::size_t>(i)] = static_cast<double>(i);
    else if (how == "one-hot" && i % columns == i / columns % columns)
      values[static_cast<std::size_t>(i)] = 1;
  return values;
}

Result<std::vector<double>> values_for(const Parameter& parameter, const std::string& how,
                                       const Sizes& sizes) {
  CAPSTONE_TRY(const auto shape, shape_at(parameter, sizes));
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  if (!how.ends_with(".npy")) return filled(how, shape, elements);
  CAPSTONE_TRY(NpyArray array, read_npy(how));
  if (static_cast<std::int64_t>(array.values.size()) != elements)
    return fail(fmt::format("{} has the shape [{}], but {} is [{}]", how, fmt::join(array.shape, ", "),
                            parameter.name, fmt::join(shape, ", ")),
                how, "choose --size so that they agree, or save another array", ExitCode::kUsage);
  return std::move(array.values);
}

}  // namespace

Result<NpyArray> read_npy(const fs::path& file) {
  CAPSTONE_TRY(const std::string bytes, read_file(file));
  const auto bad = [&](const std::string& what) {
    return fail(what, file.string(), "save it with numpy.save() as float32, in C order", ExitCode::kUsage);
  };
  if (bytes.size() < 12 || !bytes.starts_with("\x93NUMPY")) return bad("this is no .npy file");
  const bool first = bytes[6] == 1;  // version 1 has two bytes of length, later ones four
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, first ? 2 : 4);
  const std::size_t at = (first ? 10u : 12u) + std::size_t{length};
  if (at > bytes.size()) return bad("the .npy file is cut off");
  const std::string header = bytes.substr(first ? 10 : 12, length);
  static const std::regex form(
      R"(\{\s*'descr':\s*'([<>|=]?\w+)',\s*'fortran_order':\s*(True|False),\s*'shape':\s*\(([\d,\s]*)\))");
  std::smatch match;
  if (!std::regex_search(header, match, form)) return bad("the header of the .npy file cannot be read");
  if (match[2] == "True") return bad("the array lies in Fortran order");
  NpyArray array;
  std::int64_t elements = 1;
  for (const std::string& extent : split(match[3].str(), ','))
    if (!trim(extent).empty()) {
      array.shape.push_back(std::stoll(std::string(trim(extent))));
      elements *= array.shape.back();
    }
  const std::string type = match[1];
  const auto element = type == "<f2"   ? std::optional(DType::kF16)
                       : type == "<f4" ? std::optional(DType::kF32)
                       : type == "<i4" ? std::optional(DType::kI32)
                       : type == "<i8" ? std::optional(DType::kI64)
                       : type == "|u1" ? std::optional(DType::kU8)
                                       : std::nullopt;
  const bool is_double = type == "<f8";
  if (!element && !is_double) return bad(fmt::format("an array of type '{}' cannot be used", type));
  const std::size_t size = is_double ? sizeof(double) : unit_bytes(*element);
  if (elements < 0 || (bytes.size() - at) / size < static_cast<std::size_t>(elements))
    return bad("the .npy file is cut off");
  array.values.resize(static_cast<std::size_t>(elements));
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data() + at);
  for (std::int64_t i = 0; i < elements; ++i) {
    double& value = array.values[static_cast<std::size_t>(i)];
    if (is_double)
      std::memcpy(&value, data + static_cast<std::size_t>(i) * size, size);
    else
      value = load_as_double(*element, data, i);
  }
  return array;
}

Result<CasePlan> chosen_case(const Problem& problem, const Sizes& sizes,
                             const std::vector<std::string>& inputs) {
  CasePlan plan{"chosen", sizes, fresh_seed(), Battery::kPlain, {}};
  for (const std::string& input : inputs) {
    const std::size_t equals = input.find('=');
    const std::string name = equals == std::string::npos ? "" : input.substr(0, equals);
    const std::string how = equals == std::string::npos ? input : input.substr(equals + 1);
    const auto known = {"zeros", "ones", "one-hot", "iota"};
    if (std::find(known.begin(), known.end(), how) == known.end() && !how.ends_with(".npy"))
      return fail(fmt::format("--input: '{}' is no way to fill a tensor", how), {}, kHint, ExitCode::kUsage);
    bool any = false;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < problem.signature.size(); ++i) {
      const Parameter& parameter = problem.signature[i];
      if (parameter.is_scalar() || parameter.role == Role::kOutput) continue;
      names.push_back(parameter.name);
      if (name.empty() ? parameter.role == Role::kParameter : parameter.name != name) continue;
      CAPSTONE_TRY(auto values, values_for(parameter, how, plan.sizes));
      plan.values[static_cast<int>(i)] = std::move(values);
      any = true;
    }
    if (!any)
      return fail(fmt::format("--input: {} has no input '{}'", problem.id, name), {},
                  fmt::format("its tensors: {}", join(names, ", ")), ExitCode::kUsage);
  }
  return plan;
}

}  // namespace capstone
