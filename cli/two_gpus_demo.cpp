#include "cli/two_gpus_demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/timing/statistics.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/two_gpus.h"

namespace capstone::cli {
namespace {

using workflows::Exchange;
using workflows::ExchangeCase;
using workflows::ExchangeSplit;
using workflows::TwoGpusRun;

constexpr double kLongestBar = 48;  // [columns]

std::string rate_in_gb(double bytes, const std::vector<double>& us) {
  return fmt::format("{:.0f}", bytes / (median(us) * 1e-6) / 1e9);
}

void show_link(const Context& context, const TwoGpusRun& run) {
  tell(context,
       fmt::format("the link, by a plain copy of {:.0f} MB: {} and {} GB/s out of GPU 0 and 1 alone, {} and "
                   "{} GB/s when both copy. Wire is the bytes divided by the latter.\n",
                   run.link_bytes / 1e6, rate_in_gb(run.link_bytes, run.alone_us[0]),
                   rate_in_gb(run.link_bytes, run.alone_us[1]), rate_in_gb(run.link_bytes, run.both_us[0]),
                   rate_in_gb(run.link_bytes, run.both_us[1])));
}

// Combine is the same after a dispatch in bf16: one of the two formats is enough.
bool is_shown(const ExchangeCase& one, Exchange exchange) {
  return one.wrong == 0 && (exchange == Exchange::kDispatch || one.format == "e4m3");
}

void show_table(const Context& context, const TwoGpusRun& run, Exchange exchange) {
  // A line for each way in place of a column: a projector shows 80 columns.
  Table table({"tokens", "share", "as", "MB", "time [95 %], µs", "wire", "wait", "launch", "other", "rest"},
              {true, false, false, true, true, true, true, true, true, true});
  std::string way;
  for (const ExchangeCase& one : run.cases) {
    if (!is_shown(one, exchange)) continue;
    if (one.method != way) table.line(way = one.method);
    const ExchangeSplit parts = split_of(run, one, exchange);
    const auto us = [](double value) {
      return fmt::format("{:.1f}", value > -0.05 && value < 0 ? 0 : value);
    };
    table.row({std::to_string(one.tokens), one.routing, exchange == Exchange::kDispatch ? one.format : "bf16",
               fmt::format("{:.1f}", parts.bytes / 1e6),
               fmt::format("{:.0f} [{:.0f}, {:.0f}]", parts.time.point, parts.time.low, parts.time.high),
               us(parts.wire), us(parts.wait()), us(parts.launch), us(parts.other), us(parts.rest)});
  }
  tell(context, exchange == Exchange::kDispatch ? "dispatch:\n" : "\ncombine:\n");
  tell(context, table.text(context.terminal));
}

// Dispatch and combine of balanced routing, a picture for each number of tokens.
void show_bars(const Context& context, const TwoGpusRun& run) {
  struct Bar {
    std::string method;
    double wire = 0, whole = 0;
  };
  std::map<std::int64_t, std::vector<Bar>, std::greater<>> sizes;
  for (const ExchangeCase& one : run.cases) {
    if (!is_shown(one, Exchange::kCombine) || one.routing != "50/50") continue;
    Bar bar{one.method};
    for (Exchange exchange : {Exchange::kDispatch, Exchange::kCombine}) {
      const ExchangeSplit parts = split_of(run, one, exchange);
      bar.wire += parts.wire, bar.whole += parts.time.point;
    }
    sizes[one.tokens].push_back(bar);
  }
  for (const auto& [tokens, bars] : sizes) {
    tell(context,
         fmt::format("\n{} tokens a GPU, dispatch (e4m3) and combine, 50/50: ▇ wire, ░ wait", tokens));
    double longest = 0;
    for (const Bar& bar : bars) longest = std::max(longest, bar.whole);
    for (const Bar& bar : bars) {
      const auto columns = [&](double us) { return int(std::lround(us / longest * kLongestBar)); };
      std::string drawn;
      for (int i = 0; i < columns(bar.whole); ++i) drawn += i < columns(bar.wire) ? "▇" : "░";
      tell(context, fmt::format("  {:<8}{} {:.0f} µs", bar.method, drawn, bar.whole));
    }
  }
}

// What skewed routing changes, by the first way that was measured: the bytes, the experts' work, and how long
// the GPU with less of it waits.
void show_skew(const Context& context, const TwoGpusRun& run) {
  const auto waits = [&](const ExchangeCase& one) { return split_of(run, one, Exchange::kCombine).other; };
  std::set<std::int64_t> told;
  for (const ExchangeCase& skewed : run.cases) {
    const auto even = std::find_if(run.cases.begin(), run.cases.end(), [&](const ExchangeCase& c) {
      return is_shown(c, Exchange::kCombine) && c.routing == "50/50" && c.method == skewed.method &&
             c.tokens == skewed.tokens;
    });
    const double work = double(skewed.expert_rows[0] + skewed.expert_rows[1]);
    if (skewed.routing == "50/50" || !is_shown(skewed, Exchange::kCombine) || even == run.cases.end() ||
        work <= 0 || skewed.tokens <= 0 || !told.insert(skewed.tokens).second)
      continue;
    tell(context,
         fmt::format("\n{} tokens, {}: {:.0f} and {:.0f} % of them cross, and GPU 0 has {:.0f} % of the "
                     "experts' work. Before combine, the other GPU waits {:.1f} µs for it ({:.1f} at 50/50, "
                     "{}).",
                     skewed.tokens, skewed.routing, 100 * double(skewed.crossing[0]) / double(skewed.tokens),
                     100 * double(skewed.crossing[1]) / double(skewed.tokens),
                     100 * double(skewed.expert_rows[0]) / work, waits(skewed), waits(*even), skewed.method));
  }
}

void show_faults(const Context& context, const TwoGpusRun& run) {
  const Terminal& t = context.terminal;
  for (const ExchangeCase& one : run.cases)
    if (one.wrong > 0)
      tell(context,
           t.paint(Tone::kBad,
                   fmt::format("\n{}, {} tokens, {}, {}: {} of {} numbers are wrong. Its times do "
                               "not count.",
                               one.method, one.tokens, one.routing, one.format, one.wrong, one.checked)));
  if (run.nccl.empty())
    tell(context, t.paint(Tone::kWarn, "\nNCCL is not measured: " +
                                           (run.no_nccl.empty() ? "the run ended before" : run.no_nccl)));
  else if (!run.no_nccl.empty())
    tell(context, t.paint(Tone::kWarn, "\nNCCL stopped: " + run.no_nccl));
  if (!run.stopped.empty())
    tell(context, t.paint(Tone::kWarn, "\nthe run ended early (" + run.stopped +
                                           "): this is what was measured until then"));
}

void show(const Context& context, const TwoGpusRun& run) {
  show_link(context, run);
  show_table(context, run, Exchange::kDispatch);
  show_table(context, run, Exchange::kCombine);
  show_bars(context, run);
  show_skew(context, run);
  show_faults(context, run);
}

void show_recorded(const Context& context, const TwoGpusRun& run) {
  tell(context, fmt::format("as recorded on {}, {}, capstone {}, {}:\n", run.device, run.time.substr(0, 10),
                            run.tool, run.nccl.empty() ? "without NCCL" : "NCCL " + run.nccl));
  show(context, run);
}

}  // namespace

Result<void> two_gpus_demo(const Context& context, const DemoInputs& inputs) {
  if (!inputs.from.empty() && !inputs.record.empty())
    return fail("--from plays a record and measures nothing", {}, "leave out --from or --record");
  std::filesystem::path record;
  if (!inputs.record.empty()) {
    CAPSTONE_TRY(record, output_path(context, inputs.record, workflows::Output::kDemo));
  }
  tell(context,
       "each GPU has half of the tokens and half of 256 experts; a token has 7168 numbers and 8 experts, as "
       "in DeepSeek-V3. Dispatch sends it once to the other GPU if one of its experts is there; combine "
       "brings one row of bf16 back and adds it.\n");
  if (!inputs.from.empty()) {
    CAPSTONE_TRY(const TwoGpusRun run, workflows::two_gpus_record(context.cwd / inputs.from));
    show_recorded(context, run);
    return {};
  }
  if (const std::string why = workflows::why_not_two_gpus(context.resources); !why.empty()) {
    if (!record.empty())
      return fail("two GPUs and nvcc are needed to record this: " + why, {}, {}, ExitCode::kEnvironment);
    tell(context, context.terminal.paint(Tone::kWarn, "not shown here: two GPUs (" + why + ")"));
    const auto recorded = workflows::recorded_two_gpus(context.resources);
    if (recorded.empty())
      tell(context,
           "no run on two GPUs is recorded: not measured. To make a record, on a machine with two GPUs and "
           "nvcc: capstone demo two-gpus --record two_gpus.json. To play it here: capstone demo two-gpus "
           "--from two_gpus.json");
    else
      show_recorded(context, recorded.front());
    return {};
  }
  const auto progress = [&](const workflows::Progress& step) { context.terminal.progress(step.text); };
  const auto run = workflows::run_two_gpus(inputs.nccl, context, progress);
  context.terminal.end_progress();
  if (!run) return tl::unexpected(run.error());
  if (!record.empty()) CAPSTONE_CHECK(write_file_atomic(record, two_gpus_json(*run).dump(1) + "\n"));
  tell(context, "on " + run->device + (run->nccl.empty() ? "" : ", NCCL " + run->nccl) + ":\n");
  show(context, *run);
  return {};
}

}  // namespace capstone::cli
