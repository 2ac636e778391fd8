#pragma once
// The findings of `capstone profile` about one launch. A ledger record of kind "profile".
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/model/explanation.h"

namespace capstone {

/// One kernel of a launch; all its launches together. An empty field is not known on this chip, profiler or
/// machine; it never means 0.
struct KernelProfile {
  std::string kernel;                               ///< as its author wrote it: "sgemm<16>"
  std::optional<double> launches, blocks, threads;  ///< per call; threads: per block
  std::optional<double> time_us;                    ///< [µs] with cold caches
  // [%] of the peak that the chip can sustain
  std::optional<double> compute_percent, memory_percent, dram_percent, tensor_percent;
  std::optional<double> occupancy_percent;        ///< resident warps, as a share of those that an SM can
                                                  ///< hold
  std::optional<double> occupancy_limit_percent;  ///< the limit set by registers, shared memory and block
                                                  ///< size
  std::string occupancy_limiter;  ///< "registers", "shared memory", "block size", "blocks"; empty: unknown
  std::optional<double> waves;    ///< the grid divided by what the GPU can run at once
  std::optional<double> tail_percent;  ///< of the waves' capacity that the last one leaves
                                       ///< unused; empty below one wave
  /// of 32 bytes, in global memory
  std::optional<double> sectors_per_load, sectors_per_store, sectors_per_request;
  std::optional<double> wavefronts_over_ideal;    ///< shared memory; empty: it uses none
  std::optional<double> local_requests_per_warp;  ///< to local memory: spilled registers, arrays with
                                                  ///< computed indices
  std::optional<double> lanes_per_instruction;    ///< active lanes of 32
  std::optional<double> top_stall_percent;        ///< of the cycles in which warps wait
  std::string top_stall;                          ///< "long scoreboard"
  // Reported by the compiler.
  std::optional<double> registers, static_shared_bytes, dynamic_shared_bytes, spill_bytes, stack_bytes;
  std::map<std::string, int> memory_instructions;  ///< "LDG.128" → number in the machine code
  std::map<std::string, int> tensor_instructions;  ///< "HMMA" → number in the machine code
  bool machine_code_seen = false;                  ///< false: the two maps are unknown
};

struct Profile {
  std::string candidate, version;  ///< empty for a file
  std::string source, source_sha256, problem_id;
  Json sizes;                          ///< of the profiled launch
  std::string device, driver;          ///< empty without a GPU
  std::string arch;                    ///< of the machine code: "sm_90a"; empty: none was built
  std::string ncu;                     ///< its version; empty: ncu did not measure
  std::string because;                 ///< why ncu did not measure
  std::vector<std::string> missing;    ///< other missing data, each with the reason
  bool verified = false;               ///< the outputs agree with the oracle: of the profiled
                                       ///< launch, or of the one at `checked_at`
  std::string checked_at;              ///< other sizes, if the oracle is too slow for the
                                       ///< profiled ones; empty: the profiled sizes
  std::string counted_at;              ///< sizes of the counts on the CPU; empty: there are none
  std::string csv;                     ///< what ncu printed
  std::vector<KernelProfile> kernels;  ///< in launch order; then, without `launches`, kernels
                                       ///< that were compiled but not seen launched
  double floor_ms = 0;                 ///< lower bound of the cost model; 0: unknown
  std::string bound_by, peak;          ///< from the cost model
  /// From the counts of the emulator; the number that `explain --on` gives. Absent where ncu measured
  std::optional<ModelledFloor> predicted = {};

  /// [ms] of all kernels; empty if ncu did not measure.
  std::optional<double> time_ms() const;
};

/// The capacity that a last, partly filled wave leaves unused [%]; empty below one wave, where there is no
/// tail.
std::optional<double> tail_of(double waves);

void to_json(Json&, const KernelProfile&);
void to_json(Json&, const Profile&);

}  // namespace capstone
