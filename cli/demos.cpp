#include "cli/demos.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "cli/course.h"
#include "cli/formats_demo.h"
#include "cli/machine_demos.h"
#include "cli/serving_demo.h"
#include "cli/show.h"
#include "cli/two_gpus_demo.h"
#include "cli/warmup_demo.h"
#include "cli/workshop_demos.h"
#include "harness/analysis/explain/explain.h"
#include "harness/analysis/ladder/ladder.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/judge.h"
#include "harness/timing/device.h"
#include "harness/timing/roofline.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/records.h"
#include "harness/workflows/rungs.h"

namespace capstone::cli {
namespace {

bool has_gpu(const Context& context) {
  return choose_backend(Backend::kAuto, context.resources).backend == Backend::kCuda;
}

void cannot_show(const Context& context, const std::string& what) {
  tell(context, context.terminal.paint(Tone::kWarn,
                                       "not shown here: " + what + " (" +
                                           choose_backend(Backend::kAuto, context.resources).because + ")"));
}

// Rungs of a ladder, timed on the GPU at some sizes.
Result<Ladder> timed(const Context& context, const std::string& id, const std::vector<std::string>& wanted,
                     const Sizes& sizes) {
  CAPSTONE_TRY(auto rungs, rungs_of(context.resources, id));
  CAPSTONE_TRY(Problem problem, find_problem(context.resources.problems(), id));
  problem.measure = sizes;
  problem.check.resize(1);
  LadderRequest request{&problem, {}, Backend::kCuda, 0.5};
  for (const Rung& rung : rungs)
    if (std::any_of(wanted.begin(), wanted.end(),
                    [&](const std::string& start) { return rung.name.starts_with(start); }))
      request.rungs.push_back(rung);
  auto climbed =
      climb(request, context.resources, [&](const std::string& text) { context.terminal.progress(text); });
  context.terminal.end_progress();
  return climbed;
}

// A number that the course says aloud (docs/handbook_numbers.md).
struct SpokenNumber {
  double low, high;  ///< the same: not a range
  const char* text;
};
constexpr SpokenNumber kMountain{50, 100, "50 to 100 times, an A6000's first rung"};
constexpr SpokenNumber kScores{67e6, 67e6, "67 million scores"};

// "the course says X; here Y: 2 % above that"
std::string against_the_course(const SpokenNumber& spoken, double here, const std::string& where,
                               const std::string& here_text) {
  const double end = here > spoken.high ? spoken.high : spoken.low;
  const bool inside =
      here >= spoken.low * 0.995 && here <= spoken.high * 1.005;  // else it would be "0 % above"
  return fmt::format("the course says {}; {} {}: {}", spoken.text, where, here_text,
                     inside ? "as it says"
                            : fmt::format("{:.0f} % {} that", 100 * std::fabs(here / end - 1),
                                          here > end ? "above" : "below"));
}

const Sizes kMountainSizes{{"m", 4096}, {"k", 4096}, {"n", 4096}};
const Sizes kCacheSizes{{"n", 1 << 21}};

std::string mountain_text(const Ladder& ladder, const std::string& where) {
  const double naive = ladder.steps.front().ms.point, times = naive / ladder.library_ms;
  return fmt::format(
      "  naive    {:>10}\n  library  {:>10}   {:.0f} times faster: {} of the time is the mountain\n{}",
      format_time_ms(naive), format_time_ms(ladder.library_ms), times,
      format_time_ms(naive - ladder.library_ms),
      against_the_course(kMountain, times, where, fmt::format("{:.0f} times", times)));
}

// L1
// -----------------------------------------------------------------------------------------------------------

Result<void> receipt(const Context& context) {
  const double a[2][2] = {{1, 2}, {3, 4}}, b[2][2] = {{5, 6}, {7, 8}};
  Table table({"element", "row of A · column of B", "multiply-adds", "result"});
  int multiply_adds = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      double sum = 0;
      std::string terms, steps;
      for (int k = 0; k < 2; ++k, ++multiply_adds) {
        sum += a[i][k] * b[k][j];
        terms += fmt::format("{}{:g}·{:g}", k ? " + " : "", a[i][k], b[k][j]);
        steps += fmt::format("{}{:g}", k ? " → " : "0 → ", sum);
      }
      table.row({fmt::format("C[{}][{}]", i, j), terms, steps, fmt::format("{:g}", sum)});
    }
  tell(context, "A = [1 2; 3 4]    B = [5 6; 7 8]\n");
  tell(context, table.text(context.terminal));
  tell(context, fmt::format("\nthe receipt: {} multiply-adds = {} FLOPs = 2·2³. At 4096³ it is {:.0f} "
                            "billion FLOPs, on {:.0f} MB of data.",
                            multiply_adds, 2 * multiply_adds, 2 * std::pow(4096.0, 3) / 1e9,
                            3 * 4.0 * 4096 * 4096 / 1e6));
  return {};
}

// L2's launch, warp by warp: a mark for each thread, and the elements that it owns.
Result<void> grid(const Context& context) {
  constexpr int kElements = 100, kThreads = 64, kWarp = 32, kBlocks = (kElements + kThreads - 1) / kThreads;
  tell(context, fmt::format("add<<<{}, {}>>>(x, y, {}):   i = blockIdx.x * blockDim.x + threadIdx.x\n",
                            kBlocks, kThreads, kElements));
  Table table({"block", "warp", "threadIdx.x", "its 32 threads", "elements"});
  for (int block = 0; block < kBlocks; ++block)
    for (int first = 0; first < kThreads; first += kWarp) {
      const int begin = block * kThreads + first, end = std::min(begin + kWarp, kElements);
      std::string threads;
      for (int i = begin; i < begin + kWarp; ++i) threads += i < kElements ? "█" : "·";
      table.row({first == 0 ? std::to_string(block) : "", std::to_string(first / kWarp),
                 fmt::format("{}-{}", first, first + kWarp - 1), threads,
                 fmt::format("{}-{}", begin, end - 1)});
    }
  tell(context, table.text(context.terminal));
  const int launched = kBlocks * kThreads;
  tell(context,
       fmt::format("\n█ has an element, · has none: {} threads for {} elements, {} without. The guard "
                   "`if (i < n)` stops them.\nA warp runs as one: the last one takes as long for {} "
                   "elements as the others for {}.",
                   launched, kElements, launched - kElements, kElements % kWarp, kWarp));
  tell(context,
       fmt::format("\nWith a grid-stride loop, <<<1, {0}>>> covers all: thread 0 adds elements 0 and {0}, "
                   "thread {1} adds element {1} alone.",
                   kThreads, kElements - kThreads));
  return {};
}

// One core, three loops, i-k-j so that memory is read in order.
double cpu_multiply_seconds(int n) {
  std::vector<float> a(static_cast<std::size_t>(n) * n, 1.5f), b(a.size(), 0.5f), c(a.size(), 0.0f);
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j)
        c[static_cast<std::size_t>(i) * n + j] +=
            a[static_cast<std::size_t>(i) * n + k] * b[static_cast<std::size_t>(k) * n + j];
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return c[a.size() - 1] == 0.75f * static_cast<float>(n) ? seconds : -1;  // the loop cannot be left out
}

Result<void> cpu_vs_gpu(const Context& context) {
  constexpr int n = 512;
  double seconds = cpu_multiply_seconds(n);
  for (int i = 0; i < 2; ++i) seconds = std::min(seconds, cpu_multiply_seconds(n));
  const double flops = 2.0 * n * n * n, large = 2 * std::pow(4096.0, 3);
  tell(context,
       fmt::format("one CPU core, three loops, {0}³: {1} = {2:.1f} GFLOP/s; 4096³ at this rate: {3:.0f} s", n,
                   format_time_ms(seconds * 1e3), flops / seconds / 1e9, large / (flops / seconds)));
  if (!has_gpu(context)) {
    cannot_show(context, "the GPU's half");
    CAPSTONE_TRY(const auto there, recorded_ladder(context.resources, "sgemm", kMountainSizes));
    if (there) {
      const double core = large / (flops / seconds) * 1e3, naive = there->steps.front().ms.point;
      tell(context, fmt::format("{}, at 4096³: a thread for each result: {}: {:.0f} times the core; the "
                                "library: {}: {:.0f} times",
                                as_recorded(*there), format_time_ms(naive), core / naive,
                                format_time_ms(there->library_ms), core / there->library_ms));
    }
    return {};
  }
  CAPSTONE_TRY(const Ladder ladder, timed(context, "sgemm", {"01_"}, {{"m", n}, {"k", n}, {"n", n}}));
  const LadderStep& naive = ladder.steps.front();
  if (!naive.timed()) return fail("the naive kernel got no time: " + naive.trouble);
  tell(context, fmt::format("{}, the same three loops, a thread for each result: {}: {:.0f} times the core; "
                            "the library: {}: {:.0f} times",
                            ladder.device, format_time_ms(naive.ms.point), seconds * 1e3 / naive.ms.point,
                            format_time_ms(ladder.library_ms), seconds * 1e3 / ladder.library_ms));
  return {};
}

Result<void> mountain(const Context& context) {
  tell(context,
       "C = A·B, 4096 × 4096, fp32: 137 billion FLOPs. Nine lines of code against the vendor's library.");
  if (!has_gpu(context)) {
    cannot_show(context, "the race");
    tell(context,
         "what both have to do: move 201 MB, once. What the naive kernel asks its caches for: 550 GB (8 "
         "bytes for each of 69 billion multiply-adds).");
    CAPSTONE_TRY(const auto there, recorded_ladder(context.resources, "sgemm", kMountainSizes));
    if (there) tell(context, as_recorded(*there) + ":\n" + mountain_text(*there, "there"));
    return {};
  }
  CAPSTONE_TRY(const Ladder ladder,
               timed(context, "sgemm", {"01_"}, {{"m", 2048}, {"k", 2048}, {"n", 2048}}));
  if (!ladder.steps.front().timed())
    return fail("the naive kernel got no time: " + ladder.steps.front().trouble);
  tell(context,
       fmt::format("on {}, at 2048³, to keep it short:\n{}", ladder.device, mountain_text(ladder, "here")));
  return {};
}

// What percent of the FP32 peak a ladder has reached, from the naive kernel to its best, as recorded.
void tell_climb(const Context& context, const Ladder& ladder) {
  const LadderStep* best = ladder.fastest();
  if (!best) return;
  tell(context,
       fmt::format("{}: this loop starts at {:.1f} % of the peak and ends at {:.0f} %, in {} steps. The "
                   "rest was paid for and not used.",
                   as_recorded(ladder), ladder.steps.front().percent_of_peak, best->percent_of_peak,
                   ladder.steps.size()));
}

Result<void> opening(const Context& context) {
  const Terminal& t = context.terminal;
  const auto at = [&](const char* minute, const char* what) {
    tell(context, fmt::format("\n{}", t.paint(Tone::kBold, fmt::format("{}  {}", minute, what))));
  };
  CAPSTONE_TRY(const Course course, load_course(context.resources.reference_kernels()));
  at("0:00", "The sentence");
  tell(context, course.sessions.front().half + " " + course.sessions.back().half);
  at("1:00", "The number");
  tell(context,
       "1000 × 1000 times 1000 × 1000 is 1000³: a billion multiply-adds. A model does several of these "
       "for each word, and all of its cost is in this loop.");
  CAPSTONE_TRY(const auto there, recorded_ladder(context.resources, "sgemm", kMountainSizes));
  if (there) tell_climb(context, *there);
  at("2:00", "The road");
  t.out(road_text(course, "L1", t));
  at("4:00", "The question");
  tell(context, course.question);
  tell(context, course.loop);
  at("4:30", "The mountain");
  return mountain(context);
}

// L2
// -----------------------------------------------------------------------------------------------------------

std::string cache_text(const LadderStep& step) {
  return fmt::format(
      "  cold (L2 flushed, graded)   {}\n  warm (back to back)         {}   {:.1f} times faster, with the "
      "same kernel",
      format_time_ms(step.ms.point), format_time_ms(step.warm_ms), step.ms.point / step.warm_ms);
}

Result<void> cold_cache(const Context& context) {
  tell(context, "z = x + y over 2 million floats (25 MB)");
  if (!has_gpu(context)) {
    cannot_show(context, "a kernel cold and warm");
    tell(context,
         "what it shows: the same launch with its inputs in the L2 cache, and with the cache flushed. A "
         "benchmark that repeats itself times the first.");
    CAPSTONE_TRY(const auto there, recorded_ladder(context.resources, "vector_add", kCacheSizes));
    if (there) tell(context, as_recorded(*there) + ":\n" + cache_text(there->steps.front()));
    return {};
  }
  CAPSTONE_TRY(const Ladder ladder, timed(context, "vector_add", {"01_"}, kCacheSizes));
  const LadderStep& step = ladder.steps.front();
  if (!step.timed()) return fail("the kernel got no time: " + step.trouble);
  tell(context, "on " + ladder.device + ":\n" + cache_text(step));
  return {};
}

Result<std::vector<Measurement>> judged(const Context& context, const std::vector<std::string>& names) {
  CAPSTONE_TRY(Problem problem, find_problem(context.resources.problems(), "vector_add"));
  JudgeRequest request;
  request.problem = &problem;
  request.options.budget_seconds = 1;
  request.restarts = 2;
  request.options.hidden_cases = 1;
  request.options.python = "none";
  request.options.quick = choose_backend(Backend::kAuto, context.resources).backend != Backend::kCuda;
  request.extra_checks = ExtraChecks::kNever;
  for (const std::string& name : names)
    request.candidates.push_back({name, context.resources.share / "examples" / "demos" / (name + ".cu")});
  auto measurements =
      judge(request, context.resources, [&](const std::string& text) { context.terminal.progress(text); });
  context.terminal.end_progress();
  return measurements;
}

Result<void> off_by_one(const Context& context) {
  tell(context, "if (i < n - 1) z[i] = x[i] + y[i];\n");
  CAPSTONE_TRY(const auto measurements, judged(context, {"off_by_one"}));
  tell(context, verdict_table(measurements, context.terminal));
  tell(context, explain_failure(measurements.front(), context.terminal, false));
  return {};
}

// The record of `two-gates`: the measurements as the ledger has them.
struct GatesRecord {
  std::string device, time;
  std::vector<Measurement> measurements;
};

Json gates_json(const GatesRecord& record) {
  return {{"demo", "two-gates"},
          {"device", record.device},
          {"time", record.time},
          {"measurements", record.measurements}};
}

Result<GatesRecord> read_gates(const Json& json) try {
  GatesRecord record;
  json.at("device").get_to(record.device);
  json.at("time").get_to(record.time);
  json.at("measurements").get_to(record.measurements);
  if (record.measurements.empty()) return fail("a record of two-gates without measurements");
  return record;
} catch (const Json::exception& error) {
  return fail(fmt::format("no record of two-gates: {}", error.what()));
}

Result<void> two_gates(const Context& context, const DemoInputs& inputs) {
  std::filesystem::path file;
  if (!inputs.record.empty()) {
    CAPSTONE_TRY(file, path_of_record(context, inputs.record));
  }
  CAPSTONE_TRY(const auto measurements, judged(context, {"fast_and_wrong", "slow_and_right"}));
  tell(context, verdict_table(measurements, context.terminal));
  if (has_gpu(context)) {
    if (file.empty()) return {};
    const GatesRecord record{measurements.front().environment.value("device", ""), utc_now(), measurements};
    return write_file_atomic(file, gates_json(record).dump(1) + "\n");
  }
  for (const GatesRecord& there :
       workflows::records_below(context.resources.share / "examples" / "demos" / "two_gates", read_gates)) {
    tell(context, fmt::format("\nthe second gate, as recorded on an {}, {}:\n", there.device,
                              there.time.substr(0, 10)));
    tell(context, verdict_table(there.measurements, context.terminal));
  }
  return {};
}

// L3
// -----------------------------------------------------------------------------------------------------------

Result<void> coalescing(const Context& context) {
  const Sizes sizes{{"m", 128}, {"k", 128}, {"n", 128}};
  Table table({"kernel", "requests of a warp", "sectors moved", "a request", "ideal"});
  const std::vector<std::string> rungs{"01_naive", "02_coalesced"};
  CAPSTONE_TRY(const auto counts, counted(context, "sgemm", rungs, sizes));
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    const Traffic& t = counts[i].total.global;
    table.row({rungs[i], std::to_string(t.requests), std::to_string(t.units),
               fmt::format("{:.2f}", t.units_per_request()), fmt::format("{:.2f}", t.ideal_per_request())});
  }
  tell(context,
       "sgemm 128³, counted on the CPU; a sector is 32 bytes. The two kernels differ in which index "
       "threadIdx.x is.\n");
  tell(context, table.text(context.terminal));
  return {};
}

Result<void> bank_conflict(const Context& context) {
  const Sizes sizes{{"rows", 256}, {"cols", 256}};
  Table table({"kernel", "requests to shared memory", "wavefronts", "a request"});
  const std::vector<std::string> rungs{"02_shared", "03_padded"};
  CAPSTONE_TRY(const auto counts, counted(context, "transpose", rungs, sizes));
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    const Traffic& t = counts[i].total.shared;
    table.row({rungs[i], std::to_string(t.requests), std::to_string(t.units),
               fmt::format("{:.2f}", t.units_per_request())});
  }
  tell(context,
       "transpose 256², counted on the CPU. The two kernels differ in one character: tile[32][32] and "
       "tile[32][33].\n");
  tell(context, table.text(context.terminal));
  return {};
}

Result<void> roofline_demo(const Context& context) {
  DevicePeaks peaks;
  const auto gpu = find_gpu(context.resources);
  CAPSTONE_TRY(peaks, find_device_like(gpu ? gpu->name : "h100"));
  const double ridge = peaks.fp32 / peaks.bandwidth;
  tell(context, fmt::format("{}{}: {} of memory, {} of FP32: the ridge is at {:.1f} FLOP/B\n",
                            gpu ? "" : "no GPU here; as an example ", peaks.name,
                            format_bandwidth(peaks.bandwidth), format_flops(peaks.fp32), ridge));
  struct Point {
    std::string id;
    double intensity, roof;
    Cost cost;
  };
  std::vector<Point> points;
  std::map<std::string, int> elsewhere;  // problems under another roof, by precision
  CAPSTONE_TRY(const auto catalogue, load_catalogue(context.resources.problems()));
  for (const std::string& id : ladders_of(context.resources, "")) {
    const auto at =
        std::find_if(catalogue.begin(), catalogue.end(), [&](const Problem& p) { return p.id == id; });
    if (at == catalogue.end())
      return fail(fmt::format("the ladder `{}` has no problem", id), context.resources.problems().string());
    const Problem& problem = *at;
    if (problem.precision != Precision::kFp32) {
      ++elsewhere[std::string(name_of(problem.precision))];
      continue;
    }
    CAPSTONE_TRY(const Cost cost, cost_at(problem, problem.measure));
    if (cost.bytes <= 0 || cost.flops <= 0) continue;
    const double intensity = cost.flops / cost.bytes;
    points.push_back({id, intensity, std::min(peaks.fp32, intensity * peaks.bandwidth), cost});
  }
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.intensity < b.intensity; });
  // Both axes logarithmic: 0.01 … 1000 FLOP/B, 13 cells a decade; the roof over it, 4 cells a decade.
  constexpr int kWide = 66, kHigh = 14;
  const double top = peaks.fp32;
  std::array<std::string, kHigh> canvas;
  canvas.fill(std::string(kWide, ' '));
  auto column = [](double intensity) {
    return static_cast<int>(std::lround((std::log10(intensity) + 2) * 13));
  };
  auto line = [&](double flops) {
    return static_cast<int>(std::lround((std::log10(top) - std::log10(flops)) * 4));
  };
  for (int x = 0; x < kWide; ++x) {
    const double intensity = std::pow(10.0, x / 13.0 - 2);
    const int y = line(std::min(top, intensity * peaks.bandwidth));
    if (y >= 0 && y < kHigh)
      canvas[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] = intensity < ridge ? '/' : '-';
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const int x = column(points[i].intensity), y = line(points[i].roof);
    if (x >= 0 && x < kWide && y >= 0 && y < kHigh)
      canvas[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] = static_cast<char>('a' + i % 26);
  }
  Table table({"", "problem", "FLOP/B", "roof", "bound by", "no faster than"});
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Roofline roof = roofline(points[i].cost, 0, peaks, Precision::kFp32);
    table.row({std::string(1, static_cast<char>('a' + i % 26)), points[i].id,
               fmt::format("{:.2f}", points[i].intensity), format_flops(points[i].roof), roof.bound_by,
               format_time_ms(roof.floor_ms)});
  }
  tell(context, table.text(context.terminal));
  if (!elsewhere.empty()) {
    std::vector<std::string> counts;
    int all = 0;
    for (const auto& [precision, problems] : elsewhere) {
      counts.push_back(fmt::format("{} in {}", problems, precision));
      all += problems;
    }
    tell(context, fmt::format("\n{} more have other roofs: {}", all, join(counts, ", ")));
  }
  // The picture last: a projector shows the end.
  tell(context, "");
  for (const std::string& row : canvas) tell(context, "  │" + row);
  tell(context, "  └" + std::string(kWide, '-') +
                    "\n   0.01         0.1          1            10           100          1000 FLOP/B");
  return {};
}

// L8
// -----------------------------------------------------------------------------------------------------------

Result<void> flash_traffic(const Context& context) {
  constexpr double n = 4096, d = 64, f = 4, tile = 64;
  const double scores = n * n * f, operand = n * d * f;
  Table table({"one head, n = 4096, d = 64, fp32", "naive: three kernels", "flash: one kernel"});
  auto mega = [](double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); };
  table.row({"read Q, K, V", mega(3 * operand), mega(3 * operand)});
  table.row({"write the scores, read them", mega(2 * scores), "stay on the chip"});
  table.row({"write the probabilities, read them", mega(2 * scores), "stay on the chip"});
  table.row({"write O", mega(operand), mega(operand)});
  const double naive = 4 * operand + 4 * scores, flash = 4 * operand;
  table.row({context.terminal.paint(Tone::kBold, "device memory"), mega(naive), mega(flash)});
  tell(context,
       fmt::format("the score matrix: {:.1f} million entries a head, {:.0f} MB", n * n / 1e6, scores / 1e6));
  tell(context, against_the_course(kScores, n * n, "here", fmt::format("{:.1f} million", n * n / 1e6)) +
                    ". 67 million are their bytes in fp32.\n");
  tell(context, table.text(context.terminal));
  tell(context, fmt::format("\n{:.0f} times less. Each tile of {:g} queries reads K and V again ({} in all), "
                            "from the L2 cache: they are {} together.",
                            naive / flash, tile, mega(n / tile * 2 * operand), mega(2 * operand)));
  tell(
      context,
      "Counted here: what device memory moves, in fp32, with a perfect cache. `capstone demo traffic` counts "
      "what the warps of three kernels ask for, in fp16 and before any cache: its factors are others.");
  return {};
}

// For demos that take nothing from the user.
template <Result<void> (*plain)(const Context&)>
Result<void> alone(const Context& context, const DemoInputs&) {
  return plain(context);
}

}  // namespace

void tell(const Context& context, const std::string& text) {
  context.terminal.out(context.terminal.fold(text));
}

Result<std::vector<Explanation>> counted(const Context& context, const std::string& id,
                                         const std::vector<std::string>& rungs, const Sizes& sizes,
                                         bool at_measured) {
  CAPSTONE_TRY(const Problem problem, find_problem(context.resources.problems(), id));
  std::vector<Explanation> all;
  for (const std::string& rung : rungs) {
    CAPSTONE_TRY(const std::filesystem::path source,
                 workflows::find_rung(context, id, rung, "capstone explain {0} --problem {1}"));
    auto explained =
        explain({&problem, source, sizes, {}, at_measured}, context.resources, [&](const std::string& text) {
          context.terminal.progress(
              fmt::format("{} of {}: {}: {}", all.size() + 1, rungs.size(), rung, text));
        });
    context.terminal.end_progress();
    if (!explained) return fail(explained.error());
    all.push_back(std::move(*explained));
  }
  return all;
}

Result<std::filesystem::path> path_of_record(const Context& context, const std::string& file) {
  if (const BackendChoice choice = choose_backend(Backend::kAuto, context.resources);
      choice.backend != Backend::kCuda)
    return fail("a GPU is needed to record this: " + choice.because, {},
                "leave out --record to see what was recorded on one", ExitCode::kEnvironment);
  return workflows::output_path(context, file, workflows::Output::kDemo);
}

Result<std::optional<Ladder>> recorded_ladder(const Resources& resources, const std::string& id,
                                              const Sizes& sizes) {
  CAPSTONE_TRY(const auto all, recorded_everywhere(resources));
  for (const Ladder& ladder : all)
    if (ladder.problem == id && ladder.sizes == sizes_json(sizes) && ladder.spans()) return ladder;
  return std::nullopt;
}

std::string as_recorded(const Ladder& ladder) {
  return fmt::format("as recorded on an {}, {}", ladder.device, ladder.time.substr(0, 10));
}

const std::vector<Demo>& demos() {
  static const std::vector<Demo> all{
      {"opening", "L1", "the first five minutes of the course: sentence, number, road, question, mountain",
       "In two weeks you close most of that gap by hand.", alone<opening>},
      {"receipt", "L1", "a 2 × 2 matrix product by hand",
       "Everything in this course is this, done a hundred billion times.", alone<receipt>},
      {"cpu-vs-gpu", "L1", "the same three loops on a core and on a GPU",
       "Nothing is clever yet. There are only more hands.", alone<cpu_vs_gpu>},
      {"mountain", "L1", "naive matmul and the library, back to back",
       "That gap is the mountain. We climb it until lecture 6.", alone<mountain>},
      {"grid", "L2", "a launch drawn: blocks, warps, threads, and the threads without an element",
       "You write one thread. The launch decides how many there are.", alone<grid>},
      {"warmup",
       "L2",
       "the first launches of a process, one by one",
       "The first time is a time of the machine. The kernel comes later.",
       warmup_demo,
       {"--record"}},
      {"cold-cache", "L2", "one kernel with cold and with warm caches",
       "If you time it twice, you time two different things.", alone<cold_cache>},
      {"off-by-one", "L2", "a wrong index, and gate one catching it",
       "A GPU does not tell you that you are wrong. It gives you a number.", alone<off_by_one>},
      {"two-gates",
       "L2",
       "fast and wrong, slow and right",
       "First right, then fast. In this order, or not at all.",
       two_gates,
       {"--record"}},
      {"coalescing", "L3", "two kernels that differ in which index is threadIdx.x",
       "The memory moves whole sectors. Ask for neighbours.", alone<coalescing>},
      {"bank-conflict", "L3", "one character: tile[32][32] and tile[32][33]",
       "One character. Thirty-two banks, and everybody wanted the same one.", alone<bank_conflict>},
      {"roofline", "L7", "where the course's problems stand under the roof",
       "Before you make it faster, ask which roof you are under.", alone<roofline_demo>},
      {"online-softmax",
       "L8",
       "tiles [1, 3] and [2, 5], or the room's: running largest and sum",
       "You can change your mind about the largest, if you mend the sum.",
       online_softmax_demo,
       {"--tiles"}},
      {"flash-traffic", "L8", "bytes that naive and flash attention move at n = 4096",
       "It does more arithmetic, and it is faster: it was never about the arithmetic.", alone<flash_traffic>},
      {"traffic", "W1",
       "bytes that the rungs of attention move, counted: with and without the matrix of scores",
       "We did not make the sums cheaper. We stopped writing them down.", traffic_demo},
      {"timelines", "W2",
       "copy, then multiply; copy while multiplying: two rungs, drawn from who waits for whom",
       "The tensor cores did not get faster. They stopped waiting.", timelines_demo},
      {"languages", "W3", "the same kernel in Triton and in CUDA side by side, and what each reaches",
       "Every line that you do not write is a decision that somebody else made.", languages_demo},
      {"prefill-decode",
       "W4",
       "a fat product and a skinny one under the roof; then requests in a server's places, step by step",
       "Decode pays for every weight and uses it once. More requests share the bill.",
       prefill_decode_demo,
       {"--lengths"}},
      {"serving",
       "W4",
       "static and continuous batching in a small server, with your attention kernel",
       "A batch that waits for its slowest request wastes every other place.",
       serving_demo,
       {"--kernel", "--record"}},
      {"formats", "W5", "one tensor in fp32, bf16, fp8 and fp4, with and without scales: bytes and error",
       "A scale for every sixteen numbers costs half a bit and brings the small ones back.", formats_demo},
      {"monkeys",
       "W6",
       "one prompt many times: how many tries are correct, and what the formula says",
       "A hundred monkeys need an editor at the door. The editor is what you built.",
       monkeys_demo,
       {"--from", "--problem", "-k", "-p"}},
      {"feedback",
       "W6",
       "a model that gets the judge's words after each try",
       "It does not need more tries. It needs to be told what was wrong.",
       feedback_demo,
       {"--from", "--problem"}},
      {"quadrant",
       "W6",
       "two gates make four fields: where the kernels of a class, or of the recorded searches, stand",
       "Three of the fields score nothing. Speed alone does not lead out of them.",
       quadrant_demo,
       {"--from", "--problem", "--names", "--times"}},
      {"evolution",
       "W6",
       "ideas, rounds and the winner's ancestors; then the three searches at equal tries",
       "It remembers what worked. That is the difference between sampling and evolution.",
       evolution_demo,
       {"--from", "--problem", "-k"}},
      {"two-gpus",
       "W6",
       "tokens to the experts of another GPU and back: what the wire takes, and what is waiting",
       "A token crosses the wire once. The rest of the time, a GPU waits.",
       two_gpus_demo,
       {"--record", "--from", "--nccl"}}};
  return all;
}

}  // namespace capstone::cli
