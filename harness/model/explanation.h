#pragma once
// What `capstone explain` found: counts of one run on the emulator's instrumented build, by source line, and what they mean. The same
// source at the same size gives the same explanation on every machine. A record of kind "explanation".
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace capstone {

/// Warp-wide accesses to one kind of memory. `units` are 32-byte sectors (global) or wavefronts (shared).
struct Traffic {
  std::uint64_t requests = 0;     ///< instructions of a warp
  std::uint64_t units = 0;        ///< what the hardware moves
  std::uint64_t ideal = 0;        ///< what it would move if lanes lay side by side
  std::uint64_t bytes = 0;        ///< that the lanes asked for
  std::uint64_t active_lanes = 0; ///< sum over the requests
  double units_per_request() const { return requests ? double(units) / double(requests) : 0; }
  double ideal_per_request() const { return requests ? double(ideal) / double(requests) : 0; }
  double lanes_per_request() const { return requests ? double(active_lanes) / double(requests) : 0; }
  /// How many times more than ideal; 1 when there is no traffic.
  double excess() const { return ideal ? double(units) / double(ideal) : 1; }
  void add(const Traffic& other);
};

/// One source line of a kernel, or the sum of several.
struct LineCounts {
  std::string file;               ///< as the compiler names it, relative to the kernel's folder
  int line = 0;
  std::string text;               ///< the source line, trimmed
  Traffic global, shared;
  std::uint64_t loads = 0, stores = 0;   ///< requests to global memory
  std::uint64_t flops = 0, barriers = 0, atomics = 0;
  double share = 0;               ///< of the modelled cost of all lines, 0 … 1
  /// [FLOP/B] of what the lanes asked for, in both kinds of memory
  double intensity() const { return global.bytes + shared.bytes ? double(flops) / double(global.bytes + shared.bytes) : 0; }
  double moved_bytes() const { return double(global.units) * 32; }   ///< sectors that the warps touched
  void add(const LineCounts& other);
};

struct KernelCounts {
  std::string kernel;             ///< as the launch calls it, "sgemm<kTile>"; its function where that is a variable
  std::uint64_t launches = 0, blocks = 0, threads = 0;
  std::uint64_t dynamic_shared = 0;   ///< [B] a block, the most of its launches
  std::vector<LineCounts> lines;  ///< by file and line
  std::string function;           ///< with its template arguments, "sgemm<16>"; empty: unknown
  LineCounts total() const;       ///< file, line and text empty
};

/// A line that costs much, in words.
struct Advice {
  std::string kernel, file;
  int line = 0;
  double share = 0;
  std::string pattern;            ///< "uncoalesced", "bank conflict", "divergence", "redundant loads", "atomics", "arithmetic", "traffic"
  std::string what, remedy;
};

/// No kernel with these counts can be faster on the device. Modelled, not measured.
struct ModelledFloor {
  std::string device, source;     ///< and where its numbers come from
  double memory_ms = 0;           ///< compulsory bytes at full bandwidth
  double wavefront_ms = 0;        ///< shared wavefronts and L1 passes, one a clock and SM
  double compute_ms = 0;          ///< FLOPs at the peak of the problem's precision class
  std::string bound_by;           ///< the largest: "memory", "shared memory and L1", "compute"
  double ms() const;
};

struct Explanation {
  std::string candidate;         ///< "human", "llm", or empty for a file
  std::string version;            ///< as measured; empty when it never was
  std::string source, source_sha256;
  std::string problem_id;
  Json sizes;
  std::vector<KernelCounts> kernels;
  LineCounts total;               ///< file, line and text empty
  double compulsory_bytes = 0, compulsory_flops = 0;   ///< the problem's cost model at these sizes
  std::vector<Advice> advice;    ///< at most three, the dearest line first
  std::optional<ModelledFloor> floor;

  double moved_bytes() const { return total.moved_bytes(); }
  /// [FLOP/B] of what the lanes asked global memory for
  double intensity() const { return total.global.bytes ? double(total.flops) / double(total.global.bytes) : 0; }
};

/// Whether the file of a line lies in the kernel's folder and may be shown: its name was said by a process that ran a submission.
bool lies_in_folder(const std::string& file);

void to_json(Json&, const Explanation&);
void from_json(const Json&, Explanation&);

}  // namespace capstone
