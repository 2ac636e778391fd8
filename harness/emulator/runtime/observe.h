#pragma once
// What the runtime tells the hooks (hooks/) while kernels run. In the other build variants these functions
// are empty.
#include <cstddef>
#include <cstdint>

#include "include/capstone_emulator/core.h"

namespace capstone_emu {

class BlockRunner;
struct Grid;

namespace observe {

/// Some of a block's threads waited at one __syncthreads(), the others at another.
struct SplitBarrier {
  const char* file;
  int line;
  unsigned threads, of;  ///< how many waited there, of those that waited
  int other_line;
};

/// Where a block's shared memory lies.
struct SharedArena {
  const char* begin;
  std::size_t bytes;
  const char* statics;  ///< `__shared__` variables: offsets of slots count from here
};

#if CAPSTONE_EMULATOR_HOOKS
inline constexpr bool kOn = true;

void launch_begins(const Grid& grid);
void launch_ends();

// One block runs at a time, so that counts repeat and shadows need no locks: a runner works while it has the
// turn.
void take_turn();
void give_turn();
/// Lets the runner that has waited longest go on first.
void pass_turn();
/// Waits until all requested runners are in the queue, so that turns do not depend on how fast they start.
void await_newcomers(unsigned count);

/// `index`: of the block in its grid; `cluster`: the one that it belongs to, or null.
void block_begins(const BlockRunner& runner, std::uint64_t index, SharedArena shared, const void* cluster);
/// `complete`: all its threads ended; else the kernel was left.
void block_ends(bool complete);
/// The block leaves its OS thread to others for a while; it has it again.
void* block_stands_aside();
void block_goes_on(void* block);
void shared_begins(const char* begin, std::size_t bytes);
/// The block's thread whose code runs from now on.
void thread_runs(unsigned linear);
/// Every thread of a warp has ended.
void warp_ends(unsigned warp);

void barrier_arrives(const void* pc);
void barrier_releases();
void barrier_splits(const SplitBarrier& split);
/// The lanes `members` of a warp met; `whole`: no running thread of the warp is missing.
void warp_meets(unsigned warp, unsigned members, bool whole);
/// All threads of the grid are at its barrier.
void grid_meets();
/// The running thread arrives at a barrier of some of the block's threads, and waits or continues; enough
/// have arrived.
void arrives_at(unsigned named_barrier, bool waits);
void threads_meet(unsigned named_barrier);
/// The same for all threads of a cluster, which wait in a separate step.
void arrives_at_cluster(const void* cluster);
void cluster_meets(const void* cluster);
void leaves_cluster_barrier(const void* cluster);
/// The running thread synchronises with others through the object at `object` (a barrier in memory).
void releases(const void* object);
void acquires(const void* object);

void copy_issued(const void* to, const void* from, unsigned bytes, unsigned zero_filled, const void* pc);
void copies_committed();
void copies_awaited(unsigned still_pending);
/// The thread's copies so far are done when the phase of the barrier is over.
void copies_report_to(const void* barrier);

// Bulk copies (TMA), piece by piece. A load may be read when the barrier's phase is over and a thread has
// seen that; the source of a store may be overwritten when a thread has waited for its group.
void bulk_load(const void* to, const void* from, unsigned bytes, const void* barrier, const void* pc);
void bulk_store(const void* to, const void* from, unsigned bytes, bool reduces, const void* pc);
void bulk_committed();
void bulk_awaited(unsigned still_pending);
/// A phase of the barrier is over.
void copies_complete_on(const void* barrier);
/// An mbarrier is initialised or invalidated; is used.
void barrier_begins(const void* barrier, const void* pc);
void barrier_used(const void* barrier, const void* pc);

/// wgmma: the running thread commits a group; it knows that all four warps have done all groups but the last
/// ones.
void multiplies_committed();
void multiplies_awaited(unsigned still_pending);

/// tcgen05: a block has tensor memory; a lane loads or stores a word of it, and has waited for all of its
/// loads or stores.
void tensor_memory_begins(const void* begin, std::size_t bytes);
void tensor_memory_ends(const void* begin);
void tensor_moved(const void* word, bool write, const void* pc);
void tensor_moves_awaited(bool writes);
/// The running thread issues work of the engine, which touches so many bytes; it is done when a phase of the
/// barriers is over that the thread commits it to next.
void engine_touches(const void* begin, unsigned bytes, bool reads, bool writes, const void* pc);
void engine_committed(std::uint64_t* const* barriers, unsigned count, const void* pc);

/// `kind`: a TensorKind, of tcgen05.mma.
void flops(std::uint64_t count, const void* pc, int kind = -1);

void allocated(const void* begin, std::size_t bytes, bool written);
void freed(const void* begin);
void written_by_host(const void* begin, std::size_t bytes);
/// A launch is given the pointer as its argument of this number (1 …). @param names  LaunchConfig::arguments
void is_argument(std::uintptr_t pointer, const char* names, unsigned number);

/// While it lives, accesses belong to the runtime.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  void* lane_;
};
#else
inline constexpr bool kOn = false;
inline void launch_begins(const Grid&) {}
inline void launch_ends() {}
inline void take_turn() {}
inline void give_turn() {}
inline void pass_turn() {}
inline void await_newcomers(unsigned) {}
inline void block_begins(const BlockRunner&, std::uint64_t, SharedArena, const void*) {}
inline void block_ends(bool) {}
inline void* block_stands_aside() { return nullptr; }
inline void block_goes_on(void*) {}
inline void shared_begins(const char*, std::size_t) {}
inline void thread_runs(unsigned) {}
inline void warp_ends(unsigned) {}
inline void barrier_arrives(const void*) {}
inline void barrier_releases() {}
inline void barrier_splits(const SplitBarrier&) {}
inline void warp_meets(unsigned, unsigned, bool) {}
inline void grid_meets() {}
inline void arrives_at(unsigned, bool) {}
inline void threads_meet(unsigned) {}
inline void arrives_at_cluster(const void*) {}
inline void cluster_meets(const void*) {}
inline void leaves_cluster_barrier(const void*) {}
inline void releases(const void*) {}
inline void acquires(const void*) {}
inline void copy_issued(const void*, const void*, unsigned, unsigned, const void*) {}
inline void copies_committed() {}
inline void copies_awaited(unsigned) {}
inline void copies_report_to(const void*) {}
inline void bulk_load(const void*, const void*, unsigned, const void*, const void*) {}
inline void bulk_store(const void*, const void*, unsigned, bool, const void*) {}
inline void bulk_committed() {}
inline void bulk_awaited(unsigned) {}
inline void copies_complete_on(const void*) {}
inline void barrier_begins(const void*, const void*) {}
inline void barrier_used(const void*, const void*) {}
inline void multiplies_committed() {}
inline void multiplies_awaited(unsigned) {}
inline void tensor_memory_begins(const void*, std::size_t) {}
inline void tensor_memory_ends(const void*) {}
inline void tensor_moved(const void*, bool, const void*) {}
inline void tensor_moves_awaited(bool) {}
inline void engine_touches(const void*, unsigned, bool, bool, const void*) {}
inline void engine_committed(std::uint64_t* const*, unsigned, const void*) {}
inline void flops(std::uint64_t, const void*, int = -1) {}
inline void allocated(const void*, std::size_t, bool) {}
inline void freed(const void*) {}
inline void written_by_host(const void*, std::size_t) {}
inline void is_argument(std::uintptr_t, const char*, unsigned) {}
struct Silence {
  Silence() {}
  ~Silence() {}
};
#endif

}  // namespace observe
}  // namespace capstone_emu
