#pragma once
// Places in the candidate's code: the calls of hooks. A place is known by its return address, which is a
// number below 4 GiB because the program is linked at a fixed address.
#include <array>
#include <cstdint>
#include <vector>

namespace capstone_emu::hooks {

struct Allocation;

/// Sums over the warp-wide accesses of one place, in the running launch.
struct Counts {
  std::uint64_t global_requests = 0, sectors = 0, ideal_sectors = 0, global_bytes = 0, global_lanes = 0;
  std::uint64_t shared_requests = 0, wavefronts = 0, ideal_wavefronts = 0, shared_bytes = 0, shared_lanes = 0;
  std::uint64_t loads = 0, stores = 0;  ///< of global_requests
  std::uint64_t store_sectors = 0;      ///< of sectors
  std::uint64_t atomics = 0;            ///< operations of single threads
  std::uint64_t barriers = 0;           ///< executed by a warp
  std::uint64_t flops = 0;              ///< of warp-wide operations that report it, such as mma.sync
  /// Tensor memory [B]: moved by warps; touched by the engine.
  std::uint64_t tensor_loaded = 0, tensor_stored = 0, engine_read = 0, engine_written = 0;
  std::array<std::uint64_t, 7> flops_of_kind = {};  ///< of `flops`: tcgen05.mma, by TensorKind
  std::uint64_t bulk = 0;  ///< of global_requests: lines of 128 bytes of bulk copies; no lane asks for them
  void add(const Counts& other);
};

struct Site {
  std::uint32_t pc = 0;   ///< return address of the hook's call
  std::uint8_t size = 0;  ///< [B] of one lane's access; 0: a barrier
  bool write = false, atomic = false, used = false;
  bool begins_swap = false;      ///< its value goes into a compare-and-swap of the same place
  const char* shared = nullptr;  ///< the shared variable that it reached in this launch, as its slot names it
  Counts counts;
  /// A launch begins.
  void forget() {
    counts = {};
    shared = nullptr;
    used = false;
  }
};

using SiteId = std::uint32_t;
inline constexpr SiteId kMaxSites = 1u << 20;

struct Cell;

/// What an access must know of its place at once: one cache line.
struct alignas(64) Spotter {
  SiteId site;       ///< 0: none yet
  bool written;      ///< `hint` was, all of it; may be behind
  bool counted;      ///< as of `hint`
  Allocation* hint;  ///< where it last went in global memory; null: nowhere yet
  // The quick path's part of `hint`; all 0 where it has none.
  std::uintptr_t begin;  ///< of its memory
  std::uintptr_t first;  ///< accesses that begin at less than `first` bytes from there lie in it
  /// of its shadow: words_from(begin), bytes_from(begin)
  std::uintptr_t cells, byte_cells;
  void look_at(Allocation* allocation);
};
static_assert(sizeof(Spotter) == 64);

extern Site* sites;        // [kMaxSites], by id; 0 is none
extern Spotter* spotters;  // by pc
// by pc: how often the basic block with this call ran in this launch
extern std::uint64_t* executed;

/// What hooks do in addition to a look at the shadow, as bits, so that one test tells that it is nothing.
enum Duty : std::uint8_t {
  kCount = 1,   ///< accesses and basic blocks; else only findings are wanted, which is quicker
  kSettle = 2,  ///< an early value is shown, or a block has doubts: settle() (block.h). May be set without
};
extern std::uint8_t duties;
inline bool counting() { return duties & kCount; }
inline void count_accesses(bool wanted) {
  duties = static_cast<std::uint8_t>(wanted ? duties | kCount : duties & ~kCount);
}

/// Reserves the tables. Once, before the first kernel.
void prepare_sites();
SiteId new_site(std::uint32_t pc, unsigned size, bool write, bool atomic);

inline SiteId site_at(std::uint32_t pc, unsigned size, bool write, bool atomic) {
  const SiteId id = spotters[pc].site;
  return __builtin_expect(id != 0, 1) ? id : new_site(pc, size, write, atomic);
}
inline Allocation* hint_of(const Site& site) { return spotters[site.pc].hint; }
/// Sites so far; ids are 1 … count.
SiteId site_count();

/// Counts a basic block; the first time in a launch it is put on a list.
void block_executed(std::uint32_t pc);
/// Return addresses of block_executed() since the last call, and how often each ran; then starts from zero.
std::vector<std::pair<std::uint32_t, std::uint64_t>> take_executed_blocks();

}  // namespace capstone_emu::hooks
