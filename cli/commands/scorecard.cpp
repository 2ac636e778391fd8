// `capstone scorecard`: published kernels of a language model beside what was measured here.
#include "harness/analysis/scorecard.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

std::string ratio_of(const std::vector<ScoredKernel>& here, const char* against) {
  std::vector<std::string> texts;
  for (const ScoredKernel& kernel : here)
    for (const ScoredRatio& r : kernel.ratios)
      if (r.against == against) texts.push_back(format_speedup(r.ratio));
  return texts.empty() ? here.empty() ? "not measured" : "-" : join(texts, ", ");
}

Json json_of(const ScoreRow& row) {
  Json here = Json::array();
  for (const ScoredKernel& kernel : row.here) {
    Json one{{"kernel", kernel.kernel}, {"device", kernel.device}, {"ratios", Json::object()}};
    for (const ScoredRatio& r : kernel.ratios) one["ratios"][r.against] = r.ratio;
    here.push_back(std::move(one));
  }
  return {{"name", row.name},           {"sizes", row.sizes}, {"problem", row.problem}, {"class", row.judged},
          {"published", row.published}, {"here", here},       {"remark", row.remark}};
}

Result<ExitCode> show(const Context& context) {
  CAPSTONE_TRY(const auto rows, scorecard(context.resources));
  const Terminal& t = context.terminal;
  if (context.json) {
    Json all = Json::array();
    for (const ScoreRow& row : rows) all.push_back(json_of(row));
    t.out(all.dump(2));
    return ExitCode::kDone;
  }
  Table table({"problem", "class", "here it is", "published", "eager", "compile", "native"},
              {false, false, false, true, true, true, true});
  for (const ScoreRow& row : rows)
    table.row({row.name, row.judged, row.problem, format_speedup(row.published), ratio_of(row.here, "eager"),
               ratio_of(row.here, "compile"), ratio_of(row.here, "native")});
  t.out(table.text(t));
  t.out(t.fold(
      "published: the ratio to PyTorch eager in fp32 on an L40S, judged at an error of 1e-2 (Stanford CRFM, "
      "2025). eager, compile, native: measured here with our reference kernels, at the published sizes, in "
      "the class of the row; fp32: TF32 off."));
  t.out();
  for (const ScoreRow& row : rows) {
    std::vector<std::string> kernels;
    for (const ScoredKernel& kernel : row.here) kernels.push_back(kernel.kernel + " on " + kernel.device);
    t.out(t.fold(fmt::format("{}, {}: {}{}", row.name, row.judged, row.remark,
                             kernels.empty() ? "" : " (" + join(kernels, "; ") + ")"),
                 2));
  }
  t.out("next: capstone init layernorm");
  return ExitCode::kDone;
}

}  // namespace

void add_scorecard(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand(
      "scorecard",
      "published speedups of kernels that a model wrote, beside those measured here by an honest judge");
  add_format(*command, context);
  command->callback([&context, &action] { action = [&context] { return show(context); }; });
}

}  // namespace capstone::cli
