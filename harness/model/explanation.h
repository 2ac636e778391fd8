#pragma once
// The result of `capstone explain`: counts of one run of the emulator's instrumented build, by source line,
// and what they mean. The same source at the same size gives the same explanation on every machine. A ledger
// record of kind "explanation".
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace capstone {

/// Warp-wide accesses to one kind of memory. `units` are 32-byte sectors (global) or wavefronts (shared).
struct Traffic {
  std::uint64_t requests = 0;      ///< instructions, counted per warp
  std::uint64_t units = 0;         ///< what the hardware moves
  std::uint64_t ideal = 0;         ///< what it would move if the lanes' addresses were adjacent
  std::uint64_t bytes = 0;         ///< requested by the lanes
  std::uint64_t active_lanes = 0;  ///< sum over the requests of lanes
  std::uint64_t bulk = 0;          ///< of `requests`: lines of 128 bytes of bulk copies, which have no lanes
  double units_per_request() const { return requests ? double(units) / double(requests) : 0; }
  double ideal_per_request() const { return requests ? double(ideal) / double(requests) : 0; }
  std::uint64_t requests_of_lanes() const { return requests - bulk; }
  /// 0 without requests of lanes.
  double lanes_per_request() const {
    return requests_of_lanes() ? double(active_lanes) / double(requests_of_lanes()) : 0;
  }
  /// The excess over the ideal as a factor; 1 if there is no traffic.
  double excess() const { return ideal ? double(units) / double(ideal) : 1; }
  void add(const Traffic& other);
};

/// What moves through the tensor memory of Blackwell's blocks [B], and the products of tcgen05.mma.
struct TensorMemoryTraffic {
  std::uint64_t loaded = 0, stored = 0;               ///< by warps: tcgen05.ld, tcgen05.st
  std::uint64_t engine_read = 0, engine_written = 0;  ///< by tcgen05.mma, .cp and .shift
  std::map<std::string, std::uint64_t> flops = {};    ///< by .kind: "f16", "mxf4nvf4"
  bool any() const { return loaded || stored || engine_read || engine_written; }
  void add(const TensorMemoryTraffic& other);
};

/// What one line reads or writes of one array: loads, stores and atomic operations apart.
struct ArrayTraffic {
  std::string name;        ///< as the launch passes it, of the tensor, or of the shared variable
  bool shared = false;     ///< then `traffic` counts wavefronts, else sectors
  std::string access;      ///< "load", "store", "atomic"
  std::uint64_t size = 0;  ///< [B] of the whole array; 0: unknown
  Traffic traffic;
};

/// The counts of one source line of a kernel, or the sum of several lines.
struct LineCounts {
  std::string file;  ///< as the compiler names it, relative to the kernel's folder
  int line = 0;
  std::string text;  ///< the source line, trimmed
  Traffic global, shared;
  std::uint64_t loads = 0, stores = 0;  ///< requests to global memory
  std::uint64_t store_sectors = 0;      ///< of the sectors in `global.units`
  std::uint64_t flops = 0, barriers = 0, atomics = 0;
  TensorMemoryTraffic tensor = {};
  double share = 0;                       ///< of the modelled cost of all lines, 0 … 1
  std::vector<ArrayTraffic> arrays = {};  ///< of a line, not of a sum; empty in older records
  /// [FLOP/B], per byte that the lanes requested in both kinds of memory
  double intensity() const {
    return global.bytes + shared.bytes ? double(flops) / double(global.bytes + shared.bytes) : 0;
  }
  Traffic both() const;  ///< to global and shared memory; its units are of two kinds
  double moved_bytes() const { return double(global.units) * 32; }  ///< sectors that the warps touched
  void add(const LineCounts& other);
};

struct KernelCounts {
  std::string kernel;  ///< as in the launch, "sgemm<kTile>"; the function's name if the launch
                       ///< uses a variable
  std::uint64_t launches = 0, blocks = 0, threads = 0;
  std::uint64_t dynamic_shared = 0;    ///< [B] per block, the maximum over its launches
  std::vector<LineCounts> lines = {};  ///< by file and line
  std::string function = {};           ///< with its template arguments, "sgemm<16>"; empty: unknown
  LineCounts total() const;            ///< file, line and text empty
};

/// A line with a high cost, described in words.
struct Advice {
  std::string kernel, file;
  int line = 0;
  double share = 0;
  std::string pattern;  ///< "uncoalesced", "misaligned", "bank conflict", "divergence", "redundant loads",
                        ///< "atomics", "arithmetic", "traffic"
  std::string what, remedy;
};

/// No kernel with these counts can be faster than this on the device. Modelled, not measured.
struct ModelledFloor {
  std::string device, source;  ///< the device, and the source of its numbers
  double memory_ms = 0;        ///< compulsory bytes at full bandwidth
  double wavefront_ms = 0;     ///< shared-memory wavefronts and L1 passes, one per clock and SM
  double compute_ms = 0;       ///< FLOPs at the peak of the problem's precision class
  std::string bound_by;        ///< the largest of the three: "memory", "shared memory and L1", "compute"
  Json sizes = {};             ///< for which it holds; null in older records: those of the counts
  double scale = 1;            ///< the counts of the observed run were multiplied by this
  double ms() const;
  /// "NVIDIA H100 80GB HBM3 at rows=16384, cols=4096"
  std::string place() const;
  double work_ms = 0;    ///< the problem's own FLOPs at that peak
  bool by_rule = false;  ///< the counts grew by a rule learnt from larger runs, not by `scale`
};

struct Explanation {
  std::string candidate;  ///< "human", "llm", "together", or empty for a file
  std::string version;    ///< as measured; empty if it was never measured
  std::string source, source_sha256;
  std::string problem_id;  ///< empty: a whole program
  Json sizes;
  std::vector<KernelCounts> kernels;
  LineCounts total;  ///< file, line and text empty
  /// The problem's cost model at these sizes. Of a program: the bytes that the arrays of each launch hold.
  double compulsory_bytes = 0, compulsory_flops = 0;
  std::vector<Advice> advice;  ///< at most three, the most expensive line first
  Json shares_at = {};         ///< the sizes of shares and advice; null: those of the counts
  /// [B] what moved_bytes() would be at the problem's measured size, by a rule learnt from larger runs; 0:
  /// unknown
  double moved_at_measured = 0;
  std::optional<ModelledFloor> floor;
  /// Why counts per request may differ at the measured size; empty: they do not, or an older record.
  std::string caution;
  /// L1 passes and FLOPs at the measured size, by the same rule; passes 0: unknown. Not in the record.
  double passes_at_measured = 0, flops_at_measured = 0;

  bool is_program() const { return problem_id.empty(); }
  /// What compulsory_bytes are: "the problem has to move".
  const char* what_is_compulsory() const {
    return is_program() ? "the arrays of its launches hold" : "the problem has to move";
  }
  double moved_bytes() const { return total.moved_bytes(); }
  /// "rows=16384, cols=4096": where the shares and the advice hold
  std::string place_of_shares() const;
  /// [FLOP/B], per byte that the lanes requested from global memory
  double intensity() const {
    return total.global.bytes ? double(total.flops) / double(total.global.bytes) : 0;
  }
};

/// Whether a line's file is in the kernel's folder and may be shown. The name comes from a process that ran a
/// submission, so it is not trusted.
bool lies_in_folder(const std::string& file);

void to_json(Json&, const TensorMemoryTraffic&);
void from_json(const Json&, TensorMemoryTraffic&);
void to_json(Json&, const ModelledFloor&);
void to_json(Json&, const Explanation&);
void from_json(const Json&, Explanation&);

}  // namespace capstone
