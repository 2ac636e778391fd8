#pragma once
// The state that the hooks keep for the blocks that run: one Block an OS thread, one Lane a CUDA thread.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hooks/knowledge.h"
#include "hooks/memory_map.h"
#include "hooks/sites.h"
#include "runtime/scheduler.h"
#include "runtime/stream_order.h"

namespace capstone_emu::hooks {

inline constexpr unsigned kTraceCapacity = 2048;  // accesses of one thread that wait to be grouped
inline constexpr unsigned kWarpGroupSize = 128;
// in a trace: the address is an offset in shared memory
inline constexpr std::uint64_t kSharedBit = 1ull << 63;

struct PendingCopy {
  const void* to;
  unsigned bytes;
};
/// A piece of a bulk store: what it reads and writes.
struct PendingStore {
  const void *to, *from;
  unsigned bytes;
};

/// Accumulators that a wgmma writes, and the number of its group; or registers of a tcgen05.ld.
struct PendingResult {
  std::uintptr_t begin, end;
  unsigned group;
  std::uint32_t pc;
  bool loaded = false;  ///< by tcgen05.ld
};

/// A word of tensor memory that a tcgen05.ld or .st moves.
struct TensorWord {
  const void* word;
  bool write;
};
/// What a tcgen05.mma, .cp or .shift touches that is not known to be done.
struct EnginePiece {
  const void* begin;
  unsigned bytes;
  bool writes;
  unsigned commit = 0;  ///< the first one of the thread that covers it; 0: none yet
};

/// What the wgmma of a warp group read of shared memory, and when that was over.
struct MultiplierReads {
  struct Piece {
    const void* from;
    unsigned group;
  };
  std::vector<Piece> pending;
  std::vector<Time> finished;  ///< by group, from 0 on, as far as a thread waited: when
};

/// One CUDA thread. What each access needs comes first.
struct alignas(64) Lane {
  Time time = 0;             ///< of its accesses; advances when others may have learnt of it
  std::uint32_t linear = 0;  ///< in its block
  std::uint32_t traced = 0;
  SiteId* trace_sites = nullptr;  ///< [kTraceCapacity]
  std::uint64_t* trace_addresses = nullptr;
  std::unique_ptr<Knowledge> learnt;  ///< through flags; null: nothing
  /// what it knew at its last fence: published by its next atomic write
  std::shared_ptr<const Knowledge> fenced;
  bool uses_engines = false;         ///< something of what stands last here was used in this block
  Time last_fence = 0;               ///< or operation that is ordered like one
  std::shared_ptr<Time> next_fence;  ///< will hold the time of its next fence; null: nothing waits for that
  std::uintptr_t loaded = 0;         ///< where it last loaded an atomic or volatile value; 0: it stored since
  unsigned interruptions = 0;        ///< between such a load and the store
  /// of each lane of its warp: what was stamped before that happened before
  Time known[kWarpSize];

  // Of copy engines, wgmma and tcgen05: reset only where `uses_engines` is set.
  std::vector<PendingCopy> open;
  std::vector<std::vector<PendingCopy>> committed;
  std::vector<PendingStore> open_stores;
  std::vector<std::vector<PendingStore>> committed_stores;
  std::vector<PendingResult> results;
  unsigned result_groups = 0;  ///< groups of wgmma that were committed
  bool multiplies = false;     ///< inside a wgmma, which may touch its accumulators
  std::vector<TensorWord> tensor_moves;
  std::vector<EnginePiece> engine;
  unsigned commits = 0, commits_done = 0;  ///< of tcgen05; done: the barrier's phase is over

  unsigned warp() const { return linear / kWarpSize; }
  unsigned lane() const { return linear % kWarpSize; }
};

/// A thread that arrived at a barrier of its block, and when.
struct Arrival {
  unsigned thread;
  Time time;  ///< what it stamped before happened before whatever follows the barrier
  bool waits;
};

/// Two threads wrote one place; it is a race if the second changed the value. Known when the store has been
/// done.
struct Doubt {
  std::uintptr_t address;
  unsigned bytes;
  std::uint32_t before;
  Stamp first, second;
};

struct Block {
  Block();
  const BlockRunner* runner = nullptr;
  std::uint64_t index = 0;  ///< in the grid
  /// what was stamped before `barrier` by threads of this block happened before
  Time begin = 0, barrier = 0;
  Time last_turn = 0;  ///< when it last got the turn: later stamps are all its own
  std::uintptr_t shared = 0;
  std::size_t shared_bytes = 0, statics = 0;  ///< statics: offset of the `__shared__` variables
  const void* cluster = nullptr;              ///< blocks with the same one reach each other's shared memory
  std::unique_ptr<Shadow> shadow;             ///< of shared memory
  std::uintptr_t cells = 0, byte_cells = 0;   ///< as Spotter::cells
  std::size_t quick_bytes = 0;  ///< for the quick path; 0 in a cluster: others know nothing of its barriers
  /// offset, bytes: the shared memory that may be touched
  std::vector<std::pair<std::size_t, std::size_t>> variables;
  std::vector<Lane> lanes;                  ///< [kMaxThreads]
  Time warp[kMaxThreads / kWarpSize] = {};  ///< as `barrier`, among the lanes of one warp
  unsigned count = 0;                       ///< threads
  std::unique_ptr<Knowledge> learnt;        ///< by all its threads at the last barrier
  /// what its threads knew at their fences before the last barrier
  std::shared_ptr<const Knowledge> fenced;
  std::vector<Doubt> doubts;
  std::vector<Arrival> arrivals[kNamedBarriers];
  std::string split;  ///< describes the first barrier that only some of its threads reached; empty: none
  MultiplierReads multipliers[kMaxThreads / kWarpGroupSize];
};

inline constexpr const char* kDynamicShared = "dynamic shared memory";
/// The shared variable at an offset: its slot's label, "tile in kernel.cu:12", or kDynamicShared; null: none.
const char* shared_label(const Block& block, std::size_t offset);
/// "tile in kernel.cu:12" → "tile"
std::string short_name(const std::string& label);

/// Blocks that run now.
std::vector<Block*>& live_blocks();
/// The block whose shared memory holds the address: `block`, or another one of its cluster; null: none.
inline Block* home_of(Block& block, std::uintptr_t address) {
  if (address - block.shared < block.shared_bytes) return &block;
  if (!block.cluster) return nullptr;
  for (Block* other : live_blocks())
    if (other->cluster == block.cluster && address - other->shared < other->shared_bytes) return other;
  return nullptr;
}

extern thread_local __constinit Block* this_block CAPSTONE_TLS;  // null outside of kernels
extern thread_local __constinit Lane* this_lane CAPSTONE_TLS;    // null while no thread of a kernel runs

/// A launch before the running one that a GPU may run at the same time.
struct ConcurrentLaunch {
  StreamWork work;
  Time begin, end;   ///< of its stamps
  std::string text;  ///< "kernel add, launched at program.cu:12 in another stream"
};

/// The launch in progress.
struct Launch {
  const LaunchConfig* config = nullptr;
  std::uintptr_t arguments = 0;  ///< kernels copy their parameters from there
  Time begin = 0;
  Time first = 0;  ///< as `begin`, which a barrier of the grid moves
  Time floor = 0;  ///< what was stamped before it happened before: of the first of `concurrent`, else `begin`
  std::vector<ConcurrentLaunch> concurrent;
  /// The concurrent launch that stamped it, or null.
  const ConcurrentLaunch* concurrent_at(Time time) const;
  bool holds_argument(std::uintptr_t address) const { return address - arguments < config->argument_bytes; }
  std::vector<std::pair<Time, std::uint64_t>> turns;  ///< from this time on, stamps are of this block
  std::uint64_t block_at(Time time) const;
};
extern Launch running_launch;
extern Time now;

// ---- order.cpp: what happens before what ------------------------------------------------------------------
/// Whether what `stamp` says happened before the running thread's next access. `home`: of its shared memory;
/// null: of global memory.
bool happened_before(const Stamp& stamp, const Block* home, const Block& block, const Lane& lane);
/// The block that stamped it.
std::uint64_t owner_of(const Stamp& stamp, const Block* home, const Block& block);
void learn(Lane& lane, const Knowledge& knowledge);
void fence(Block& block, Lane& lane);
/// An atomic or volatile access: carries fenced knowledge from writers to readers of the same address.
void pass_flag(Block& block, Lane& lane, std::uintptr_t address, bool reads, bool writes);
/// As fence and atomic write, and as atomic read, on any address.
void release_through(Block& block, Lane& lane, std::uintptr_t object);
void acquire_through(Block& block, Lane& lane, std::uintptr_t object);
/// What the engine of a thread of this block did before `before` is known to each thread that acquires
/// through `object`.
void publish_engine(Block& block, std::uintptr_t object, unsigned thread, Time before);
void forget_flags();
void forget_clusters();

// ---- early_reads.cpp: values from before a write that nothing orders
// ----------------------------------------
/// Memory shows an older value to the load that follows; whatever comes next ends that.
struct EarlyValue {
  std::uintptr_t address = 0;
  unsigned bytes = 0;  ///< 0: no place does
  unsigned char now[16];
};
extern EarlyValue early_value;
void end_early_value();
inline void memory_is_current() {
  if (__builtin_expect(early_value.bytes != 0, 0)) end_early_value();
}
/// An atomic or volatile load. `ordered`: when the thread made its last fence before it.
void relaxed_read(Block& block, Lane& lane, std::uintptr_t address, unsigned bytes, Time ordered,
                  std::uint32_t pc);
/// An atomic or volatile write, before it is done. `fences`: it is ordered like a fence.
void relaxed_write(Lane& lane, std::uintptr_t address, unsigned bytes, const Stamp& me, bool fences);
/// An atomic or volatile store follows: others may run before it.
void before_store(Lane& lane, std::uintptr_t address);
void forget_relaxed_writes();

// ---- trace.cpp: grouping the accesses of single threads into warp-wide ones -------------------------------
void trace_is_full(Block& block, Lane& lane);
inline void keep_trace(Lane& lane, SiteId site, std::uint64_t address) {
  lane.trace_sites[lane.traced] = site;
  lane.trace_addresses[lane.traced] = address;
}
inline void trace(Block& block, Lane& lane, SiteId site, std::uint64_t address) {
  if (counting()) keep_trace(lane, site, address);
  if (__builtin_expect(++lane.traced == kTraceCapacity, 0)) trace_is_full(block, lane);
}
/// The lanes of a warp are together: everything traced so far is counted.
void count_warp(Block& block, unsigned warp);

// ---- shadow.cpp: races and uninitialised reads ------------------------------------------------------------
void settle_doubts(Block& block);
/// What kSettle asks for.
void settle();

}  // namespace capstone_emu::hooks
