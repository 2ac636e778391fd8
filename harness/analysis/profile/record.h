#pragma once
// What `capstone profile` found out about one launch. A record of kind "profile".
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace capstone {

/// One kernel of a launch, all its launches together. Empty: this chip, profiler or machine does not say; that is never 0.
struct KernelProfile {
  std::string kernel;                              ///< as its author wrote it: "sgemm<16>"
  std::optional<double> launches, blocks, threads; ///< of one call; threads: of a block
  std::optional<double> time_us;                   ///< cold caches
  // [%] of the peak that the chip sustains
  std::optional<double> compute_percent, memory_percent, dram_percent, tensor_percent;
  std::optional<double> occupancy_percent;         ///< warps that were resident, of those that an SM holds
  std::optional<double> occupancy_limit_percent;   ///< what registers, shared memory and block size allow
  std::string occupancy_limiter;                   ///< "registers", "shared memory", "block size", "blocks"; empty: unknown
  std::optional<double> waves;                     ///< grid over what the GPU holds at once
  std::optional<double> tail_percent;              ///< of the waves' room that the last one leaves empty; empty below one wave
  std::optional<double> sectors_per_load, sectors_per_store, sectors_per_request;  ///< of 32 bytes, global memory
  std::optional<double> wavefronts_over_ideal;     ///< shared memory; empty: it uses none
  std::optional<double> local_requests_per_warp;   ///< to local memory: spilt registers, arrays with computed indices
  std::optional<double> lanes_per_instruction;     ///< active of 32
  std::optional<double> top_stall_percent;         ///< of the cycles that warps wait
  std::string top_stall;                           ///< "long scoreboard"
  // From the compiler.
  std::optional<double> registers, static_shared_bytes, dynamic_shared_bytes, spill_bytes, stack_bytes;
  std::map<std::string, int> memory_instructions;  ///< "LDG.128" → how many in the machine code
  std::map<std::string, int> tensor_instructions;  ///< "HMMA" → how many
  bool machine_code_seen = false;                  ///< else the two maps say nothing
};

struct Profile {
  std::string candidate, version;                 ///< empty for a file
  std::string source, source_sha256, problem_id;
  Json sizes;                                      ///< of the profiled launch
  std::string device, driver;                      ///< empty without a GPU
  std::string arch;                                ///< of the machine code: "sm_90a"; empty: none was built
  std::string ncu;                                 ///< its version; empty: ncu has not measured
  std::string because;                             ///< why ncu has not measured
  std::vector<std::string> missing;                ///< what else is not known, each with the reason
  bool verified = false;                           ///< outputs agree with the oracle: those of the profiled launch, else of the one at `checked_at`
  std::string checked_at;                          ///< other sizes, where the oracle is too slow for the profiled ones; empty: those
  std::string counted_at;                          ///< sizes of the counts on the CPU; empty: none were made
  std::string csv;                                 ///< what ncu printed
  std::vector<KernelProfile> kernels;              ///< in launch order; then, without `launches`, what was compiled and not seen launched
  double floor_ms = 0;                             ///< what the cost model allows at least; 0: unknown
  std::string bound_by, peak;                      ///< by the cost model

  /// [ms] of all kernels; empty where ncu has not measured.
  std::optional<double> time_ms() const;
};

/// The room that a last, partly filled wave leaves empty [%]; empty below one wave, where there is no tail.
std::optional<double> tail_of(double waves);

void to_json(Json&, const KernelProfile&);
void to_json(Json&, const Profile&);

}  // namespace capstone
