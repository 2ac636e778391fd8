#include "harness/kernelbench/definition.h"

#include <fmt/format.h>

#include "harness/base/text.h"

namespace capstone {
namespace {

// Writes text in double quotes: JSON's escapes are also YAML's.
std::string quoted(const std::string& text) {
  return Json(to_utf8(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string number(const Json& value) {
  return value.is_number_integer() ? value.dump() : fmt::format("{:.9g}", value.get<double>());
}

std::string init_text(const Json& init) {
  const auto only = init.begin();
  const std::string& kind = only.key();
  const Json& value = only.value();
  if (kind == "uniform")
    return fmt::format("{{uniform: {{low: {}, high: {}}}}}", number(value.at(0)), number(value.at(1)));
  if (kind == "normal")
    return fmt::format("{{normal: {{mean: {}, std: {}}}}}", number(value.at(0)), number(value.at(1)));
  if (kind == "integer")
    return fmt::format("{{integer: {{min: {}, max: {}}}}}", number(value.at(0)), number(value.at(1)));
  if (kind == "generator") return fmt::format("{{generator: {}}}", quoted(value.get<std::string>()));
  std::vector<std::string> values;
  for (const Json& each : value) values.push_back(number(each));
  return fmt::format("{{choice: [{}]}}", join(values, ", "));
}

std::string shape_text(const Json& shape, bool as_yaml) {
  std::vector<std::string> extents;
  for (const Json& extent : shape)
    extents.push_back(as_yaml ? quoted(extent.get<std::string>()) : extent.get<std::string>());
  return "[" + join(extents, ", ") + "]";
}

std::string parameter_text(const Json& p) {
  std::string text = fmt::format("  - {{name: {}, role: {}, dtype: {}", p.at("name").get<std::string>(),
                                 p.at("role").get<std::string>(), p.at("dtype").get<std::string>());
  if (p.contains("value")) text += fmt::format(", value: {}", quoted(p["value"].get<std::string>()));
  if (p.contains("shape")) text += fmt::format(", shape: {}", shape_text(p["shape"], true));
  if (p.contains("init")) text += fmt::format(", init: {}", init_text(p["init"]));
  if (p.contains("python")) text += fmt::format(", python: {}", quoted(p["python"].get<std::string>()));
  return text + "}\n";
}

std::string sizes_text(const Json& sizes) {
  std::vector<std::string> parts;
  for (const auto& [symbol, value] : sizes.items())
    parts.push_back(fmt::format("{}: {}", symbol, value.get<std::int64_t>()));
  return "{" + join(parts, ", ") + "}";
}

std::string vary_text(const Json& vary) {
  if (vary.empty()) return "  vary: {}\n";
  std::string text = "  vary:\n";
  for (const auto& [symbol, values] : vary.items()) {
    std::vector<std::string> numbers;
    for (const Json& value : values) numbers.push_back(std::to_string(value.get<std::int64_t>()));
    text += fmt::format("    {}: {{one_of: [{}]}}\n", symbol, join(numbers, ", "));
  }
  return text;
}

// The strictest class among the types of inputs and parameters.
std::string precision_of(const Json& signature) {
  bool half = false, brain = false;
  for (const Json& p : signature) {
    half |= p.at("dtype") == "f16";
    brain |= p.at("dtype") == "bf16";
  }
  return brain ? "bf16" : half ? "f16" : "fp32";
}

std::string yaml(const KernelBenchFile& file, const Json& found, const DefinitionExceptions& exceptions) {
  std::string text =
      fmt::format("schema: 1\nid: {}\ntitle: {}\ntier: {}\nsessions: []\n", file.id(),
                  quoted(fmt::format("KernelBench {}/{}", file.level, file.name).substr(0, 110)), file.level);
  text += "expect: imported from KernelBench; no expectation has been written yet\n\n";
  text +=
      "# Derived automatically by running the file. Review it before you use it in a course.\nsignature:\n";
  for (const Json& p : found.at("signature")) text += parameter_text(p);
  text += "\nsizes:\n  check:\n";
  for (const Json& sizes : found.at("check")) text += fmt::format("    - {}\n", sizes_text(sizes));
  text += vary_text(found.at("vary"));
  text += fmt::format("  measure: {}\n  emulate: {}\n", sizes_text(found.at("measure")),
                      sizes_text(found.at("check").at(0)));
  const std::string precision = precision_of(found.at("signature"));
  const double bound = precision == "fp32" ? 1e-4 : 1e-2;  // KernelBench's bounds
  text += fmt::format(
      "\n# reference.py in float64 is the ground truth; scale = the larger of an element's magnitude and its "
      "tensor's root mean square.\n"
      "oracle: reference.py\ntolerance: {{rtol: {0:g}, atol: {0:g}}}\n",
      bound);
  text += fmt::format(
      "\n# FLOPs: products and convolutions, as counted. Bytes: every tensor once.\ncost:\n  flops: {}\n  "
      "bytes: {}\n\n",
      quoted(found.at("flops").get<std::string>()), quoted(found.at("bytes").get<std::string>()));
  text += fmt::format("precision: {}\nbaselines: [eager, compile]\n", precision);
  for (const auto& [key, reasons] :
       {std::pair{"outside_domain", &exceptions.outside_domain}, {"because", &exceptions.because}}) {
    if (!reasons->empty()) text += fmt::format("{}:\n", key);
    for (const auto& [name, reason] : *reasons) text += fmt::format("  {}: {}\n", name, quoted(reason));
  }
  return text;
}

}  // namespace

Result<std::string> definition_yaml(const KernelBenchFile& file, const Json& found,
                                    const DefinitionExceptions& exceptions) {
  // The process that wrote `found` also ran the file's own code, so it may contain anything.
  try {
    return yaml(file, found, exceptions);
  } catch (const Json::exception& problem) {
    return fail("running the file gave unusable results: " + std::string(problem.what()), file.path.string(),
                "check what the file does when it is imported");
  }
}

std::string definition_statement(const KernelBenchFile& file, const Json& found,
                                 const std::vector<std::string>& notes) {
  std::string text = fmt::format(
      "# KernelBench {}/{}\n\nImported from a file in KernelBench's form. `reference.py` defines the "
      "computation: its `Model` in inference mode (`eval()`), without "
      "gradients, with the parameters that the judge provides.\n",
      file.level, file.name);
  if (const std::string words = to_utf8(found.value("documentation", "")); !words.empty()) {
    text += "\n";
    for (const std::string& line : split(words, '\n')) text += "    " + line + "\n";
  }
  text +=
      "\n## Parameters of launch()\n\n| name | role | type | shape | in PyTorch |\n|---|---|---|---|---|\n";
  for (const Json& p : found.at("signature"))
    text += fmt::format(
        "| `{}` | {} | {} | {} | {} |\n", p.value("name", ""), p.value("role", ""), p.value("dtype", ""),
        p.contains("shape") ? "`" + shape_text(p["shape"], false) + "`" : "= " + p.value("value", ""),
        p.contains("python")              ? "`" + p.value("python", "") + "`"
        : p.value("role", "") == "output" ? "returned"
                                          : "argument of `forward()`");
  text += "\n## Sizes\n\n";
  for (const auto& [symbol, value] : found.at("measure").items())
    text += fmt::format("- `{}`: {} is timed\n", symbol, value.dump());
  if (found.at("measure").empty()) text += "All shapes are fixed.\n";
  if (!notes.empty()) text += "\n## Notes\n\n";
  for (const std::string& note : notes) text += "- " + note + "\n";
  text +=
      "\nWrite `human/kernel.cu` with `launch()`, or `human/kernel.py` with `class ModelNew` (KernelBench's "
      "form; its constructor takes the values that "
      "`get_init_inputs()` returns, and its parameters have the names above).\n";
  return text;
}

}  // namespace capstone
