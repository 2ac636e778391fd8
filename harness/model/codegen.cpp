// Code generated from a signature: the header that a candidate includes, and the adapter that calls it.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/model/problem.h"

namespace capstone {
namespace {

std::string shape_text(const Parameter& parameter) {
  std::vector<std::string> parts;
  for (const Expression& dimension : parameter.shape) parts.push_back(dimension.text);
  return "[" + join(parts, ", ") + "]";
}

std::string c_type(const Parameter& parameter) {
  const std::string element(cuda_type(parameter.dtype));
  if (parameter.is_scalar()) return element;
  return (parameter.is_written() ? "" : "const ") + element + "*";
}

bool uses(const Problem& problem, std::initializer_list<DType> types) {
  return std::any_of(problem.signature.begin(), problem.signature.end(), [&](const Parameter& p) {
    return std::find(types.begin(), types.end(), p.dtype) != types.end();
  });
}

/// "int64_t rows, int64_t cols"
std::string size_parameters(const Problem& problem) {
  std::vector<std::string> parts;
  for (const std::string& symbol : problem.symbols) parts.push_back("int64_t " + symbol);
  return join(parts, ", ");
}

std::string declared(const Parameter& parameter) {
  std::string text = c_type(parameter) + " " + parameter.name + " /* ";
  if (parameter.is_scalar()) return text + parameter.value->text + " */";
  text += shape_text(parameter);
  if (parameter.role != Role::kInput) text += fmt::format(" {}", name_of(parameter.role));
  if (is_packed(parameter.dtype))
    text += fmt::format("; {}: two a byte, the first in the low half", name_of(parameter.dtype));
  return text + " */";
}

std::vector<const Parameter*> packed_parameters(const Problem& problem) {
  std::vector<const Parameter*> packed;
  for (const Parameter& parameter : problem.signature)
    if (parameter.role == Role::kParameter) packed.push_back(&parameter);
  return packed;
}

/// The parameters of launch(), one declaration each: without shapes for the adapter, with shapes for the
/// header.
std::vector<std::string> launch_parameters(const Problem& problem, bool with_comments) {
  std::vector<std::string> parts;
  for (const Parameter& parameter : problem.signature)
    parts.push_back(with_comments ? declared(parameter) : c_type(parameter) + " " + parameter.name);
  for (const std::string& symbol : problem.symbols) parts.push_back("int64_t " + symbol);
  if (problem.prepare) parts.emplace_back("const void* prepared");
  parts.emplace_back("void* workspace");
  parts.emplace_back("cudaStream_t stream");
  return parts;
}

std::vector<std::string> prepare_parameters(const Problem& problem, bool with_comments) {
  std::vector<std::string> parts;
  for (const Parameter* parameter : packed_parameters(problem))
    parts.push_back(with_comments ? declared(*parameter) : c_type(*parameter) + " " + parameter->name);
  for (const std::string& symbol : problem.symbols) parts.push_back("int64_t " + symbol);
  parts.emplace_back("void* prepared");
  parts.emplace_back("cudaStream_t stream");
  return parts;
}

std::string includes_for(const Problem& problem) {
  std::string text = "#include <cuda_runtime.h>\n";
  if (uses(problem, {DType::kF16})) text += "#include <cuda_fp16.h>\n";
  if (uses(problem, {DType::kBF16})) text += "#include <cuda_bf16.h>\n";
  if (uses(problem, {DType::kE4M3, DType::kE5M2, DType::kE8M0})) text += "#include <cuda_fp8.h>\n";
  if (uses(problem, {DType::kE2M1x2})) text += "#include <cuda_fp4.h>\n";
  return text + "\n#include <cstddef>\n#include <cstdint>\n";
}

std::string workspace_declaration(const Problem& problem) {
  return fmt::format(
      "/// Optional: bytes of scratch that launch() needs at these sizes. Without it `workspace` is null.\n"
      "extern \"C\" size_t workspace_bytes({});\n",
      size_parameters(problem));
}

std::string prepare_declarations(const Problem& problem) {
  return fmt::format(
      "\n/// Bytes of `prepared` at these sizes.\n"
      "extern \"C\" size_t prepared_bytes({});\n"
      "\n/// Repacks the parameters once, untimed; launch() receives the result.\n"
      "extern \"C\" void prepare(\n    {});\n",
      size_parameters(problem), join(prepare_parameters(problem, true), ",\n    "));
}

/// Structs that the signature names. They are declared, not included: the adapter then needs no CUDA header,
/// and the call of an extern "C" function is the same.
std::string forward_declarations(const Problem& problem) {
  std::string text = "struct CUstream_st;\nusing cudaStream_t = CUstream_st*;\n";
  for (DType type : {DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kE2M1x2, DType::kE8M0})
    if (uses(problem, {type})) text += fmt::format("struct {};\n", cuda_type(type));
  return text;
}

std::string read_slot(const Parameter& parameter, std::size_t slot) {
  return fmt::format("*static_cast<{} const*>(slots[{}])", c_type(parameter), slot);
}

std::vector<std::string> size_arguments(const Problem& problem) {
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < problem.symbols.size(); ++i)
    arguments.push_back(fmt::format("*static_cast<int64_t const*>(slots[{}])", problem.signature.size() + i));
  return arguments;
}

std::vector<std::string> launch_arguments(const Problem& problem) {
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < problem.signature.size(); ++i)
    arguments.push_back(read_slot(problem.signature[i], i));
  for (std::string& size : size_arguments(problem)) arguments.push_back(std::move(size));
  if (problem.prepare) arguments.emplace_back("prepared");
  arguments.emplace_back("workspace");
  arguments.emplace_back("static_cast<cudaStream_t>(stream)");
  return arguments;
}

std::string prepare_adapter(const Problem& problem) {
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < problem.signature.size(); ++i)
    if (problem.signature[i].role == Role::kParameter)
      arguments.push_back(read_slot(problem.signature[i], i));
  for (std::string& size : size_arguments(problem)) arguments.push_back(std::move(size));
  arguments.emplace_back("prepared");
  arguments.emplace_back("static_cast<cudaStream_t>(stream)");
  return fmt::format(
      "\nextern \"C\" size_t prepared_bytes({});\n"
      "extern \"C\" void prepare({});\n"
      "\nextern \"C\" size_t capstone_prepared_bytes(const void* const* slots) {{\n"
      "  return prepared_bytes({});\n}}\n"
      "\nextern \"C\" void capstone_prepare(const void* const* slots, void* prepared, void* stream) {{\n"
      "  prepare({});\n}}\n",
      size_parameters(problem), join(prepare_parameters(problem, false), ", "),
      join(size_arguments(problem), ", "), join(arguments, ",\n          "));
}

}  // namespace

std::string launch_header(const Problem& problem) {
  std::string text = fmt::format(
      "// What a kernel for `{}` defines. Generated from problem.yaml.\n"
      "// Tensors are contiguous and row-major, the first element of each 256-byte aligned; rows need not be "
      "aligned.\n"
      "// Work may fork to other streams, but is joined before the next operation on `stream`.\n"
      "#pragma once\n",
      problem.id);
  text += includes_for(problem);
  text += fmt::format("\nextern \"C\" void launch(\n    {});\n\n",
                      join(launch_parameters(problem, true), ",\n    "));
  text += workspace_declaration(problem);
  if (problem.prepare) text += prepare_declarations(problem);
  return text;
}

std::string adapter_source(const Problem& problem) {
  std::string text = fmt::format(
      "// Calls launch() of `{}` from argument slots. Generated; see harness/runtime/worker/protocol.md.\n"
      "#include <cstddef>\n#include <cstdint>\n\n",
      problem.id);
  text += forward_declarations(problem);
  text += fmt::format("\nextern \"C\" void launch({});\n", join(launch_parameters(problem, false), ", "));
  text += "// Weak: a candidate without scratch does not define it.\n";
  text += fmt::format("extern \"C\" size_t workspace_bytes({}) __attribute__((weak));\n",
                      size_parameters(problem));
  text += fmt::format(
      "\nextern \"C\" void capstone_call(const void* const* slots, void* workspace, void* prepared, void* "
      "stream) {{\n"
      "{}  launch({});\n}}\n",
      problem.prepare ? "" : "  (void)prepared;\n", join(launch_arguments(problem), ",\n         "));
  text += fmt::format(
      "\nextern \"C\" size_t capstone_workspace_bytes(const void* const* slots) {{\n"
      "  if (!workspace_bytes) return 0;\n"
      "  return workspace_bytes({});\n}}\n",
      join(size_arguments(problem), ", "));
  if (problem.prepare) text += prepare_adapter(problem);
  return text;
}

}  // namespace capstone
