#pragma once
// The global memory that a kernel may touch, and a shadow for each of its words.
#include <cstddef>
#include <cstdint>
#include <string>

#include "hooks/knowledge.h"
#include "hooks/sites.h"

namespace capstone_emu::hooks {

/// Who accessed a word last: 8 bytes.
struct Stamp {
  Time time = 0;  ///< 0: never accessed
  std::uint32_t site : 20;
  std::uint32_t thread : 10;  ///< in its block
  std::uint32_t relaxed : 1;  ///< an atomic, or volatile, access: two of them never race
  /// by a copy engine for the thread; `time` is kUnfinished until a thread can know that it is done
  std::uint32_t asynchronous : 1;
  /// wgmma, for a warp group whose first thread it is
  bool multiplies() const { return asynchronous && relaxed; }
  bool unfinished() const { return asynchronous && time == ~Time{0}; }
};
inline constexpr Time kUnfinished = ~Time{0};
static_assert(sizeof(Stamp) == 8 && kMaxSites == 1u << 20);

/// The shadow of four aligned bytes, or of one byte where threads share a word.
struct Cell {
  Time ready;   ///< when it was written first (all of it); 0: never; kSplit: see the bytes' cells
  Time spread;  ///< the phase for which readers of two warps (shared) or blocks (global) are known
  Stamp write;
  Stamp reads[2];
};
inline constexpr Time kSplit = ~Time{0};
static_assert(sizeof(Cell) == 32);

/// Cells of a range of memory, by offset in bytes. Untouched ones cost nothing.
class Shadow {
 public:
  explicit Shadow(std::size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  Cell& word(std::size_t offset) { return words_[offset / 4]; }
  Cell& byte(std::size_t offset) { return bytes_[offset]; }
  /// Of memory at `begin`: where the cells of address 0 would lie if it were part of it, of words and of
  /// bytes.
  std::uintptr_t words_from(std::uintptr_t begin) const {
    return as_number(words_) - begin / 4 * sizeof(Cell);
  }
  std::uintptr_t bytes_from(std::uintptr_t begin) const { return as_number(bytes_) - begin * sizeof(Cell); }

 private:
  static std::uintptr_t as_number(const Cell* cell) { return reinterpret_cast<std::uintptr_t>(cell); }

  std::size_t size_;
  Cell *words_, *bytes_;
};

struct Allocation {
  Allocation(std::uintptr_t begin, std::size_t bytes, std::string name, bool written, bool counted)
      : begin(begin),
        bytes(bytes),
        name(std::move(name)),
        written(written),
        counted(counted),
        shadow(bytes) {}
  std::uintptr_t begin;
  std::size_t bytes;
  std::string name;        ///< of the parameter, or another name that the user knows
  bool written;            ///< all of it holds values; else the shadow knows what does
  bool counted;            ///< accesses are traffic: false for variables in static storage
  bool pipelined = false;  ///< tensor memory: what an engine does there for one thread is in order
  bool tensor = false;     ///< an argument of launch(), which the host must not touch
  Shadow shadow;
  bool contains(std::uintptr_t address, std::size_t n) const {
    return address - begin < bytes && n <= bytes - (address - begin);
  }
};

/// @param written  the memory holds values already
void add_allocation(const void* begin, std::size_t bytes, std::string name, bool written,
                    bool counted = true);
void remove_allocation(const void* begin);
void mark_written(const void* begin, std::size_t bytes);
/// Some allocation was a tensor. If not, what the host touches need not be looked up.
extern bool host_is_watched;
/// The allocation that holds the address; null: none does.
Allocation* find_allocation(std::uintptr_t address);
/// "640 bytes past the end of `A` (4096 bytes)"; empty when nothing is near.
std::string nearest_allocation(std::uintptr_t address);

}  // namespace capstone_emu::hooks
