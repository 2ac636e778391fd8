#pragma once
// What the runtime tells the hooks (harness/emulator/hooks) while kernels run. In the other flavours of a build these
// functions are empty and vanish.
#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/emulator/include/capstone_emulator/core.h"

namespace capstone_emu {

class BlockRunner;
struct Grid;

namespace observe {

#if CAPSTONE_EMULATOR_HOOKS
inline constexpr bool kOn = true;

void launch_begins(const Grid& grid);
void launch_ends();

// One block runs at a time, so that counts repeat and shadows need no locks: a runner works while it has the turn.
void take_turn();
void give_turn();
/// Lets the runner that has waited longest go on first.
void pass_turn();
/// A runner was asked for: waits until it stands in the queue, so that turns do not depend on how fast it starts.
void await_newcomer();

/// `index`: of the block in its grid; `shared`: the arena of static and dynamic shared memory.
void block_begins(const BlockRunner& runner, std::uint64_t index, const char* shared, std::size_t shared_bytes);
/// `complete`: all its threads ended; else the kernel was left.
void block_ends(bool complete);
void shared_begins(const char* begin, std::size_t bytes);
/// The block's thread whose code runs from now on.
void thread_runs(unsigned linear);
/// Every thread of a warp has ended.
void warp_ends(unsigned warp);

void barrier_arrives(const void* pc);
void barrier_releases();
/// The lanes `members` of a warp met; `whole`: nobody of the warp that still runs is missing.
void warp_meets(unsigned warp, unsigned members, bool whole);
/// The running thread synchronises with others through the object at `object` (a barrier in memory).
void releases(const void* object);
void acquires(const void* object);

void copy_issued(const void* to, const void* from, unsigned bytes, unsigned zero_filled, const void* pc);
void copies_committed();
void copies_awaited(unsigned still_pending);
void flops(std::uint64_t count, const void* pc);

void allocated(const void* begin, std::size_t bytes, const std::string& name, bool written);
void freed(const void* begin);
void written_by_host(const void* begin, std::size_t bytes);

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
inline void await_newcomer() {}
inline void block_begins(const BlockRunner&, std::uint64_t, const char*, std::size_t) {}
inline void block_ends(bool) {}
inline void shared_begins(const char*, std::size_t) {}
inline void thread_runs(unsigned) {}
inline void warp_ends(unsigned) {}
inline void barrier_arrives(const void*) {}
inline void barrier_releases() {}
inline void warp_meets(unsigned, unsigned, bool) {}
inline void releases(const void*) {}
inline void acquires(const void*) {}
inline void copy_issued(const void*, const void*, unsigned, unsigned, const void*) {}
inline void copies_committed() {}
inline void copies_awaited(unsigned) {}
inline void flops(std::uint64_t, const void*) {}
inline void allocated(const void*, std::size_t, const std::string&, bool) {}
inline void freed(const void*) {}
inline void written_by_host(const void*, std::size_t) {}
struct Silence {
  Silence() {}
  ~Silence() {}
};
#endif

}  // namespace observe
}  // namespace capstone_emu
