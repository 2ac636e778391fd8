// Happens-before. Barriers and warp collectives are kept as times (a number for the block, one for each warp,
// one for each pair of lanes); fences, flags and barriers in memory as Knowledge, which is built only when a
// program uses them.
//
// A write becomes visible to others as the CUDA memory model says: fence, then an atomic or volatile write;
// the reader's side is treated generously: its atomic or volatile read counts as if a fence followed.
#include <map>

#include "hooks/access.h"
#include "hooks/block.h"
#include "hooks/findings.h"
#include "hooks/waits.h"
#include "runtime/observe.h"

namespace capstone_emu::hooks {
namespace {

struct Flag {
  std::uint64_t block;  // of a flag in shared memory; else 0
  Knowledge knowledge;
  std::shared_ptr<const Knowledge> of_block;  // of the block that wrote it last; part of `knowledge`
};
std::map<std::uintptr_t, Flag>& flags() {
  static auto* all = new std::map<std::uintptr_t, Flag>;
  return *all;
}

std::uint64_t block_of_flag(Block& block, std::uintptr_t address) {
  const Block* home = home_of(block, address);
  return home ? home->begin : 0;
}

Flag& flag_at(Block& block, std::uintptr_t address) {
  Flag& flag = flags()[address];
  const std::uint64_t owner = block_of_flag(block, address);
  if (flag.block != owner) flag = {owner, {}, nullptr};
  return flag;
}

const Knowledge* find_flag(Block& block, std::uintptr_t address) {
  auto it = flags().find(address);
  if (it == flags().end()) return nullptr;
  return it->second.block == block_of_flag(block, address) ? &it->second.knowledge : nullptr;
}

/// Everything that happened before now in the running thread's view.
Knowledge known_now(const Block& block, const Lane& lane) {
  Knowledge all;
  if (block.learnt) all = *block.learnt;
  if (lane.learnt) join(all, *lane.learnt);
  BlockKnowledge own;
  own.all = block.barrier;
  const unsigned first = lane.warp() * kWarpSize;
  for (unsigned l = 0; l < kWarpSize; ++l)
    own.add(first + l, std::max(block.warp[lane.warp()], lane.known[l]));
  own.add(lane.linear, now + 1);
  all[block.index].join(own);
  return all;
}

void publish(Block& block, Lane& lane, std::uintptr_t address) {
  if (lane.fenced) join(flag_at(block, address).knowledge, *lane.fenced);
  if (!block.fenced) return;
  Flag& flag = flag_at(block, address);
  if (flag.of_block == block.fenced) return;
  join(flag.knowledge, *block.fenced);
  flag.of_block = block.fenced;
}

}  // namespace

std::uint64_t Launch::block_at(Time time) const {
  auto it = std::upper_bound(turns.begin(), turns.end(), time,
                             [](Time t, const auto& turn) { return t < turn.first; });
  return it == turns.begin() ? 0 : std::prev(it)->second;
}

const ConcurrentLaunch* Launch::concurrent_at(Time time) const {
  for (const ConcurrentLaunch& launch : concurrent)
    if (time >= launch.begin && time < launch.end) return &launch;
  return nullptr;
}

std::uint64_t owner_of(const Stamp& stamp, const Block* home, const Block& block) {
  const bool own = (home && !block.cluster) || stamp.unfinished() || stamp.time >= block.last_turn;
  return own ? block.index : running_launch.block_at(stamp.time);
}

bool happened_before(const Stamp& stamp, const Block* home, const Block& block, const Lane& lane) {
  if (stamp.time < (home ? home->begin : running_launch.begin))
    return home || !running_launch.concurrent_at(stamp.time);
  const std::uint64_t owner = owner_of(stamp, home, block);
  if (owner == block.index && !stamp.asynchronous) {
    if (stamp.time < block.barrier || stamp.thread == lane.linear) return true;
    if (stamp.thread / kWarpSize == lane.warp() &&
        (stamp.time < block.warp[lane.warp()] || stamp.time < lane.known[stamp.thread % kWarpSize]))
      return true;
  }
  const unsigned who = stamp.thread + (stamp.multiplies() ? kMultiplier : stamp.asynchronous ? kEngine : 0);
  return (lane.learnt && covers(*lane.learnt, owner, who, stamp.time)) ||
         (block.learnt && covers(*block.learnt, owner, who, stamp.time));
}

void learn(Lane& lane, const Knowledge& knowledge) {
  if (!lane.learnt) lane.learnt = std::make_unique<Knowledge>();
  join(*lane.learnt, knowledge);
}

void fence(Block& block, Lane& lane) {
  lane.fenced = std::make_shared<const Knowledge>(known_now(block, lane));
  lane.time = ++now;  // what follows is not covered
  lane.last_fence = now;
  if (lane.next_fence) *lane.next_fence = now;
  lane.next_fence.reset();
}

void pass_flag(Block& block, Lane& lane, std::uintptr_t address, bool reads, bool writes) {
  if (reads && !flags().empty())
    if (const Knowledge* knowledge = find_flag(block, address)) learn(lane, *knowledge);
  if (writes) publish(block, lane, address);
}

void release_through(Block& block, Lane& lane, std::uintptr_t object) {
  fence(block, lane);
  publish(block, lane, object);
}
void acquire_through(Block& block, Lane& lane, std::uintptr_t object) {
  if (const Knowledge* knowledge = find_flag(block, object)) learn(lane, *knowledge);
}

void publish_engine(Block& block, std::uintptr_t object, unsigned thread, Time before) {
  flag_at(block, object).knowledge[block.index].add(kEngine + thread, before);
}

void forget_flags() { flags().clear(); }

}  // namespace capstone_emu::hooks

namespace capstone_emu::observe {

using namespace hooks;

void barrier_releases() {
  note_step(WaitStep::kMeet);
  Block& block = *this_block;
  for (unsigned w = 0; w * kWarpSize < block.count; ++w) count_warp(block, w);
  block.barrier = ++now;
  std::shared_ptr<Knowledge> fenced;
  for (unsigned t = 0; t < block.count; ++t) {
    Lane& lane = block.lanes[t];
    lane.time = now;
    if (lane.fenced) {  // whichever thread sets the flag after the barrier: the fences of all count
      if (!fenced)
        fenced = block.fenced ? std::make_shared<Knowledge>(*block.fenced) : std::make_shared<Knowledge>();
      join(*fenced, *lane.fenced);
      lane.fenced.reset();
    }
    if (!lane.learnt) continue;
    if (!block.learnt) block.learnt = std::make_unique<Knowledge>();
    join(*block.learnt, *lane.learnt);
    lane.learnt.reset();
  }
  if (fenced) block.fenced = std::move(fenced);
}

void barrier_splits(const SplitBarrier& split) {
  Block& block = *this_block;
  if (!block.split.empty()) return;
  const std::string_view file = split.file;
  block.split = "__syncthreads() at " + std::string(file.substr(file.rfind('/') + 1)) + ":" +
                std::to_string(split.line) + " was reached by " + std::to_string(split.threads) + " of " +
                std::to_string(split.of) + " threads, the others waited at line " +
                std::to_string(split.other_line);
  explain_races(running_launch.config->kernel, block.index, block.split);
  if (!pointers_are_checked()) return;
  Finding finding = blank_finding(FindingKind::kSplitBarrier, block);
  finding.file = file.substr(file.rfind('/') + 1);
  finding.line = split.line;
  finding.split = block.split;
  keep_finding(std::move(finding));
}

void warp_meets(unsigned warp, unsigned members, bool whole) {
  Block& block = *this_block;
  if (whole) count_warp(block, warp);
  ++now;
  Lane* lanes = &block.lanes[warp * kWarpSize];
  Knowledge all, fenced;
  const std::shared_ptr<const Knowledge> first = lanes[__builtin_ctz(members)].fenced;
  bool differ = false;
  for (unsigned rest = members; rest; rest &= rest - 1) {
    const Lane& lane = lanes[__builtin_ctz(rest)];
    if (lane.learnt) join(all, *lane.learnt);
    differ |= lane.fenced != first;
  }
  if (differ) {
    for (unsigned rest = members; rest; rest &= rest - 1)
      if (const Lane& lane = lanes[__builtin_ctz(rest)]; lane.fenced) join(fenced, *lane.fenced);
    const auto shared = std::make_shared<const Knowledge>(std::move(fenced));
    for (unsigned rest = members; rest; rest &= rest - 1) lanes[__builtin_ctz(rest)].fenced = shared;
  }
  if (whole) {
    block.warp[warp] = now;
  } else {
    Time known[kWarpSize] = {};
    for (unsigned rest = members; rest; rest &= rest - 1) {
      const unsigned member = static_cast<unsigned>(__builtin_ctz(rest));
      for (unsigned l = 0; l < kWarpSize; ++l) known[l] = std::max(known[l], lanes[member].known[l]);
      known[member] = now;
    }
    for (unsigned rest = members; rest; rest &= rest - 1)
      std::copy(known, known + kWarpSize, lanes[__builtin_ctz(rest)].known);
  }
  for (unsigned rest = members; rest; rest &= rest - 1) {
    Lane& lane = lanes[__builtin_ctz(rest)];
    lane.time = now;
    if (!all.empty()) learn(lane, all);
  }
}

void releases(const void* object) {
  if (!this_lane) return;
  note_step(WaitStep::kArrive, object);
  release_through(*this_block, *this_lane, reinterpret_cast<std::uintptr_t>(object));
}
void acquires(const void* object) {
  if (!this_lane) return;
  note_step(WaitStep::kWait, object);
  acquire_through(*this_block, *this_lane, reinterpret_cast<std::uintptr_t>(object));
}

}  // namespace capstone_emu::observe
