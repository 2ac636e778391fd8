#pragma once
// Tensor memory of a block, and the tcgen05 work that is still to be done. PTX ISA 9.0, 9.7.16.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/scheduler.h"
#include "runtime/tensor_map.h"

namespace capstone_emu {

/// A tcgen05 instruction in the source, for messages.
struct TensorSite {
  const char* what = nullptr;
  const char* file = nullptr;
  int line = 0;
};

class TensorMemory {
 public:
  static constexpr unsigned kLanes = 128, kColumns = 512, kUnit = 32, kQuarters = 4, kWarps = 32;
  /// Numbers the accesses and the waits of all blocks on this OS thread.
  using Time = std::uint64_t;
  static Time next_time();

  TensorMemory();
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  std::uint32_t* cell(unsigned lane, unsigned column) { return &cells_[lane * kColumns + column]; }

  /// Who touched 32 lanes of a column last. What a tcgen05.mma, .cp or .shift does is the engine's.
  struct Access {
    Time time = 0;                         ///< of an engine: when it was done; 0: never
    const TensorMemory* issuer = nullptr;  ///< of the block that issued it
    unsigned warp = 0;
    bool engine = false;
    TensorSite site;
  };
  struct Use {
    Access write, read;
  };
  Use& use(unsigned quarter, unsigned column) { return uses_[quarter * kColumns + column]; }
  /// By warp: its last fences and waits.
  struct Progress {
    Time before = 0, after = 0, loads = 0, stores = 0;
  } progress[kWarps];

  struct Allocation {
    unsigned column, columns, warp;
    TensorSite site;
  };
  std::vector<Allocation> allocations;
  bool holds(unsigned column, unsigned columns) const;
  /// The first free place for so many columns in all of `others` and here; kColumns: there is none.
  unsigned find_free(unsigned columns, const TensorMemory* other) const;

  unsigned group = 0;         ///< `.cta_group` of the kernel's instructions; 0: none was seen
  unsigned last_columns = 0;  ///< of the last allocation; 0: there was none
  bool relinquished = false;
  bool ended = false;  ///< the block has left the kernel
  /// cta_group::2: how often this block asked for columns or gave them back, how many, and what it got.
  struct Shared {
    unsigned calls = 0, columns = 0;
    std::vector<unsigned> granted;
  } allocating, releasing;

 private:
  std::unique_ptr<std::uint32_t[]> cells_;
  std::vector<Use> uses_;
};

/// Columns of tensor memory, in all of its lanes, that an instruction of the engine touches.
struct TensorRange {
  TensorMemory* memory;
  unsigned column, columns;
  bool writes, reads;
  bool overlaps(const TensorMemory& other, unsigned first, unsigned count) const {
    return memory == &other && first < column + columns && column < first + count;
  }
};

/// An instruction that was issued, or a commit. Under late schedules it waits until a thread waits for it.
struct TensorWork {
  const TensorMemory* issuer;  ///< of the issuing block
  unsigned warp;
  TensorSite site;
  std::vector<TensorRange> ranges;
  std::function<void()> perform;         ///< empty: a commit
  std::vector<std::uint64_t*> barriers;  ///< that a commit tells
};
/// The last box that a tensor copy wrote to a place in shared memory.
struct TensorBox {
  const char* begin;
  TensorMap map;
  std::int32_t at[5];  ///< coordinates of the box
  std::size_t bytes;
  const char* file;  ///< of the copy
  int line;
};
/// Of a block, or of all blocks of a cluster.
struct TensorQueue {
  std::deque<TensorWork> work;
  std::map<const char*, TensorBox> boxes;  ///< by where they begin
};
/// The box that a tensor copy wrote around the address; null: none did.
const TensorBox* box_around(const char* address);
/// Nothing else was written there since.
bool still_holds(const TensorBox& box);

/// The running thread's block, and the other block of its pair.
TensorMemory& tensor_memory();
TensorMemory& peer_tensor_memory(const TensorSite& site);
/// All tcgen05 instructions of a kernel have one cta_group.
void require_group(TensorMemory& memory, unsigned group, const TensorSite& site);
enum class TensorUse { kMove, kEngine, kRelease };
/// The columns were allocated, and what others did to them is over and ordered. @param quarters  groups of 32
/// lanes, as a mask
void require_usable(TensorMemory& memory, unsigned quarters, unsigned column, unsigned columns, bool writes,
                    TensorUse how, const TensorSite& site);
/// Issues work of the engine: done at once, or later.
void issue_tensor_work(TensorWork work);

}  // namespace capstone_emu
