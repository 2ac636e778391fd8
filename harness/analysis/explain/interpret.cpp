#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/analysis/explain/advice.h"
#include "harness/analysis/explain/explain.h"
#include "harness/base/files.h"
#include "harness/base/symbols.h"
#include "harness/base/text.h"
#include "harness/correctness/cases.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxSource = 1u << 20;  // [B]
constexpr std::size_t kMaxText = 160;         // [B] of a source line in a record

Error malformed(const std::string& what) {
  return {"the report of the observed run cannot be read: " + what,
          {},
          "this is a defect of capstone; please report it",
          ExitCode::kInternal};
}

Traffic traffic_of(const Json& json, const char* units, const char* ideal) {
  return {json.at("requests"), json.at(units),          json.at(ideal),
          json.at("bytes"),    json.at("active_lanes"), json.value("bulk", std::uint64_t{0})};
}

// The lines of the source files; a file is read when a count first names it.
class Sources {
 public:
  explicit Sources(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::string line(const std::string& file, int number) {
    auto it = files_.find(file);
    if (it == files_.end()) {
      std::vector<std::string> lines;
      if (auto text = lies_in_folder(file) ? read_file(folder_ / file, kMaxSource) : Result<std::string>())
        lines = split(*text, '\n');
      it = files_.emplace(file, std::move(lines)).first;
    }
    const auto at = static_cast<std::size_t>(number);
    if (number < 1 || at > it->second.size()) return {};
    std::string text(trim(it->second[at - 1]));
    if (text.size() > kMaxText) text = text.substr(0, kMaxText);
    return to_utf8(text);
  }

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::vector<std::string>> files_;
};

LineCounts line_of(const Json& json, Sources& sources) {
  LineCounts c;
  c.file = json.at("file");
  c.line = json.at("line");
  c.text = sources.line(c.file, c.line);
  c.global = traffic_of(json.at("global"), "sectors", "ideal_sectors");
  c.loads = json["global"].at("loads");
  c.stores = json["global"].at("stores");
  c.store_sectors = json["global"].at("store_sectors");
  c.shared = traffic_of(json.at("shared"), "wavefronts", "ideal");
  c.flops = json.at("flops");
  c.barriers = json.at("barriers");
  c.atomics = json.at("atomics");
  if (json.contains("tensor_memory")) c.tensor = json["tensor_memory"].get<TensorMemoryTraffic>();
  for (const Json& array : json.value("arrays", Json::array()))
    c.arrays.push_back({to_utf8(array.at("name").get<std::string>()), array.at("memory") == "shared",
                        array.at("access"), array.at("size"), traffic_of(array, "units", "ideal")});
  return c;
}

// FP32 lanes of one SM: 64 on Volta, Turing and GA100, 128 on later GPUs. Chosen by the clock that the
// device's FP32 rate then implies.
double clock_hz(const DevicePeaks& device) {
  constexpr double kSlowest = 1e9;
  if (device.sm_count <= 0 || device.fp32 <= 0) return 0;
  const double wide = device.fp32 / (2.0 * 128 * device.sm_count);
  return wide >= kSlowest ? wide : 2 * wide;
}

// Rows that are shorter than a few warps make other requests than long ones: a warp spans several rows, lanes
// are idle, and a tile has more edge. Counts per request hold at the measured size only if rows are long,
// too.
std::string caution_of(const Problem& problem, const Sizes& sizes) {
  constexpr std::int64_t kShortRow = 128;
  for (const Parameter& parameter : problem.signature) {
    if (parameter.is_scalar() || parameter.shape.empty()) continue;
    const auto here = shape_at(parameter, sizes), measured = shape_at(parameter, problem.measure);
    if (!here || !measured || here->back() >= kShortRow || here->back() >= measured->back()) continue;
    return fmt::format(
        "rows of {} have {} elements here and {} at the measured size: sectors and lanes per request, and "
        "with "
        "them the advice, may differ there; observe longer rows with --size",
        parameter.name, here->back(), measured->back());
  }
  return {};
}

}  // namespace

Result<ModelledFloor> modelled_floor(const Explanation& e, const Problem& problem,
                                     const DevicePeaks& device) {
  CAPSTONE_TRY(const Cost cost, cost_at(problem, problem.measure));
  ModelledFloor floor{device.name, device.source, 0, 0, 0, {}};
  floor.sizes = sizes_json(problem.measure);
  floor.by_rule = e.passes_at_measured > 0;
  if (!floor.by_rule && e.compulsory_flops > 0 && cost.flops > 0)
    floor.scale = cost.flops / e.compulsory_flops;
  else if (!floor.by_rule && e.compulsory_bytes > 0 && cost.bytes > 0)
    floor.scale = cost.bytes / e.compulsory_bytes;
  if (device.bandwidth > 0) floor.memory_ms = cost.bytes / device.bandwidth * 1e3;
  double passes = e.passes_at_measured, flops = e.flops_at_measured;
  if (!floor.by_rule) {
    for (const KernelCounts& kernel : e.kernels)
      for (const LineCounts& line : kernel.lines) passes += l1_passes(line) * floor.scale;
    flops = double(e.total.flops) * floor.scale;
  }
  if (const double clock = clock_hz(device); clock > 0)
    floor.wavefront_ms = passes / (clock * device.sm_count) * 1e3;
  if (const ComputePeak peak = peak_of(device, problem.precision); peak.flops > 0) {
    floor.compute_ms = flops / peak.flops * 1e3;
    floor.work_ms = cost.flops / peak.flops * 1e3;
  }
  floor.bound_by = floor.ms() == floor.memory_ms      ? "memory"
                   : floor.ms() == floor.wavefront_ms ? "shared memory and L1"
                                                      : "compute";
  return floor;
}

namespace {

// Kernels and total; the rest is left empty.
Result<Explanation> counts_of(const Json& report, const std::filesystem::path& folder) {
  Explanation e;
  Sources sources(folder);
  try {
    for (const Json& json : report.at("kernels")) {
      KernelCounts kernel{json.at("kernel"),
                          json.at("launches"),
                          json.at("blocks"),
                          json.at("threads"),
                          json.value("dynamic_shared", std::uint64_t{0}),
                          {},
                          demangled(json.value("function", std::string()))};
      // kernel.kernel is a variable's name
      if (!kernel.function.empty() && base_name(kernel.kernel) != base_name(kernel.function))
        kernel.kernel = kernel.function;
      for (const Json& line : json.at("lines")) {
        kernel.lines.push_back(line_of(line, sources));
        e.total.add(kernel.lines.back());
      }
      e.kernels.push_back(std::move(kernel));
    }
  } catch (const std::exception& error) {
    return fail(malformed(error.what()));
  }
  e.total.share = e.kernels.empty() ? 0 : 1;
  return e;
}

double clocks_as_counted(const KernelCounts&, const LineCounts& line) { return modelled_clocks(line); }

// [B] An upper bound of what the launches have to move: an array may be used in part, or by some of them.
double bytes_of_arrays(const KernelCounts& kernel) {
  std::map<std::string, std::uint64_t> sizes;
  for (const LineCounts& line : kernel.lines)
    for (const ArrayTraffic& array : line.arrays)
      if (!array.shared) sizes[array.name] = std::max(sizes[array.name], array.size);
  double sum = 0;
  for (const auto& [name, size] : sizes) sum += double(size);
  return sum * double(kernel.launches);
}

}  // namespace

Result<Explanation> interpret_program(const Json& report, const std::filesystem::path& source) {
  CAPSTONE_TRY(Explanation e, counts_of(report, source.parent_path()));
  for (const KernelCounts& kernel : e.kernels) e.compulsory_bytes += bytes_of_arrays(kernel);
  rank_lines(e, clocks_as_counted);
  return e;
}

Result<Explanation> interpret(const Json& report, const ExplainRequest& request) {
  CAPSTONE_TRY(Explanation e, counts_of(report, request.source.parent_path()));
  e.problem_id = request.problem->id;
  e.sizes = sizes_json(request.sizes);
  CAPSTONE_TRY(Cost cost, cost_at(*request.problem, request.sizes));
  e.compulsory_bytes = cost.bytes;
  e.compulsory_flops = cost.flops;
  rank_lines(e, clocks_as_counted);
  e.caution = caution_of(*request.problem, request.sizes);
  if (request.device) {
    CAPSTONE_TRY(e.floor, modelled_floor(e, *request.problem, *request.device));
  }
  return e;
}

}  // namespace capstone
