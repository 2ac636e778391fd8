#include "harness/analysis/profile/record.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/analysis/profile/profile.h"

namespace capstone {
namespace {

Json answers_of(const Profile& p) {
  Json texts = Json::array();
  for (const KernelProfile& kernel : p.kernels)
    for (const Answer& answer : answers(kernel, false))
      texts.push_back(fmt::format("`{}`, {}: {}", kernel.kernel, answer.question, answer.text));
  return texts;
}

Json known(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

std::optional<double> tail_of(double waves) {
  if (waves < 1) return std::nullopt;
  return 100 * (std::ceil(waves) - waves) / std::ceil(waves);
}

std::optional<double> Profile::time_ms() const {
  double sum = 0;
  bool any = false;
  for (const KernelProfile& kernel : kernels) {
    if (!kernel.launches) continue;  // compiled only
    if (!kernel.time_us) return std::nullopt;
    sum += *kernel.time_us / 1e3;
    any = true;
  }
  return any ? std::optional<double>(sum) : std::nullopt;
}

void to_json(Json& json, const KernelProfile& k) {
  json = Json{{"kernel", k.kernel},
              {"launches", known(k.launches)},
              {"blocks", known(k.blocks)},
              {"threads", known(k.threads)},
              {"time_us", known(k.time_us)},
              {"compute_percent", known(k.compute_percent)},
              {"memory_percent", known(k.memory_percent)},
              {"dram_percent", known(k.dram_percent)},
              {"tensor_percent", known(k.tensor_percent)},
              {"occupancy_percent", known(k.occupancy_percent)},
              {"occupancy_limit_percent", known(k.occupancy_limit_percent)},
              {"occupancy_limiter", k.occupancy_limiter},
              {"waves", known(k.waves)},
              {"tail_percent", known(k.tail_percent)},
              {"sectors_per_load", known(k.sectors_per_load)},
              {"sectors_per_store", known(k.sectors_per_store)},
              {"sectors_per_request", known(k.sectors_per_request)},
              {"wavefronts_over_ideal", known(k.wavefronts_over_ideal)},
              {"local_requests_per_warp", known(k.local_requests_per_warp)},
              {"lanes_per_instruction", known(k.lanes_per_instruction)},
              {"top_stall", k.top_stall},
              {"top_stall_percent", known(k.top_stall_percent)},
              {"registers", known(k.registers)},
              {"static_shared_bytes", known(k.static_shared_bytes)},
              {"dynamic_shared_bytes", known(k.dynamic_shared_bytes)},
              {"spill_bytes", known(k.spill_bytes)},
              {"stack_bytes", known(k.stack_bytes)},
              {"memory_instructions", k.machine_code_seen ? Json(k.memory_instructions) : Json(nullptr)},
              {"tensor_instructions", k.machine_code_seen ? Json(k.tensor_instructions) : Json(nullptr)}};
}

void to_json(Json& json, const Profile& p) {
  json = Json{{"candidate", p.candidate},
              {"version", p.version},
              {"source", p.source},
              {"source_sha256", p.source_sha256},
              {"problem_id", p.problem_id},
              {"sizes", p.sizes},
              {"device", p.device},
              {"driver", p.driver},
              {"arch", p.arch},
              {"ncu", p.ncu},
              {"because", p.because},
              {"verified", p.verified},
              {"missing", p.missing},
              {"checked_at", p.checked_at},
              {"counted_at", p.counted_at},
              {"kernels", p.kernels},
              {"answers", answers_of(p)},
              {"time_ms", known(p.time_ms())},
              {"floor_ms", p.floor_ms},
              {"bound_by", p.bound_by},
              {"peak", p.peak},
              {"csv", p.csv}};
  if (p.predicted) json["predicted"] = *p.predicted;
}

}  // namespace capstone
