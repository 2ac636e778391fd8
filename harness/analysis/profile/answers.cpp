#include <fmt/format.h>

#include <cmath>
#include <map>

#include "harness/analysis/profile/profile.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr double kBusy = 60;  // [%] of its peak: at or above it, a unit is what the kernel waits
                              // for
constexpr const char* kNothing = "n/a";

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", *value) : kNothing;
}

// The meaning of those stalls that a programmer can reduce.
std::string meaning_of(const std::string& stall) {
  static const std::map<std::string, std::string> meanings{
      {"long scoreboard", "waiting for global or local memory"},
      {"short scoreboard", "waiting for shared memory or special functions"},
      {"lg throttle", "too many requests to global or local memory at once"},
      {"mio throttle", "too many requests to shared memory or special functions at once"},
      {"math pipe throttle", "the arithmetic pipe is full"},
      {"barrier", "waiting for other warps at a barrier"},
      {"wait", "the fixed latency between dependent instructions"},
      {"not selected", "ready, but another warp was chosen: there are enough warps"},
      {"membar", "waiting for a memory fence"},
      {"drain", "waiting for stores before it ends"},
      {"gmma", "waiting for a tensor-core product"},
      {"no instruction", "waiting for instructions to be fetched"}};
  const auto found = meanings.find(stall);
  return found == meanings.end() ? std::string() : ": " + found->second;
}

Answer peaks(const KernelProfile& k) {
  return {"percent of peak",
          !k.compute_percent && !k.memory_percent
              ? kNothing
              : fmt::format("compute {}, memory {} (device memory {})", percent(k.compute_percent),
                            percent(k.memory_percent), percent(k.dram_percent))};
}

Answer bound(const KernelProfile& k) {
  if (!k.compute_percent || !k.memory_percent) return {"what bounds it", kNothing};
  if (*k.memory_percent >= kBusy && *k.memory_percent >= *k.compute_percent)
    return {"what bounds it", fmt::format("memory: its busiest unit runs at {:.0f} % of its peak; fewer or "
                                          "wider accesses help, more threads do not",
                                          *k.memory_percent)};
  if (*k.compute_percent >= kBusy)
    return {"what bounds it",
            fmt::format(
                "compute: an arithmetic or issue unit runs at {:.0f} % of its peak; fewer instructions help",
                *k.compute_percent)};
  return {"what bounds it",
          fmt::format("latency: neither compute ({:.0f} %) nor memory ({:.0f} %) is busy; more warps, or "
                      "more independent work in each, help",
                      *k.compute_percent, *k.memory_percent),
          true};
}

Answer occupancy(const KernelProfile& k) {
  if (!k.occupancy_limit_percent) return {"occupancy", kNothing};
  std::string text =
      k.occupancy_percent
          ? fmt::format("{:.1f} % of the warps that an SM can hold; {:.1f} % would be possible",
                        *k.occupancy_percent, *k.occupancy_limit_percent)
          : fmt::format("at most {:.1f} % of the warps that an SM can hold", *k.occupancy_limit_percent);
  if (!k.occupancy_limiter.empty() && *k.occupancy_limit_percent < 99.5) {
    text += ", limited by " + k.occupancy_limiter;
    if (k.occupancy_limiter == "registers" && k.registers)
      text += fmt::format(" ({:.0f} per thread)", *k.registers);
    if (k.occupancy_limiter == "shared memory")
      text += fmt::format(" ({} per block)", format_bytes(k.static_shared_bytes.value_or(0) +
                                                          k.dynamic_shared_bytes.value_or(0)));
    if (k.occupancy_limiter == "block size" && k.threads)
      text += fmt::format(" ({:.0f} threads)", *k.threads);
  }
  return {"occupancy", text, *k.occupancy_limit_percent < 30};
}

Answer grid(const KernelProfile& k) {
  if (!k.blocks || !k.threads) return {"grid", kNothing};
  std::string text = fmt::format("{:.0f} blocks of {:.0f} threads", *k.blocks, *k.threads);
  if (k.launches && *k.launches > 1) text += fmt::format(" in {:.0f} launches", *k.launches);
  if (k.waves)
    text += *k.waves < 1 ? fmt::format(": {:.2f} of what the GPU can run at once", *k.waves)
                         : fmt::format(": {:.2f} waves", *k.waves);
  if (k.tail_percent && *k.tail_percent > 10)
    text += fmt::format(", the last one mostly empty: {:.0f} % of the capacity is wasted", *k.tail_percent);
  return {"grid", text,
          k.tail_percent.value_or(0) > 20 || k.waves.value_or(1) < 0.5 || k.launches.value_or(1) > 8};
}

Answer sectors(const KernelProfile& k) {
  if (!k.sectors_per_request) return {"global memory", kNothing};
  std::string text = fmt::format("{:.1f} sectors of 32 bytes per request", *k.sectors_per_request);
  if (k.sectors_per_load && k.sectors_per_store)
    text += fmt::format(" (loads {:.1f}, stores {:.1f})", *k.sectors_per_load, *k.sectors_per_store);
  text += *k.sectors_per_request > 17 ? "; neighbouring lanes should read neighbouring addresses: 4 for "
                                        "words of 4 bytes, 16 for words of 16"
                                      : "; 4 is ideal for words of 4 bytes, 16 for words of 16";
  return {"global memory", text, *k.sectors_per_request > 17};
}

Answer shared(const KernelProfile& k) {
  if (!k.wavefronts_over_ideal)
    return {"shared memory", k.static_shared_bytes && k.dynamic_shared_bytes &&
                                     *k.static_shared_bytes + *k.dynamic_shared_bytes == 0
                                 ? "none is used"
                                 : kNothing};
  const bool conflicts = *k.wavefronts_over_ideal > 1.25;
  return {"shared memory",
          fmt::format("{:.2f} times the ideal wavefronts: {}", *k.wavefronts_over_ideal,
                      conflicts ? "bank conflicts" : "no significant bank conflicts"),
          conflicts};
}

Answer tensor(const KernelProfile& k) {
  if (k.tensor_percent)
    return {"tensor pipe",
            *k.tensor_percent > 0 ? "busy " + percent(k.tensor_percent) + " of the time" : "not used"};
  if (!k.machine_code_seen) return {"tensor pipe", kNothing};
  std::vector<std::string> names;
  for (const auto& [name, count] : k.tensor_instructions) names.push_back(fmt::format("{} {}", count, name));
  return {"tensor pipe", names.empty() ? "no tensor-core instruction in the machine code"
                                       : "in the machine code: " + join(names, ", ") +
                                             " (only a GPU can tell how busy it is)"};
}

Answer spills(const KernelProfile& k) {
  std::vector<std::string> parts;
  if (k.spill_bytes)
    parts.push_back(*k.spill_bytes > 0
                        ? fmt::format("the compiler spilled {:.0f} bytes per thread", *k.spill_bytes)
                        : "the compiler spilled no registers");
  if (k.stack_bytes && *k.stack_bytes > 0)
    parts.push_back(fmt::format("{:.0f} bytes of stack per thread", *k.stack_bytes));
  if (k.local_requests_per_warp)
    parts.push_back(fmt::format("{:.1f} requests per warp to local memory", *k.local_requests_per_warp));
  if (k.registers) parts.push_back(fmt::format("{:.0f} registers a thread", *k.registers));
  return {"registers, spills", parts.empty() ? kNothing : join(parts, ", "),
          k.spill_bytes.value_or(0) > 0 || k.local_requests_per_warp.value_or(0) > 1};
}

Answer divergence(const KernelProfile& k) {
  if (!k.lanes_per_instruction) return {"divergence", kNothing};
  const bool diverges = *k.lanes_per_instruction < 24;
  return {"divergence",
          fmt::format("{:.1f} of 32 lanes are active in {}", *k.lanes_per_instruction,
                      k.time_us ? "an instruction" : "a memory access (branches without one are not seen)"),
          diverges};
}

Answer stall(const KernelProfile& k) {
  if (!k.top_stall_percent) return {"top stall", kNothing};
  return {"top stall", fmt::format("{}, {:.0f} % of the waiting time{}", k.top_stall, *k.top_stall_percent,
                                   meaning_of(k.top_stall))};
}

Answer accesses(const KernelProfile& k) {
  if (!k.machine_code_seen) return {"machine code", kNothing};
  std::vector<std::string> parts;
  for (const auto& [name, count] : k.memory_instructions) parts.push_back(fmt::format("{} {}", count, name));
  return {"machine code",
          parts.empty() ? "no memory instruction" : join(parts, ", ") + " (instruction.bits)"};
}

}  // namespace

std::vector<Answer> answers(const KernelProfile& k, bool all) {
  std::vector<Answer> list{peaks(k),  bound(k),  occupancy(k),  grid(k),  sectors(k), shared(k),
                           tensor(k), spills(k), divergence(k), stall(k), accesses(k)};
  if (!all) std::erase_if(list, [](const Answer& answer) { return answer.text == kNothing; });
  return list;
}

}  // namespace capstone
