// Static and dynamic shared memory: one arena per runner, red zones around every variable, NaN bytes in every
// fresh one.
#include <sys/mman.h>

#include <new>

#include "runtime/scheduler.h"
#include "runtime/shadow.h"

namespace capstone_emu {
namespace {

struct SlotTable {
  std::vector<SharedSlot> slots;
  std::size_t size = kRedZone;  // the end of the last variable
};
SlotTable& slot_table() {  // built during static initialisation of the candidate
  static SlotTable* instance = new SlotTable;
  return *instance;
}

/// Shared memory begins at a multiple of 4 GiB. So the low half of a pointer is its address in the shared
/// window, as on a GPU.
char* map_arena(std::size_t bytes) {
  constexpr std::size_t kWindow = std::size_t{1} << 32;
  void* const got = ::mmap(nullptr, kWindow + bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  char* const raw = static_cast<char*>(got);
  const std::size_t before = (kWindow - reinterpret_cast<std::uintptr_t>(raw) % kWindow) % kWindow;
  if (before) ::munmap(raw, before);
  if (before < kWindow) ::munmap(raw + before + bytes, kWindow - before);
  return raw + before;
}

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

SharedSlot register_shared_slot(std::size_t size, std::size_t alignment, const char* name) {
  SlotTable& t = slot_table();
  const std::size_t offset = round_up(t.size, alignment > 128 ? alignment : 128);
  t.slots.push_back({static_cast<std::uint32_t>(t.slots.size()), static_cast<std::uint32_t>(offset),
                     static_cast<std::uint32_t>(size), name});
  t.size = offset + size + kRedZone;
  return t.slots.back();
}

const std::vector<SharedSlot>& shared_slots() { return slot_table().slots; }
std::size_t shared_slots_size() { return slot_table().size; }

bool is_shared(const void* pointer) { return g_runner && g_runner->owns(pointer); }
std::size_t dynamic_shared_size() { return g_runner->grid().config.dynamic_shared; }
void begin_shared_slot(const SharedSlot& slot) { g_runner->begin_slot(slot); }
std::size_t matrix_offset(std::uint32_t address) { return g_runner->matrix_offset(address); }

void BlockRunner::prepare_arena() {
  // Dynamic memory first, as close to address 0 as it may be: descriptors of matrices hold 18 bits of an
  // address.
  const std::size_t static_offset = round_up(kDynamicOffset + grid_->config.dynamic_shared + kRedZone, 1024);
  const std::size_t needed = round_up(static_offset + shared_slots_size() + kRedZone, 4096);
  if (arena_size_ < needed) {
    if (arena_) {
      unpoison(arena_, arena_size_);  // the memory may become something else
      ::munmap(arena_, arena_size_);
    }
    arena_ = map_arena(needed);
    arena_size_ = needed;
  }
  poison(arena_, arena_size_);
  slot_epochs_.assign(shared_slots().size() + 1, 0);
  epoch_ = 0;
  touched_.clear();
  statics_ = arena_ + static_offset;
}

void BlockRunner::use_arena() const {
  thread_state.shared_base = arena_;
  thread_state.static_shared = statics_;
  thread_state.dynamic_shared = arena_ + kDynamicOffset;
  thread_state.slot_epoch = slot_epochs_.data();
}

void BlockRunner::begin_dynamic() {
  for (const SharedSlot* slot : touched_) poison(statics_ + slot->offset, slot->size);
  touched_.clear();
  shared_used_ = 0;
  if (const std::size_t bytes = grid_->config.dynamic_shared) {
    unpoison(arena_ + kDynamicOffset, bytes);
    std::memset(arena_ + kDynamicOffset - kRedZone, kPoison, bytes + 2 * kRedZone);
    observe::shared_begins(arena_ + kDynamicOffset, bytes);
  }
  if (cluster_) {  // another block of the cluster may write a variable before this one touches it
    std::memset(statics_, kPoison, shared_slots_size() + kRedZone);
    for (const SharedSlot& slot : shared_slots()) {
      unpoison(statics_ + slot.offset, slot.size);
      observe::shared_begins(statics_ + slot.offset, slot.size);
    }
  }
}

void BlockRunner::begin_slot(const SharedSlot& slot) {
  slot_epochs_[slot.id] = epoch_;
  shared_used_ += slot.size;
  if (shared_used_ > kStaticSharedLimit)
    fail(FailureKind::kLaunchError, nullptr, 0,
         "static __shared__ memory exceeds 48 KiB: " + std::to_string(shared_used_) + " bytes with " +
             slot.name,
         "use dynamic shared memory and cudaFuncSetAttribute(…, cudaFuncAttributeMaxDynamicSharedMemorySize, "
         "…)");
  const std::size_t total = shared_used_ + grid_->config.dynamic_shared;
  // The opt-in bounds the dynamic part alone; with it, both together have the whole capacity.
  const std::size_t limit =
      dynamic_shared_limit() > kStaticSharedLimit ? shared_memory_capacity() : kStaticSharedLimit;
  if (total > limit)
    fail(FailureKind::kLaunchError, nullptr, 0,
         "static and dynamic shared memory together exceed the limit: " + std::to_string(total) + " of " +
             std::to_string(limit) + " bytes",
         "raise it with cudaFuncSetAttribute(…, cudaFuncAttributeMaxDynamicSharedMemorySize, …)");
  if (!cluster_) std::memset(statics_ + slot.offset - kRedZone, kPoison, slot.size + 2 * kRedZone);
  unpoison(statics_ + slot.offset, slot.size);
  touched_.push_back(&slot);
  if (!cluster_) observe::shared_begins(statics_ + slot.offset, slot.size);
}

/// Each variable of a program has a place of its own here, so that the places of all kernels may go beyond
/// the 18 bits of a descriptor. A block uses less: its own variables say which place is meant.
std::size_t BlockRunner::matrix_offset(std::uint32_t address) const {
  constexpr std::size_t kReach = std::size_t{1} << 18;
  if (arena_size_ <= kReach) return address;
  std::size_t found = 0;
  auto look = [&](std::size_t begin, std::size_t size) {
    const std::size_t at = begin + (address - begin) % kReach;
    if (at >= begin + size) return;
    if (found)
      not_judgeable(nullptr, 0,
                    "two shared variables of the kernel whose addresses differ by 256 KiB: the "
                    "program's kernels have %zu bytes of shared memory together",
                    arena_size_);
    found = at;
  };
  look(kDynamicOffset, grid_->config.dynamic_shared);
  for (const SharedSlot* slot : touched_)
    look(static_cast<std::size_t>(statics_ - arena_) + slot->offset, slot->size);
  return found ? found : address;
}

void BlockRunner::check_red_zone(const char* begin, std::size_t bytes, const char* name, std::size_t size,
                                 bool past_end) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (static_cast<unsigned char>(begin[i]) == kPoison) continue;
    const std::size_t distance = past_end ? i : bytes - 1 - i;
    record_failure(describe(FailureKind::kUndefinedBehaviour, nullptr, 0,
                            std::string("shared memory was written out of bounds: ") +
                                std::to_string(distance) + " bytes " +
                                (past_end ? "past the end" : "before the start") + " of " + name + " (" +
                                std::to_string(size) + " bytes)",
                            "check the index against the array's size"));
    grid_->failed = true;
    return;
  }
}

std::string BlockRunner::describe_shared(const char* address) const {
  if (!arena_ || address < arena_ || address >= arena_ + arena_size_) return {};
  const char *nearest = arena_ + kDynamicOffset, *name = "the dynamic shared memory";
  std::size_t bytes = grid_->config.dynamic_shared;
  auto away = [address](const char* begin, std::size_t size) {
    return address < begin ? static_cast<std::size_t>(begin - address)
                           : static_cast<std::size_t>(address - begin) - size;
  };
  for (const SharedSlot* slot : touched_) {
    const char* begin = statics_ + slot->offset;
    if (bytes > 0 && away(begin, slot->size) >= away(nearest, bytes)) continue;
    nearest = begin;
    bytes = slot->size;
    name = slot->name;
  }
  if (bytes == 0)
    return "in shared memory that the launch did not ask for (dynamic shared memory of 0 bytes)";
  const bool past_end = address >= nearest + bytes;
  return std::to_string(away(nearest, bytes)) + " bytes " +
         (past_end ? "past the end of " : "before the start of ") + name + " (" + std::to_string(bytes) +
         " bytes)";
}

/// After a block: whatever was written between the variables was written out of bounds.
void BlockRunner::check_red_zones() {
  for (const SharedSlot* slot : touched_) {
    check_red_zone(statics_ + slot->offset - kRedZone, kRedZone, slot->name, slot->size, false);
    check_red_zone(statics_ + slot->offset + slot->size, kRedZone, slot->name, slot->size, true);
  }
  if (const std::size_t bytes = grid_->config.dynamic_shared) {
    check_red_zone(arena_ + kDynamicOffset - kRedZone, kRedZone, "the dynamic shared memory", bytes, false);
    check_red_zone(arena_ + kDynamicOffset + bytes, kRedZone, "the dynamic shared memory", bytes, true);
  }
}

}  // namespace capstone_emu
