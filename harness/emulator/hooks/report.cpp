#include "hooks/report.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "hooks/block.h"
#include "hooks/flops.h"
#include "hooks/memory_map.h"
#include "hooks/sites.h"
#include "hooks/source_lines.h"
#include "hooks/symbols.h"
#include "hooks/waits.h"

namespace capstone_emu::hooks {
namespace {

/// What the accesses of one place, or of one line, reach.
struct Array {
  std::string name;
  bool shared;
  std::string_view access;  // "load", "store", "atomic"
  std::size_t bytes;        // of all of it; 0: unknown
  auto operator<=>(const Array&) const = default;
};

struct KernelCounts {
  std::string name, function;  // as the launch calls it; its symbol, where it has one
  std::uint64_t launches = 0, blocks = 0, threads = 0, dynamic_shared = 0;
  std::map<std::uint32_t, Counts> sites;  // by return address
  std::map<std::pair<std::uint32_t, Array>, Counts> arrays = {};
  // basic blocks, by return address of their counting call
  std::map<std::uint32_t, std::uint64_t> executed;
};
// In the order of their first launch. Never destroyed, because a program reports after its statics are
// destroyed.
std::vector<KernelCounts>& g_kernels = *new std::vector<KernelCounts>;

// One expression may launch several kernels: `kernel<<<…>>>` of a variable.
KernelCounts& kernel_called(const std::string& name, const std::string& function) {
  for (KernelCounts& kernel : g_kernels)
    if (kernel.name == name && kernel.function == function) return kernel;
  g_kernels.push_back({name, function, 0, 0, 0, 0, {}, {}, {}});
  return g_kernels.back();
}

// The only code of a launch that runs before the kernel is the code that passes its arguments.
std::string launched_function(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& blocks) {
  for (const auto& [pc, times] : blocks)
    if (std::string function = function_at(pc - 1); !function.empty() && !belongs_to_a_launch(function))
      return function;
  return {};
}

std::array<unsigned, 3> array_of(const Index3& i) { return {i.x, i.y, i.z}; }

using Places = std::unordered_map<std::uint32_t, Place>;
Place place_at(const Places& places, std::uint32_t address) {
  auto it = places.find(address);
  return it == places.end() ? Place{} : it->second;
}
/// The call instruction itself, by the address it returns to.
std::uint32_t call_of(std::uint32_t return_address) { return return_address - 1; }

/// A split barrier is known by its line, all others by their address.
Place place_of(const Finding& finding, const Places& places) {
  if (!finding.file.empty()) return {finding.file, finding.line};
  return place_at(places, call_of(finding.now.pc));
}

Json json_of(const Finding& finding, const Places& places) {
  const Place where = place_of(finding, places);
  const Place other = finding.before.pc ? place_at(places, call_of(finding.before.pc)) : Place{};
  Json json{{"kind", name_of(finding.kind)},
            {"kernel", finding.kernel},
            {"message", message_of(finding, where.text(), other.text())},
            {"file", where.file},
            {"line", where.line},
            {"block", array_of(block_of(finding, finding.now))},
            {"thread", array_of(thread_of(finding, finding.now))}};
  if (finding.before.pc) {
    json["other_file"] = other.file;
    json["other_line"] = other.line;
    json["other_block"] = array_of(block_of(finding, finding.before));
    json["other_thread"] = array_of(thread_of(finding, finding.before));
  }
  json["hint"] = hint_of(finding);
  return json;
}

Failure failure_of(const Finding& finding, const Places& places) {
  const Place where = place_of(finding, places);
  const Place other = finding.before.pc ? place_at(places, call_of(finding.before.pc)) : Place{};
  return {FailureKind::kUndefinedBehaviour,
          message_of(finding, where.text(), other.text()),
          finding.kernel,
          {},
          array_of(block_of(finding, finding.now)),
          array_of(thread_of(finding, finding.now)),
          where.file,
          where.line,
          hint_of(finding)};
}

/// Names of TensorKind.
constexpr const char* kTensorKinds[] = {"f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"};

Json tensor_memory_of(const Counts& c) {
  Json flops = Json::object();
  for (std::size_t i = 0; i < c.flops_of_kind.size(); ++i)
    if (c.flops_of_kind[i]) flops[kTensorKinds[i]] = c.flops_of_kind[i];
  return {{"loaded", c.tensor_loaded},
          {"stored", c.tensor_stored},
          {"engine_read", c.engine_read},
          {"engine_written", c.engine_written},
          {"flops", std::move(flops)}};
}

Json json_of(const Counts& c) {
  Json json{{"global",
             {{"requests", c.global_requests},
              {"sectors", c.sectors},
              {"ideal_sectors", c.ideal_sectors},
              {"bytes", c.global_bytes},
              {"loads", c.loads},
              {"stores", c.stores},
              {"store_sectors", c.store_sectors},
              {"active_lanes", c.global_lanes},
              {"bulk", c.bulk}}},
            {"shared",
             {{"requests", c.shared_requests},
              {"wavefronts", c.wavefronts},
              {"ideal", c.ideal_wavefronts},
              {"bytes", c.shared_bytes},
              {"active_lanes", c.shared_lanes}}},
            {"flops", c.flops},
            {"barriers", c.barriers},
            {"atomics", c.atomics}};
  if (c.tensor_loaded || c.tensor_stored || c.engine_read || c.engine_written)
    json["tensor_memory"] = tensor_memory_of(c);
  return json;
}

Json json_of(const Array& array, const Counts& c) {
  return {{"name", array.name},
          {"memory", array.shared ? "shared" : "global"},
          {"access", array.access},
          {"size", array.bytes},
          {"requests", array.shared ? c.shared_requests : c.global_requests},
          {"units", array.shared ? c.wavefronts : c.sectors},
          {"ideal", array.shared ? c.ideal_wavefronts : c.ideal_sectors},
          {"bytes", array.shared ? c.shared_bytes : c.global_bytes},
          {"active_lanes", array.shared ? c.shared_lanes : c.global_lanes}};
}

std::vector<FloatInstruction> instructions_that_ran() {
  std::vector<std::uint32_t> blocks;
  for (const KernelCounts& kernel : g_kernels)
    for (const auto& [pc, times] : kernel.executed) blocks.push_back(pc);
  return float_instructions(blocks);
}

Json json_of(const KernelCounts& kernel, const std::vector<FloatInstruction>& instructions,
             const Places& places) {
  std::map<std::pair<std::string, int>, Counts> lines;
  auto line_at = [&](std::uint32_t address) -> Counts& {
    const Place place = place_at(places, address);
    return lines[{place.file, place.line}];
  };
  for (const auto& [pc, counts] : kernel.sites) line_at(call_of(pc)).add(counts);
  std::map<std::pair<std::string, int>, std::map<Array, Counts>> arrays;
  for (const auto& [reached, counts] : kernel.arrays) {
    const Place place = place_at(places, call_of(reached.first));
    arrays[{place.file, place.line}][reached.second].add(counts);
  }
  for (const FloatInstruction& instruction : instructions)
    if (auto it = kernel.executed.find(instruction.block); it != kernel.executed.end())
      line_at(instruction.address).flops += it->second * instruction.flops;
  Json list = Json::array();
  for (const auto& [place, counts] : lines) {
    Json line{{"file", place.first}, {"line", place.second}};
    line.update(json_of(counts));
    if (const auto it = arrays.find(place); it != arrays.end())
      for (const auto& [array, reached] : it->second) line["arrays"].push_back(json_of(array, reached));
    list.push_back(std::move(line));
  }
  return {{"kernel", kernel.name},   {"function", kernel.function}, {"launches", kernel.launches},
          {"blocks", kernel.blocks}, {"threads", kernel.threads},   {"dynamic_shared", kernel.dynamic_shared},
          {"lines", std::move(list)}};
}

}  // namespace

void add_launch(const LaunchConfig& config) {
  if (!counting()) return;
  const auto executed_blocks = take_executed_blocks();
  KernelCounts& kernel = kernel_called(config.kernel, launched_function(executed_blocks));
  const std::uint64_t blocks = static_cast<std::uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
  ++kernel.launches;
  kernel.blocks += blocks;
  kernel.dynamic_shared = std::max<std::uint64_t>(kernel.dynamic_shared, config.dynamic_shared);
  kernel.threads += blocks * config.block.x * config.block.y * config.block.z;
  for (SiteId id = 1; id <= site_count(); ++id) {
    Site& site = sites[id];
    if (!site.used) continue;
    kernel.sites[site.pc].add(site.counts);
    const std::string_view access = site.atomic ? "atomic" : site.write ? "store" : "load";
    if (const Allocation* reached = hint_of(site); reached && site.counts.global_requests > 0)
      kernel.arrays[{site.pc, {reached->name, false, access, reached->bytes}}].add(site.counts);
    if (site.shared) kernel.arrays[{site.pc, {short_name(site.shared), true, access, 0}}].add(site.counts);
    site.forget();
  }
  for (const auto& [pc, times] : executed_blocks) kernel.executed[pc] += times;
}

void begin_report(bool counts) {
  count_accesses(counts);
  for (SiteId id = 1; id <= site_count(); ++id) sites[id].forget();
  g_kernels.clear();
  take_findings();
  take_early_reads();
}

Report make_report() {
  const bool counts = counting();
  const std::vector<Finding> findings = take_findings(), early = take_early_reads();
  const std::vector<FloatInstruction> instructions =
      counts ? instructions_that_ran() : std::vector<FloatInstruction>{};
  std::vector<std::uint32_t> addresses;
  for (const Finding& finding : findings)
    for (const Party* party : {&finding.now, &finding.before})
      if (party->pc) addresses.push_back(call_of(party->pc));
  for (const Finding& finding : early)
    for (const Party* party : {&finding.now, &finding.before}) addresses.push_back(call_of(party->pc));
  for (const FloatInstruction& instruction : instructions) addresses.push_back(instruction.address);
  if (counts)
    for (const KernelCounts& kernel : g_kernels)
      for (const auto& [pc, unused] : kernel.sites) addresses.push_back(call_of(pc));
  const Places places = places_of(std::move(addresses));
  Report report;
  if (!early.empty()) {
    const Finding& first = early.front();
    report.early_read = message_of(first, place_at(places, call_of(first.now.pc)).text(),
                                   place_at(places, call_of(first.before.pc)).text()) +
                        "; " + hint_of(first);
  }
  report.json = {{"findings", Json::array()}, {"kernels", Json::array()}};
  for (const Finding& finding : findings) {
    report.json["findings"].push_back(json_of(finding, places));
    if (finding.kind != FindingKind::kSameValue) report.errors.push_back(failure_of(finding, places));
  }
  if (counts)
    for (const KernelCounts& kernel : g_kernels)
      report.json["kernels"].push_back(json_of(kernel, instructions, places));
  if (Json waits = take_waits(); !waits.is_null()) report.json["waits"] = std::move(waits);
  g_kernels.clear();
  return report;
}

}  // namespace capstone_emu::hooks
