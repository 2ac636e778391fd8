#include "harness/analysis/profile/ncu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "harness/base/csv.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/symbols.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr const char* kTime = "gpu__time_duration.sum";
constexpr const char* kCompute = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kMemory = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kResident = "sm__warps_active.avg.pct_of_peak_sustained_active";
constexpr const char* kPossible = "sm__maximum_warps_per_active_cycle_pct";
constexpr const char* kLoads = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
constexpr const char* kLoadSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
constexpr const char* kStores = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
constexpr const char* kStoreSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
constexpr const char* kLocalLoads = "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum";
constexpr const char* kLocalStores = "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum";
constexpr const char* kWavefronts = "memory_l1_wavefronts_shared";
constexpr const char* kIdealWavefronts = "memory_l1_wavefronts_shared_ideal";
constexpr const char* kLanes = "smsp__thread_inst_executed_per_inst_executed.ratio";
constexpr const char* kRegisters = "launch__registers_per_thread";
constexpr const char* kStaticShared = "launch__shared_mem_per_block_static";
constexpr const char* kDynamicShared = "launch__shared_mem_per_block_dynamic";
constexpr const char* kBlocks = "launch__grid_size";
constexpr const char* kThreads = "launch__block_size";
// printed with two digits: one block too many still reads "1.00"
constexpr const char* kWaves = "launch__waves_per_multiprocessor";
constexpr const char* kProcessors = "launch__sm_count";

// The same quantity under the names of different chips and versions. The first one that is present counts.
constexpr std::array kDram{"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                           "dram__throughput.avg.pct_of_peak_sustained_elapsed"};
constexpr std::array kTensor{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                             "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
                             "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"};

struct Limit {
  const char* metric;
  const char* name;
};
constexpr std::array kLimits{Limit{"launch__occupancy_limit_registers", "registers"},
                             Limit{"launch__occupancy_limit_shared_mem", "shared memory"},
                             Limit{"launch__occupancy_limit_warps", "block size"},
                             Limit{"launch__occupancy_limit_blocks", "blocks"},
                             Limit{"launch__occupancy_limit_barriers", "barriers"}};

constexpr std::string_view kStallHead = "smsp__average_warps_issue_stalled_",
                           kStallTail = "_per_issue_active.ratio";
constexpr std::array kStalls{
    "barrier",         "branch_resolving", "dispatch_stall",     "drain",    "gmma",         "imc_miss",
    "lg_throttle",     "long_scoreboard",  "math_pipe_throttle", "membar",   "mio_throttle", "misc",
    "no_instruction",  "not_selected",     "short_scoreboard",   "sleeping", "tex_throttle", "wait",
    "warpgroup_arrive"};
std::string stall_metric(const char* name) {
  return std::string(kStallHead) + name + std::string(kStallTail);
}

/// One row of the table, which is one launch.
struct Launch {
  std::map<std::string, std::string> cells;

  std::optional<double> value(const std::string& metric) const {
    const auto at = cells.find(metric);
    if (at == cells.end()) return std::nullopt;
    const std::string text = replace_all(std::string(trim(at->second)), ",", "");
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !std::isfinite(number)) return std::nullopt;  // "n/a", "nan", "(!) n/a"
    return number;
  }
};

std::optional<double> ratio(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b <= 0) return std::nullopt;
  return *a / *b;
}

/// All launches of one kernel.
class Group {
 public:
  explicit Group(std::string name) : name_(std::move(name)) {}
  void add(Launch launch) { launches_.push_back(std::move(launch)); }
  const std::string& name() const { return name_; }

  KernelProfile profile() const {
    KernelProfile k;
    k.kernel = name_;
    k.launches = static_cast<double>(launches_.size());
    k.time_us = sum(kTime);
    if (k.time_us) *k.time_us /= 1e3;
    k.blocks = sum(kBlocks);
    k.threads = mean(kThreads);
    k.compute_percent = mean(kCompute);
    k.memory_percent = mean(kMemory);
    k.dram_percent = first_of(kDram);
    k.tensor_percent = first_of(kTensor);
    k.occupancy_percent = mean(kResident);
    k.occupancy_limit_percent = mean(kPossible);
    k.occupancy_limiter = limiter();
    k.waves = waves();
    if (k.waves) k.tail_percent = tail_of(*k.waves);
    k.sectors_per_load = ratio(sum(kLoadSectors), sum(kLoads));
    k.sectors_per_store = ratio(sum(kStoreSectors), sum(kStores));
    k.sectors_per_request =
        ratio(plus(sum(kLoadSectors), sum(kStoreSectors)), plus(sum(kLoads), sum(kStores)));
    k.wavefronts_over_ideal = ratio(sum(kWavefronts), sum(kIdealWavefronts));
    k.lanes_per_instruction = mean(kLanes);
    if (const auto local = plus(sum(kLocalLoads), sum(kLocalStores));
        local && k.blocks && k.threads && *k.threads > 0)
      k.local_requests_per_warp = *local / (*k.blocks * std::ceil(*k.threads / 32));
    k.registers = mean(kRegisters);
    k.static_shared_bytes = mean(kStaticShared);
    k.dynamic_shared_bytes = mean(kDynamicShared);
    find_stall(k);
    return k;
  }

 private:
  static std::optional<double> plus(std::optional<double> a, std::optional<double> b) {
    if (!a || !b) return std::nullopt;
    return *a + *b;
  }
  std::optional<double> sum(const std::string& metric) const {
    double all = 0;
    for (const Launch& launch : launches_) {
      const auto value = launch.value(metric);
      if (!value) return std::nullopt;
      all += *value;
    }
    return all;
  }
  // The mean, weighted by time if the times are known.
  std::optional<double> mean(const std::string& metric) const {
    double all = 0, weights = 0;
    for (const Launch& launch : launches_) {
      const auto value = launch.value(metric);
      if (!value) return std::nullopt;
      const double weight = std::max(launch.value(kTime).value_or(1), 1e-9);
      all += weight * *value;
      weights += weight;
    }
    return all / weights;
  }
  template <class Names>
  std::optional<double> first_of(const Names& names) const {
    for (const char* name : names)
      if (const auto value = mean(name)) return value;
    return std::nullopt;
  }
  std::string limiter() const {
    std::string name;
    double least = 1e300;
    for (const Limit& limit : kLimits)
      if (const auto blocks = mean(limit.metric); blocks && *blocks < least) {
        least = *blocks;
        name = limit.name;
      }
    return name;
  }
  // Computed from the whole numbers if they are present.
  std::optional<double> waves() const {
    double room = 1e300;
    for (const Limit& limit : kLimits)
      if (const auto blocks = mean(limit.metric)) room = std::min(room, *blocks);
    const auto processors = mean(kProcessors), blocks = mean(kBlocks);
    if (!processors || !blocks || room > 1e299 || room * *processors < 1) return mean(kWaves);
    return *blocks / (room * *processors);
  }
  void find_stall(KernelProfile& k) const {
    double all = 0, most = 0;
    for (const char* name : kStalls) {
      const auto value = mean(stall_metric(name));
      if (!value) continue;
      all += *value;
      if (*value <= most) continue;
      most = *value;
      k.top_stall = replace_all(name, "_", " ");
    }
    if (most > 0) k.top_stall_percent = 100 * most / all;
  }

  std::string name_;
  std::vector<Launch> launches_;
};

}  // namespace

std::optional<fs::path> find_ncu(const Resources& resources) {
  if (auto found = find_program("ncu", resources.path_variable)) return found;
  std::error_code code;
  std::vector<fs::path> places{"/usr/local/cuda/bin/ncu"};
  if (auto nvcc = find_program("nvcc", resources.path_variable))
    places.push_back(fs::canonical(*nvcc, code).parent_path() / "ncu");
  for (const auto& entry : fs::directory_iterator("/opt/nvidia/nsight-compute", code))
    places.push_back(entry.path() / "ncu");
  std::sort(places.begin() + 1, places.end(), std::greater<>());  // newest first
  for (const fs::path& place : places)
    if (fs::exists(place, code)) return place;
  return std::nullopt;
}

std::vector<std::string> ncu_metrics() {
  std::vector<std::string> all{
      kTime,      kCompute,      kMemory,        kResident,    kPossible,   kLoads,           kLoadSectors,
      kStores,    kStoreSectors, kLocalLoads,    kLocalStores, kWavefronts, kIdealWavefronts, kLanes,
      kRegisters, kStaticShared, kDynamicShared, kBlocks,      kThreads,    kWaves,           kProcessors};
  all.insert(all.end(), kDram.begin(), kDram.end());
  all.insert(all.end(), kTensor.begin(), kTensor.end());
  for (const Limit& limit : kLimits) all.emplace_back(limit.metric);
  for (const char* stall : kStalls) all.push_back(stall_metric(stall));
  return all;
}

std::vector<std::string> ncu_arguments(const std::vector<std::string>& metrics) {
  return {"--profile-from-start",
          "off",
          "--clock-control",
          "none",
          "--cache-control",
          "all",
          "--csv",
          "--page",
          "raw",
          "--print-units",
          "base",
          "--metrics",
          join(metrics, ",")};
}

std::vector<std::string> unknown_metrics(std::string_view output, const std::vector<std::string>& asked) {
  std::vector<std::string> unknown;
  for (const std::string& line : split(output, '\n')) {
    if (line.find("==ERROR==") == line.npos || line.find("metric") == line.npos) continue;
    std::set<std::string> words;  // one line may name several
    for (const std::string& word : split(replace_all(replace_all(line, ",", " "), "'", " "), ' '))
      words.insert(word);
    for (const std::string& metric : asked)
      if (words.count(metric) || words.count(metric.substr(0, metric.find('.'))) || words.count(metric + "."))
        unknown.push_back(metric);
  }
  return unknown;
}

std::string ncu_refusal(std::string_view output) {
  if (output.find("ERR_NVGPUCTRPERM") != output.npos)
    return "the driver of this machine lets only administrators read the counters (ERR_NVGPUCTRPERM; an "
           "administrator can allow it: "
           "https://developer.nvidia.com/ERR_NVGPUCTRPERM)";
  for (const std::string& line : split(output, '\n'))
    if (const auto at = line.find("==ERROR=="); at != line.npos)
      return "ncu: " + std::string(trim(std::string_view(line).substr(at + 9)));
  for (const std::string& line : split(output, '\n'))
    if (line.find("capstone-replayer:") != line.npos) return std::string(trim(line));
  return "ncu printed no table";
}

std::string ncu_table(std::string_view output) {
  std::string table;
  for (const std::string& line : split(output, '\n'))
    if (line.starts_with('"')) table += line + '\n';
  return table;
}

Result<std::vector<KernelProfile>> read_ncu(const std::string& csv, const std::string& file) {
  CAPSTONE_TRY(const auto rows, read_csv(csv, file));
  std::vector<Group> groups;
  const std::vector<std::string>* head = nullptr;
  for (const CsvRow& row : rows) {
    if (std::find(row.cells.begin(), row.cells.end(), "Kernel Name") != row.cells.end()) {
      head = &row.cells;
      continue;
    }
    if (!head || row.cells.size() != head->size()) continue;
    Launch launch;
    for (std::size_t i = 0; i < head->size(); ++i) launch.cells.emplace((*head)[i], row.cells[i]);
    const std::string name = kernel_name(launch.cells["Kernel Name"]);
    if (name.empty()) continue;  // the row of units
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const Group& known) { return known.name() == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group(name));
    group->add(std::move(launch));
  }
  if (groups.empty())
    return fail("ncu's table names no kernel", file, "run ncu with --csv --page raw", ExitCode::kEnvironment);
  std::vector<KernelProfile> kernels;
  for (const Group& group : groups) kernels.push_back(group.profile());
  return kernels;
}

}  // namespace capstone
