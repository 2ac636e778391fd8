#pragma once
// What a run found. Each finding is kept once per pair of places, and becomes a message when the run is over.
#include <cstdint>
#include <string>
#include <vector>

#include "hooks/knowledge.h"
#include "runtime/scheduler.h"

namespace capstone_emu::hooks {

enum class FindingKind {
  kRace,           ///< two threads access one place, at least one writes, and nothing orders them
  kSameValue,      ///< as a race of two writes, but the second changed nothing: a label, not an error
  kUninitialised,  ///< a read of memory that was never written
  kOutOfBounds,    ///< outside of every allocation and shared variable
  kMisaligned,
  kHostAccess,    ///< host code touches a tensor: device memory
  kEarlyRead,     ///< a read got the value from before a write that nothing orders: explains a wrong output
  kSplitBarrier,  ///< only some of a block's threads reached a __syncthreads(); told of whole programs
  kUnfinishedResult,  ///< an accumulator is accessed before a wait for the wgmma that writes it
};
const char* name_of(FindingKind kind);

/// One side of a finding.
struct Party {
  std::uint32_t pc = 0;  ///< return address of the hook's call; 0: there is no such side
  std::uint64_t block = 0;
  unsigned thread = 0;
  bool write = false, asynchronous = false, atomic = false;
};

struct Finding {
  FindingKind kind;
  std::string kernel;
  Index3 grid, block_dim;
  std::string object;  ///< what memory: "shared memory `tile`", "`C`"
  Party now, before;
  unsigned bytes = 0;
  bool shared = false, same_warp = false;
  bool lock_step = false;    ///< a race of volatile accesses to shared memory by lanes of one warp
  std::string other_launch;  ///< of a race of two streams: the launch of `before`
  std::string file;          ///< of a split barrier, which is known by its line; else empty
  int line = 0;              ///< in `file`
  std::string split;         ///< of a race: describes a barrier that only some of the block's threads reached
};

/// Keeps the finding unless there is one of its kind for these two places, or 100 already. Of races that have
/// one cause, that a kernel counts on lock step, it keeps the first.
void keep_finding(Finding finding);
/// Adds what is known of a barrier to the races that were found in this block before.
void explain_races(const std::string& kernel, std::uint64_t block, const std::string& split);
bool is_known(FindingKind kind, std::uint32_t pc, std::uint32_t other_pc);
/// Without the uninitialised reads that a race explains: the read came before the write that it should have
/// waited for.
std::vector<Finding> take_findings();
/// The first few reads that got an older value; no errors.
std::vector<Finding> take_early_reads();

/// The message of a finding. `where` and `other` are places in the source such as "kernel.cu:12".
std::string message_of(const Finding& finding, const std::string& where, const std::string& other);
std::string hint_of(const Finding& finding);
Index3 thread_of(const Finding& finding, const Party& party);
Index3 block_of(const Finding& finding, const Party& party);

}  // namespace capstone_emu::hooks
