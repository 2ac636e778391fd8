#include "harness/workflows/two_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/gpu.h"
#include "harness/model/fields.h"
#include "harness/runtime/build/run_program.h"
#include "harness/runtime/python/python.h"
#include "harness/timing/statistics.h"
#include "harness/workflows/records.h"

namespace capstone::workflows {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;
constexpr std::size_t kNumbers = 12;                           // of a repetition
constexpr std::chrono::seconds kLimit{150}, kGrace{30};        // of the program itself; beyond that, of ours
constexpr std::string_view kPart = "not a run of two GPUs: ";  // of every message of the reader

fs::path two_gpus_folder(const Resources& resources) { return resources.share / "examples/demos/two_gpus"; }

Json json_of(const ExchangeCase& c) {
  return {{"method", c.method},
          {"tokens", c.tokens},
          {"routing", c.routing},
          {"format", c.format},
          {"crossing", c.crossing},
          {"expert_rows", c.expert_rows},
          {"dispatch_bytes", c.dispatch_bytes},
          {"combine_bytes", c.combine_bytes},
          {"checked", c.checked},
          {"wrong", c.wrong},
          {"lost", c.lost},
          {"launched", c.launched},
          {"queued", c.queued}};
}

ExchangeCase case_of(const Json& json) {
  ExchangeCase c;
  read(json, "method", c.method);
  read(json, "tokens", c.tokens);
  read(json, "routing", c.routing);
  read(json, "format", c.format);
  read(json, "crossing", c.crossing);
  read(json, "expert_rows", c.expert_rows);
  read(json, "dispatch_bytes", c.dispatch_bytes);
  read(json, "combine_bytes", c.combine_bytes);
  read(json, "checked", c.checked);
  read(json, "wrong", c.wrong);
  read(json, "lost", c.lost);
  read(json, "launched", c.launched);
  read(json, "queued", c.queued);
  return c;
}

bool are_times(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double us) { return std::isfinite(us) && us >= 0; });
}

// What is wrong with a case; empty: nothing.
std::string fault_of(const ExchangeCase& c) {
  for (const auto& [key, pair] :
       {std::pair{"crossing", &c.crossing}, std::pair{"expert_rows", &c.expert_rows},
        std::pair{"dispatch_bytes", &c.dispatch_bytes}, std::pair{"combine_bytes", &c.combine_bytes}})
    if (pair->size() != 2) return fmt::format("{} has {} numbers, not one for each GPU", key, pair->size());
  for (const auto& [key, samples] : {std::pair{"launched", &c.launched}, std::pair{"queued", &c.queued}}) {
    if (samples->empty()) return fmt::format("{} has no repetition", key);
    for (std::size_t i = 0; i < samples->size(); ++i) {
      const auto& numbers = (*samples)[i];
      if (numbers.size() != kNumbers)
        return fmt::format("{}[{}] has {} numbers, not {}", key, i, numbers.size(), kNumbers);
      if (!are_times(numbers)) return fmt::format("{}[{}] has a number that is no time", key, i);
    }
  }
  return {};
}

std::string fault_of_link(const TwoGpusRun& run) {
  if (!(run.link_bytes > 0)) return "link.bytes must be above 0";
  for (const auto& [key, directions] :
       {std::pair{"alone_us", &run.alone_us}, std::pair{"both_us", &run.both_us}}) {
    if (directions->size() != 2)
      return fmt::format("link.{} has {} lists, not one for each direction", key, directions->size());
    for (const auto& times : *directions)
      if (times.empty() || !are_times(times) || median(times) <= 0)
        return fmt::format("link.{} must hold times above 0", key);
  }
  return {};
}

// Ends since the meeting.
double ends(const std::vector<double>& numbers, std::size_t gpu, std::size_t step) {
  return numbers[3 * gpu + step];
}

// How long the exchange took in each repetition, and how long the first GPU waited for the other one's begin.
struct Lengths {
  std::vector<double> whole, other;
};
Lengths lengths_of(const std::vector<std::vector<double>>& samples, Exchange exchange) {
  Lengths times;
  for (const auto& numbers : samples) {
    const bool combine = exchange == Exchange::kCombine;
    const double begin[2] = {combine ? ends(numbers, 0, 1) : 0, combine ? ends(numbers, 1, 1) : 0};
    const std::size_t step = combine ? 2 : 0;
    times.whole.push_back(std::max(ends(numbers, 0, step), ends(numbers, 1, step)) -
                          std::min(begin[0], begin[1]));
    times.other.push_back(std::fabs(begin[0] - begin[1]));
  }
  return times;
}

// PyTorch's wheels bring NCCL along.
fs::path nccl_of_python(const Resources& resources) {
  const auto python = find_python("auto", resources);
  if (!python) return {};
  std::error_code ignored;
  for (const fs::path& path : python->paths) {
    const fs::path file = path / "nvidia/nccl/lib/libnccl.so.2";
    if (fs::is_regular_file(file, ignored)) return file;
  }
  return {};
}

// Of the first two, in an order that is the same for everyone who waits for both.
Result<std::vector<GpuIdentity>> find_two_gpus(const Resources& resources) {
  const std::vector<std::string> visible = visible_gpus(resources);
  if (visible.size() < 2) return fail("there are not two GPUs here", {}, {}, ExitCode::kEnvironment);
  std::vector<GpuIdentity> gpus;
  for (std::size_t i = 0; i < 2; ++i) {
    Resources one = resources;
    one.visible_devices = trim(visible[i]);
    CAPSTONE_TRY(GpuIdentity gpu, find_gpu(one));
    gpus.push_back(std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(), [](const auto& a, const auto& b) { return a.uuid < b.uuid; });
  return gpus;
}

}  // namespace

double TwoGpusRun::bandwidth(std::size_t gpu) const { return link_bytes / (median(both_us[gpu]) * 1e-6); }

Json two_gpus_json(const TwoGpusRun& run) {
  Json cases = Json::array();
  for (const ExchangeCase& one : run.cases) cases.push_back(json_of(one));
  return {{"demo", "two-gpus"},
          {"schema", kSchema},
          {"tool", run.tool},
          {"time", run.time},
          {"device", run.device},
          {"nccl", run.nccl},
          {"no_nccl", run.no_nccl},
          {"stopped", run.stopped},
          {"timer_step_ns", run.timer_step_ns},
          {"link", {{"bytes", run.link_bytes}, {"alone_us", run.alone_us}, {"both_us", run.both_us}}},
          {"cases", cases}};
}

Result<TwoGpusRun> read_two_gpus(const Json& json) try {
  const auto refuse = [](const std::string& why) { return fail(std::string(kPart) + why); };
  if (!json.is_object()) return refuse("it is no JSON object");
  TwoGpusRun run;
  std::string demo;
  int schema = 0;
  read(json, "demo", demo);
  read(json, "schema", schema);
  if (demo != "two-gpus") return refuse("`demo` must be two-gpus");
  if (schema != kSchema)
    return refuse(fmt::format("`schema` is {}; this capstone reads {}", schema, kSchema));
  for (auto [key, into] :
       std::initializer_list<std::pair<const char*, std::string*>>{{"tool", &run.tool},
                                                                   {"time", &run.time},
                                                                   {"device", &run.device},
                                                                   {"nccl", &run.nccl},
                                                                   {"no_nccl", &run.no_nccl},
                                                                   {"stopped", &run.stopped}})
    read(json, key, *into);
  if (run.device.empty()) return refuse("it names no `device`");
  read(json, "timer_step_ns", run.timer_step_ns);
  const Json* link = field(json, "link");
  if (!link) return refuse("it has no `link`");
  read(*link, "bytes", run.link_bytes);
  read(*link, "alone_us", run.alone_us);
  read(*link, "both_us", run.both_us);
  if (const std::string fault = fault_of_link(run); !fault.empty()) return refuse(fault);
  read_each(json, "cases", run.cases, case_of);
  if (run.cases.empty()) return refuse("it has no `cases`");
  for (std::size_t i = 0; i < run.cases.size(); ++i)
    if (const std::string fault = fault_of(run.cases[i]); !fault.empty())
      return refuse(fmt::format("cases[{}].{}", i, fault));
  return run;
} catch (const WrongType& wrong) {
  return fail(std::string(kPart) + wrong.what());
}

Result<TwoGpusRun> two_gpus_record(const fs::path& file) {
  CAPSTONE_TRY(const std::string text, read_file(file, kLargestRecord));
  auto run = read_two_gpus(Json::parse(text, nullptr, false));
  if (!run) run.error().where = file.string();
  return run;
}

Result<TwoGpusRun> two_gpus_of_output(const std::string& text) {
  Json record = {{"demo", "two-gpus"}, {"schema", kSchema}, {"cases", Json::array()}};
  for (const std::string& line : split(text, '\n')) {
    const Json part = Json::parse(line, nullptr, false);
    if (!part.is_object()) continue;
    for (const auto& [key, value] : part.items()) {
      if (key == "case")
        record["cases"].push_back(value);
      else if (key == "devices" && value.is_array() && value.size() == 2 && value[0].is_string() &&
               value[1].is_string())
        record["device"] = value[0] == value[1]
                               ? "2 x " + value[0].get<std::string>()
                               : value[0].get<std::string>() + " and " + value[1].get<std::string>();
      else
        record[key] = value;
    }
  }
  if (record["cases"].empty() && record.contains("stopped") && record["stopped"].is_string())
    return fail("nothing was measured: " + printable(record["stopped"].get<std::string>()), {}, {},
                ExitCode::kEnvironment);
  auto run = read_two_gpus(record);
  if (run && !record.contains("done") && run->stopped.empty()) run->stopped = "the program ended early";
  return run;
}

ExchangeSplit split_of(const TwoGpusRun& run, const ExchangeCase& one, Exchange exchange) {
  const auto& bytes = exchange == Exchange::kDispatch ? one.dispatch_bytes : one.combine_bytes;
  const Lengths launched = lengths_of(one.launched, exchange), queued = lengths_of(one.queued, exchange);
  ExchangeSplit parts;
  for (std::size_t gpu = 0; gpu < 2; ++gpu) {
    const double us = double(bytes[gpu]) / run.bandwidth(gpu) * 1e6;
    if (us >= parts.wire) parts.wire = us, parts.bytes = double(bytes[gpu]);
  }
  parts.time = median_interval(launched.whole);
  parts.launch = parts.time.point - median(queued.whole);
  parts.other = median(queued.other);
  parts.rest = median(queued.whole) - parts.wire - parts.other;
  return parts;
}

std::vector<TwoGpusRun> recorded_two_gpus(const Resources& resources) {
  auto runs = records_below(two_gpus_folder(resources), read_two_gpus);
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.device < b.device; });
  return runs;
}

std::string why_not_two_gpus(const Resources& resources) {
  const BackendChoice choice = choose_backend(Backend::kAuto, resources);
  if (choice.backend != Backend::kCuda) return choice.because;
  const std::size_t count = visible_gpus(resources).size();
  return count < 2 ? fmt::format("{} GPU here", count) : "";
}

Result<TwoGpusRun> run_two_gpus(const fs::path& nccl, const Workspace& workspace,
                                const ProgressSink& progress) {
  std::error_code ignored;
  const fs::path wanted = nccl.empty() || nccl.is_absolute() ? nccl : workspace.cwd / nccl;
  if (!wanted.empty() && !fs::is_regular_file(wanted, ignored))
    return fail("no such file", wanted.string(), "--nccl wants libnccl.so.2");
  CAPSTONE_TRY(const std::vector<GpuIdentity> gpus, find_two_gpus(workspace.resources));
  CAPSTONE_TRY(const FileLock first, take_gpu(gpus[0], narration_to(progress)));
  CAPSTONE_TRY(const FileLock second, take_gpu(gpus[1], narration_to(progress)));
  ProgramRequest program;
  program.source = two_gpus_folder(workspace.resources) / "two_gpus.cu";
  program.arguments = {"--limit", std::to_string(kLimit.count())};
  const fs::path found = wanted.empty() ? nccl_of_python(workspace.resources) : wanted;
  if (!found.empty()) program.arguments.insert(program.arguments.end(), {"--nccl", found.string()});
  program.timeout = kLimit + kGrace;
  program.confined = false;
  report_step(progress, "building the program; then two GPUs exchange tokens");
  CAPSTONE_TRY(const CudaRun done, run_cuda_program(program, gpus[0].arch(), workspace.resources));
  if (!done.built())
    return fail("the demo's program does not build", program.source.string(), done.log,
                ExitCode::kEnvironment);
  auto run = two_gpus_of_output(done.process.out);
  if (!run && !trim(done.process.err).empty()) run.error().hint = trim(printable(done.process.err));
  if (!run) return run;
  run->time = utc_now();
  run->tool = workspace.resources.version;
  return run;
}

}  // namespace capstone::workflows
