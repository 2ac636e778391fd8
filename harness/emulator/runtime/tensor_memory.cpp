// tcgen05: allocation of tensor memory, loads and stores of a warp, waits, fences, commits. What the
// instructions of the engine compute is in tensor_core.cpp. PTX ISA 9.0, 9.7.16.
//
// The engine works as the schedule says: at once, or when a thread waits for the mbarrier of a commit. An
// access that comes too early therefore finds work that is not done, and ends the kernel. Every access is
// also numbered, and so are fences and waits: an access must find that whoever touched the columns before it
// has waited (9.7.16.8.5), and that fences stand on both sides of the synchronisation (9.7.16.6.3).
#include "runtime/tensor_memory.h"

#include <algorithm>
#include <cstdio>

#include "include/capstone_emulator/tensor_memory.h"

namespace capstone_emu {

TensorMemory::Time TensorMemory::next_time() {
  static thread_local Time time = 0;
  return ++time;
}

TensorMemory::TensorMemory()
    : cells_(new std::uint32_t[std::size_t{kLanes} * kColumns]), uses_(std::size_t{kQuarters} * kColumns) {
  std::memset(cells_.get(), kPoison, sizeof(std::uint32_t) * kLanes * kColumns);
  observe::tensor_memory_begins(cells_.get(), sizeof(std::uint32_t) * kLanes * kColumns);
}
TensorMemory::~TensorMemory() { observe::tensor_memory_ends(cells_.get()); }

bool TensorMemory::holds(unsigned column, unsigned columns) const {
  for (const Allocation& a : allocations)
    if (column >= a.column && column + columns <= a.column + a.columns) return true;
  return false;
}

unsigned TensorMemory::find_free(unsigned columns, const TensorMemory* other) const {
  auto taken = [&](const TensorMemory& memory, unsigned first) {
    return std::any_of(memory.allocations.begin(), memory.allocations.end(), [&](const Allocation& a) {
      return first < a.column + a.columns && a.column < first + columns;
    });
  };
  for (unsigned first = 0; first + columns <= kColumns; first += columns)
    if (!taken(*this, first) && (!other || !taken(*other, first))) return first;
  return kColumns;
}

namespace {

unsigned running_warp() { return thread_state.linear / kWarpSize; }

/// "tcgen05.mma in kernel.cu:12"
std::string text_of(const TensorSite& site) {
  return std::string(site.what) +
         (site.file ? " in " + std::string(site.file) + ":" + std::to_string(site.line) : "");
}

[[noreturn]] void refuse(const TensorSite& site, const std::string& message, std::string hint) {
  BlockRunner::current()->fail(FailureKind::kUndefinedBehaviour, site.file, site.line,
                               std::string(site.what) + ": " + message, std::move(hint));
}

/// All lanes of the warp are at one instruction with the same operands (`.sync.aligned`). The last one calls
/// `then` for all of them. True in one lane.
template <class Then>
bool meet(std::uint32_t first, std::uint32_t second, const TensorSite& site, const Then& then) {
  struct Lane {
    std::uint32_t first, second;
    const TensorSite& site;
    const Then& then;
    bool leads;
  } lane{first, second, site, then, false};
  WarpOp op{WarpKind::kCollective, ~0u, site.file, site.line};
  op.in = &lane;
  op.compute = [](WarpOp* const* lanes, unsigned members) {
    auto at = [&](unsigned mask) -> Lane& {
      return *static_cast<Lane*>(const_cast<void*>(lanes[__builtin_ctz(mask)]->in));
    };
    Lane& any = at(members);
    for (unsigned rest = members; rest; rest &= rest - 1)
      if (at(rest).first != any.first || at(rest).second != any.second)
        refuse(any.site, "the lanes of the warp give different operands",
               "all threads of the warp must pass the same address and number of columns");
    any.leads = true;
    any.then();
  };
  warp_collective(op);
  return lane.leads;
}
bool meet(std::uint32_t first, std::uint32_t second, const TensorSite& site) {
  return meet(first, second, site, [] {});
}

TensorQueue& queue() {
  BlockRunner& runner = *BlockRunner::current();
  return runner.tensor_queue();
}

constexpr const char* kOrderHint =
    "the thread that hands tensor memory over: tcgen05.wait::ld or ::st, tcgen05.fence::before_thread_sync, "
    "then arrive; the one that takes it: wait, then tcgen05.fence::after_thread_sync";

/// `before` touched the columns; may the running warp, or an engine for it, do so now? Giving them back needs
/// no fence: the text orders it by execution (9.7.16.6.1, "synchronous instructions").
void require_ordered(const TensorMemory::Access& before, bool before_writes, TensorUse how,
                     const TensorSite& site) {
  if (before.time == 0) return;
  const TensorMemory& own = tensor_memory();
  const unsigned warp = running_warp();
  const bool same = before.issuer == &own && before.warp == warp;
  const std::string what = text_of(before.site);
  if (before.engine) {
    if (how == TensorUse::kEngine && same) return;  // 9.7.16.6.2: pipelined
    if (how != TensorUse::kRelease && own.progress[warp].after < before.time)
      refuse(site, "nothing orders it behind the " + what,
             "wait for the mbarrier of its tcgen05.commit, then tcgen05.fence::after_thread_sync");
    return;
  }
  const TensorMemory::Progress& other = before.issuer->progress[before.warp];
  if ((before_writes ? other.stores : other.loads) < before.time)
    refuse(site, "the " + what + " may not be done: it was not waited for",
           before_writes ? "tcgen05.wait::st behind the store" : "tcgen05.wait::ld behind the load");
  if (same || how == TensorUse::kRelease) return;
  if (other.before < before.time)
    refuse(site, "no tcgen05.fence::before_thread_sync follows the " + what + " of another warp", kOrderHint);
  if (own.progress[warp].after < before.time)
    refuse(site, "no tcgen05.fence::after_thread_sync precedes it, and the " + what + " is another warp's",
           kOrderHint);
}

void perform(TensorWork& work) {
  work.perform();
  const TensorMemory::Time time = TensorMemory::next_time();
  for (const TensorRange& range : work.ranges)
    for (unsigned quarter = 0; quarter < TensorMemory::kQuarters; ++quarter)
      for (unsigned column = range.column; column < range.column + range.columns; ++column) {
        TensorMemory::Use& use = range.memory->use(quarter, column);
        if (range.writes) use.write = {time, work.issuer, work.warp, true, work.site};
        if (range.reads) use.read = {time, work.issuer, work.warp, true, work.site};
      }
}

/// The power of two that allocations come in.
void require_columns(unsigned columns, const TensorSite& site) {
  if (columns < TensorMemory::kUnit || columns > TensorMemory::kColumns || (columns & (columns - 1)))
    refuse(site, std::to_string(columns) + " columns", "32, 64, 128, 256 or 512 columns");
}

/// Both blocks of a pair have made this call equally often.
void await_peer(TensorMemory& memory, TensorMemory::Shared TensorMemory::*list, unsigned columns,
                const TensorSite& site) {
  TensorMemory& peer = peer_tensor_memory(site);
  TensorMemory::Shared &mine = memory.*list, &other = peer.*list;
  mine.columns = columns;
  const unsigned call = ++mine.calls;
  while (other.calls < call) {
    if (peer.ended)
      refuse(site, "the other block of the pair has left the kernel",
             "with .cta_group::2, a warp of each of the two blocks must execute it");
    yield_to_others();
  }
  if (other.calls == call && other.columns != columns)
    refuse(site, "the two blocks of the pair give different numbers of columns", "the same number in both");
}

/// The columns for which warps of both blocks ask; found by whichever comes last.
unsigned allocate_in_pair(TensorMemory& memory, unsigned columns, const TensorSite& site) {
  await_peer(memory, &TensorMemory::allocating, columns, site);
  TensorMemory& peer = peer_tensor_memory(site);
  const std::size_t call = memory.allocating.calls;
  while (memory.allocating.granted.size() < call) {
    const unsigned first = memory.find_free(columns, &peer);
    if (first == TensorMemory::kColumns) {
      yield_to_others();
      continue;
    }
    for (TensorMemory* each : {&memory, &peer}) {
      each->allocating.granted.push_back(first);
      each->allocations.push_back({first, columns, TensorMemory::kWarps, site});
    }
  }
  const unsigned first = memory.allocating.granted[call - 1];
  for (TensorMemory::Allocation& a : memory.allocations)
    if (a.column == first) a.warp = running_warp();
  return first;
}

struct Place {
  unsigned lane, column;
};

/// Where register `r` of lane `t` lies (9.7.16.2.3.1), relative to the address. `column` counts registers'
/// worth of columns.
Place place_of_register(const TensorMove& move, unsigned t, unsigned r) {
  switch (move.shape) {
    case TensorShape::k32x32b:
      return {t, r};
    case TensorShape::k16x64b:
      return {t / 4 + t % 2 * 8, r * 2 + t / 2 % 2};
    case TensorShape::k16x128b:
      return {t / 4 + r % 2 * 8, r / 2 * 4 + t % 4};
    case TensorShape::k16x256b:
      return {t / 4 + r / 2 % 2 * 8, r / 4 * 8 + t % 4 * 2 + r % 2};
    case TensorShape::k16x32bx2:
      return {t % 16, r};
  }
  return {};
}

unsigned registers_of(const TensorMove& move) {
  return move.repeat * (move.shape == TensorShape::k16x256b   ? 4
                        : move.shape == TensorShape::k16x128b ? 2
                                                              : 1);
}

/// Columns side by side that one of its accesses touches.
unsigned width_of(const TensorMove& move) {
  const unsigned each = move.shape == TensorShape::k16x256b   ? 8
                        : move.shape == TensorShape::k16x128b ? 4
                        : move.shape == TensorShape::k16x64b  ? 2
                                                              : 1;
  return move.repeat * each * (move.halves ? 2 : 1);
}

/// What a warp moves is allowed and ordered, and is known to those that follow.
void note_move(const TensorMove& move, bool writes, const TensorSite& site) {
  TensorMemory& memory = tensor_memory();
  const unsigned lane = move.address >> 16, column = move.address & 0xffff, quarter = running_warp() % 4;
  const bool all_lanes = move.shape == TensorShape::k32x32b;
  if (lane != quarter * 32 && (all_lanes || lane != quarter * 32 + 16))
    refuse(site,
           "warp " + std::to_string(running_warp()) + " may touch lanes " + std::to_string(quarter * 32) +
               " to " + std::to_string(quarter * 32 + 31) + ", and the address begins at lane " +
               std::to_string(lane),
           "add (warp % 4) * 32 to the lane of the address, bits 16 to 31 (PTX ISA 9.0, 9.7.16.8.1)");
  const bool twice = move.shape == TensorShape::k16x32bx2;
  for (unsigned half = 0; half <= (twice ? 1u : 0u); ++half)
    require_usable(memory, 1u << quarter, column + half * move.split, width_of(move), writes,
                   TensorUse::kMove, site);
  const TensorMemory::Access access{TensorMemory::next_time(), &memory, running_warp(), false, site};
  for (unsigned half = 0; half <= (twice ? 1u : 0u); ++half)
    for (unsigned c = 0; c < width_of(move); ++c) {
      TensorMemory::Use& use = memory.use(quarter, column + half * move.split + c);
      (writes ? use.write : use.read) = access;
    }
}

/// Calls visit(cell, register number, is it the upper half?) for what the calling lane moves.
template <class Visit>
void move_registers(const TensorMove& move, bool writes, const TensorSite& site, Visit visit) {
  meet(move.address, move.split, site, [&] { note_move(move, writes, site); });
  TensorMemory& memory = tensor_memory();
  const unsigned t = thread_state.lane, per_register = move.halves ? 2 : 1;
  const unsigned lane = move.address >> 16;
  const unsigned column =
      (move.address & 0xffff) + (move.shape == TensorShape::k16x32bx2 ? t / 16 * move.split : 0);
  for (unsigned r = 0; r < registers_of(move); ++r) {
    const Place place = place_of_register(move, t, r);
    for (unsigned half = 0; half < per_register; ++half)
      visit(memory.cell(lane + place.lane, column + place.column * per_register + half), r, half != 0);
  }
}

}  // namespace

// ---- the memory of a block --------------------------------------------------------------------------------

TensorMemory& BlockRunner::tensor_memory(unsigned rank) {
  std::shared_ptr<TensorMemory>& memory = cluster_ ? cluster_->tensor[rank] : tensor_;
  if (!memory) memory = std::make_shared<TensorMemory>();
  return *memory;
}
TensorQueue& BlockRunner::tensor_queue() {
  std::shared_ptr<TensorQueue>& queue = cluster_ ? cluster_->tensor_queue : tensor_queue_;
  if (!queue) queue = std::make_shared<TensorQueue>();
  return *queue;
}

/// The last thread of the block has left the kernel.
void BlockRunner::end_tensor_memory() {
  TensorMemory* memory = (cluster_ ? cluster_->tensor[cluster_rank_] : tensor_).get();
  if (!memory) return;
  memory->ended = true;
  if (memory->allocations.empty()) return;
  const TensorMemory::Allocation& first = memory->allocations[0];
  refuse(first.site, "its " + std::to_string(first.columns) + " columns of tensor memory are never freed",
         "tcgen05.dealloc by the warp that allocated them, before the kernel ends (PTX ISA 9.0, 9.7.16.1.2)");
}

TensorMemory& tensor_memory() { return BlockRunner::current()->tensor_memory(thread_state.cluster_rank); }

TensorMemory& peer_tensor_memory(const TensorSite& site) {
  BlockRunner& runner = *BlockRunner::current();
  const unsigned peer = thread_state.cluster_rank ^ 1;
  if (!thread_state.cluster_arenas || peer >= runner.grid().cluster_blocks)
    refuse(site, ".cta_group::2 in a block that has no peer",
           "launch a cluster of an even number of blocks");
  if (!thread_state.cluster_arenas[peer])
    refuse(site, ".cta_group::2 before the block's peer has begun",
           "cluster.sync() before the first of these instructions");
  return runner.tensor_memory(peer);
}

void require_group(TensorMemory& memory, unsigned group, const TensorSite& site) {
  if (memory.group != 0 && memory.group != group)
    refuse(site,
           ".cta_group::" + std::to_string(group) +
               " in a kernel that has used .cta_group::" + std::to_string(memory.group),
           "all tcgen05 instructions of a kernel must have the same .cta_group");
  memory.group = group;
}

void require_usable(TensorMemory& memory, unsigned quarters, unsigned column, unsigned columns, bool writes,
                    TensorUse how, const TensorSite& site) {
  if (!memory.holds(column, columns))
    refuse(site,
           "columns " + std::to_string(column) + " to " + std::to_string(column + columns - 1) +
               " of tensor memory are not allocated",
           "the address is what tcgen05.alloc wrote to shared memory, plus a column of that allocation");
  if (how != TensorUse::kEngine)
    for (const TensorWork& work : queue().work)
      for (const TensorRange& range : work.ranges)
        if (range.overlaps(memory, column, columns) && (writes || range.writes))
          refuse(site, "the " + text_of(work.site) + " that uses these columns may not be done",
                 "tcgen05.commit to an mbarrier, wait for it, then tcgen05.fence::after_thread_sync");
  for (unsigned quarter = 0; quarter < TensorMemory::kQuarters; ++quarter)
    for (unsigned c = column; quarters >> quarter & 1 && c < column + columns; ++c) {
      const TensorMemory::Use& use = memory.use(quarter, c);
      require_ordered(use.write, true, how, site);
      if (writes) require_ordered(use.read, false, how, site);
    }
}

// ---- allocation -------------------------------------------------------------------------------------------

std::uint32_t tensor_allocate(std::uint32_t to, unsigned columns, unsigned group, const char* file,
                              int line) {
  const TensorSite site{"tcgen05.alloc", file, line};
  TensorMemory& memory = tensor_memory();
  const bool leads = meet(to, columns, site);
  if (!leads) return ~std::uint32_t{0};
  require_group(memory, group, site);
  require_columns(columns, site);
  if (memory.relinquished)
    refuse(site, "the block has given up its right to allocate",
           "no tcgen05.alloc behind tcgen05.relinquish_alloc_permit");
  if (memory.last_columns != 0 && columns > memory.last_columns)
    refuse(
        site,
        std::to_string(columns) + " columns behind an allocation of " + std::to_string(memory.last_columns),
        "the number of columns must not increase from one allocation to the next (PTX ISA 9.0, 9.7.16.7.1)");
  memory.last_columns = columns;
  unsigned first;
  if (group == 2) {
    first = allocate_in_pair(memory, columns, site);
  } else {
    while ((first = memory.find_free(columns, nullptr)) == TensorMemory::kColumns) yield_to_others();
    memory.allocations.push_back({first, columns, running_warp(), site});
  }
  for (unsigned quarter = 0; quarter < TensorMemory::kQuarters; ++quarter)
    for (unsigned c = first; c < first + columns; ++c) memory.use(quarter, c) = {};
  return first;
}

void tensor_release(std::uint32_t address, unsigned columns, unsigned group, const char* file, int line) {
  const TensorSite site{"tcgen05.dealloc", file, line};
  TensorMemory& memory = tensor_memory();
  if (!meet(address, columns, site)) return;
  require_group(memory, group, site);
  const auto found = std::find_if(
      memory.allocations.begin(), memory.allocations.end(),
      [&](const TensorMemory::Allocation& a) { return a.column == address && a.columns == columns; });
  if (found == memory.allocations.end()) {
    char number[16];
    std::snprintf(number, sizeof number, "0x%x", address);
    refuse(site,
           std::to_string(columns) + " columns at " + number + " are no allocation, or were freed before",
           "free what tcgen05.alloc gave, once, with the same number of columns");
  }
  if (found->warp != running_warp())
    refuse(site,
           "warp " + std::to_string(running_warp()) + " frees what warp " + std::to_string(found->warp) +
               " allocated",
           "one warp allocates and frees (PTX ISA 9.0, 9.7.16.7.1)");
  require_usable(memory, 0xf, found->column, columns, true, TensorUse::kRelease, site);
  if (group == 2) await_peer(memory, &TensorMemory::releasing, columns, site);
  memory.allocations.erase(
      std::find_if(memory.allocations.begin(), memory.allocations.end(),
                   [&](const TensorMemory::Allocation& a) { return a.column == address; }));
}

void tensor_relinquish(unsigned group, const char* file, int line) {
  const TensorSite site{"tcgen05.relinquish_alloc_permit", file, line};
  if (!meet(0, 0, site)) return;
  require_group(tensor_memory(), group, site);
  tensor_memory().relinquished = true;
}

// ---- loads and stores -------------------------------------------------------------------------------------

void tensor_load(const TensorMove& move, std::uint32_t* registers, const char* file, int line) {
  const TensorSite site{"tcgen05.ld", file, line};
  const void* pc = __builtin_return_address(0);
  move_registers(move, false, site, [&](const std::uint32_t* cell, unsigned r, bool upper) {
    observe::tensor_moved(cell, false, pc);
    if (!move.halves)
      registers[r] = *cell;
    else
      registers[r] = upper ? registers[r] | *cell << 16 : *cell & 0xffff;
  });
}

void tensor_store(const TensorMove& move, const std::uint32_t* registers, const char* file, int line) {
  const TensorSite site{"tcgen05.st", file, line};
  const void* pc = __builtin_return_address(0);
  move_registers(move, true, site, [&](std::uint32_t* cell, unsigned r, bool upper) {
    observe::tensor_moved(cell, true, pc);
    *cell = !move.halves ? registers[r] : upper ? registers[r] >> 16 : registers[r] & 0xffff;
  });
}

void tensor_wait(bool loads, const char* file, int line) {
  meet(0, 0, {loads ? "tcgen05.wait::ld" : "tcgen05.wait::st", file, line});
  TensorMemory::Progress& mine = tensor_memory().progress[running_warp()];
  (loads ? mine.loads : mine.stores) = TensorMemory::next_time();
  observe::tensor_moves_awaited(!loads);
}

// ---- the engine's work ------------------------------------------------------------------------------------

void tensor_fence(bool before) {
  TensorMemory::Progress& mine = tensor_memory().progress[running_warp()];
  (before ? mine.before : mine.after) = TensorMemory::next_time();
}

void issue_tensor_work(TensorWork work) {
  work.issuer = &tensor_memory();
  work.warp = running_warp();
  if (BlockRunner::current()->grid().settings.copies_early()) return perform(work);
  queue().work.push_back(std::move(work));
}

void tensor_commit(std::uint64_t* barrier, unsigned mask, unsigned group, const char* file, int line) {
  const TensorSite site{"tcgen05.commit", file, line};
  require_group(tensor_memory(), group, site);
  TensorWork commit{&tensor_memory(), running_warp(), site, {}, {}, {}};
  if (mask == 0) commit.barriers.push_back(barrier);
  for (unsigned rank = 0; rank < kMaxClusterBlocks; ++rank)
    if (mask >> rank & 1)
      commit.barriers.push_back(
          reinterpret_cast<std::uint64_t*>(remote_shared_memory(rank, shared_address(barrier))));
  observe::engine_committed(commit.barriers.data(), static_cast<unsigned>(commit.barriers.size()),
                            __builtin_return_address(0));
  if (BlockRunner::current()->grid().settings.copies_early()) {
    for (std::uint64_t* each : commit.barriers) mbarrier_signal(each, file, line);
    return;
  }
  queue().work.push_back(std::move(commit));
}

void finish_tensor_work(const std::uint64_t* barrier) {
  BlockRunner* runner = BlockRunner::current();
  if (!runner || !runner->has_tensor_queue()) return;
  std::deque<TensorWork>& all = queue().work;
  const auto commit = std::find_if(all.begin(), all.end(), [&](const TensorWork& work) {
    return std::find(work.barriers.begin(), work.barriers.end(), barrier) != work.barriers.end();
  });
  if (commit == all.end()) return;
  // Work of other threads before it may be what it builds on: in the order in which it was issued.
  std::vector<TensorWork> due;
  const TensorWork told = *commit;
  std::deque<TensorWork> rest;
  for (auto it = all.begin(); it != all.end(); ++it) {
    if (it == commit) continue;
    if (it < commit && it->perform)
      due.push_back(std::move(*it));
    else
      rest.push_back(std::move(*it));
  }
  all = std::move(rest);
  for (TensorWork& work : due) perform(work);
  for (std::uint64_t* each : told.barriers) mbarrier_signal(each, told.site.file, told.site.line);
}

}  // namespace capstone_emu
