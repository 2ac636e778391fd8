// Describes the definition in words, for people and for prompts.
#include <fmt/format.h>

#include "harness/base/text.h"
#include "harness/model/problem.h"

namespace capstone {
namespace {

std::string init_text(const Parameter& parameter) {
  struct Visitor {
    std::string operator()(const InitNormal& i) const {
      return fmt::format("normal, mean {}, std {}", i.mean, i.std);
    }
    std::string operator()(const InitUniform& i) const {
      return fmt::format("uniform in [{}, {})", i.low, i.high);
    }
    std::string operator()(const InitInteger& i) const {
      return fmt::format("integers {} to {}", i.min, i.max);
    }
    std::string operator()(const InitPermutation& i) const {
      return fmt::format("a permutation of {}", i.of.text);
    }
    std::string operator()(const InitOffsets& i) const {
      return fmt::format("{} segments of {} rows in all, as offsets; {}", i.segments.text, i.total.text,
                         i.ramp ? "lengths rise by equal steps, in any order" : "some are empty");
    }
    std::string operator()(const InitLengths& i) const {
      return fmt::format("lengths from {} to {}, in random order", i.low.text, i.high.text);
    }
    std::string operator()(const InitCounts& i) const {
      return fmt::format("counts, {} in all; some are 0", i.total.text);
    }
    std::string operator()(const InitTopK& i) const {
      return fmt::format("in each row different indices below {}, then -1; {} indices at least", i.of.text,
                         i.least.text);
    }
    std::string operator()(const InitPages& i) const {
      return fmt::format(
          "normal, mean 0, std 1, where `{}` and `{}` say that there is a token; NaN elsewhere", i.table,
          i.lengths);
    }
    std::string operator()(const InitChoice& i) const {
      return fmt::format("one of {{{}}}", fmt::join(i.values, ", "));
    }
    std::string operator()(const InitGenerator& i) const { return fmt::format("made by `{}`", i.name); }
  };
  return std::visit(Visitor{}, parameter.init);
}

std::string parameter_line(const Parameter& parameter) {
  if (parameter.is_scalar())
    return fmt::format("  {:<10} {:<10} {:<5} = {}\n", parameter.name, "scalar", name_of(parameter.dtype),
                       parameter.value->text);
  std::vector<std::string> shape;
  for (const Expression& dimension : parameter.shape) shape.push_back(dimension.text);
  std::string drawn = parameter.role == Role::kOutput ? "" : "  " + init_text(parameter);
  if (is_packed(parameter.dtype)) drawn += "  (two a byte, the first in the low half)";
  return fmt::format("  {:<10} {:<10} {:<5} {:<22}{}\n", parameter.name, name_of(parameter.role),
                     name_of(parameter.dtype), "[" + join(shape, ", ") + "]", drawn);
}

std::string vary_text(const std::string& symbol, const Vary& vary) {
  if (!vary.one_of.empty()) return fmt::format("{} one of {{{}}}", symbol, fmt::join(vary.one_of, ", "));
  std::string text = fmt::format("{} {}..{}", symbol, vary.low, vary.high);
  if (vary.multiple_of > 1) text += fmt::format(" in steps of {}", vary.multiple_of);
  return text;
}

std::string cost_text(const Problem& problem) {
  std::string text = fmt::format("  flops = {}\n  bytes = {}\n", problem.flops.text, problem.bytes.text);
  if (const auto cost = cost_at(problem, problem.measure))
    text += fmt::format("  timed: {:.4g} GFLOP, {:.4g} MB, {:.3g} FLOP per byte\n", cost->flops / 1e9,
                        cost->bytes / 1e6, cost->intensity());
  return text;
}

}  // namespace

std::string describe_contract(const Problem& problem) {
  std::string text = fmt::format(
      "{}: {}\nTier {}, judged as {}, least architecture {}, fast math {}\n\nParameters of launch(), in "
      "order\n",
      problem.id, problem.title, problem.tier, name_of(problem.precision), problem.arch,
      problem.fast_math ? "allowed" : "off");
  for (const Parameter& parameter : problem.signature) text += parameter_line(parameter);
  std::vector<std::string> ranges;
  for (const std::string& symbol : problem.symbols)
    if (const auto vary = problem.vary.find(symbol); vary != problem.vary.end())
      ranges.push_back(vary_text(symbol, vary->second));
  text += "\nSizes\n";
  if (!ranges.empty()) text += fmt::format("  any of: {}\n", join(ranges, "; "));
  text += fmt::format("  timed:  {}\n",
                      problem.symbols.empty() ? "as the shapes say" : to_string(problem.measure));
  for (const Expression& relation : problem.where) text += fmt::format("  where:  {}\n", relation.text);
  text += fmt::format(
      "\nCorrect when |got - expected| <= {} * scale + {} * |expected| for every element;\n"
      "  expected and scale (its condition) come from {}\n",
      problem.tolerance.atol, problem.tolerance.rtol,
      problem.oracle_is_reference ? "reference.py in float64" : "a float64 oracle");
  return text + "\nCost of the best possible algorithm\n" + cost_text(problem);
}

}  // namespace capstone
