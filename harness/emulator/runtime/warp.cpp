// Warp collectives: a lane posts its operands; the last lane of the mask computes for all of them.
#include "runtime/scheduler.h"

namespace capstone_emu {
namespace {

template <class Visit>
inline void for_each_lane(unsigned mask, Visit visit) {
  for (; mask; mask &= mask - 1) visit(__builtin_ctz(mask));
}

void shuffle(WarpOp* const* ops, unsigned members) {
  for_each_lane(members, [&](int lane) {
    WarpOp& op = *ops[lane];
    const bool valid = op.source >= 0 && op.source < 32 && (members >> op.source & 1);
    if (!valid)  // CUDA leaves the value undefined when the source lane does not take part
      std::memset(op.out, kPoison, op.size);
    else if (op.size == 4)
      std::memcpy(op.out, ops[op.source]->in, 4);
    else
      std::memcpy(op.out, ops[op.source]->in, op.size);
  });
}

void match(WarpOp* const* ops, unsigned members) {
  for_each_lane(members, [&](int lane) {
    unsigned same = 0;
    for_each_lane(members, [&](int other) {
      if (std::memcmp(ops[other]->in, ops[lane]->in, ops[lane]->size) == 0) same |= 1u << other;
    });
    ops[lane]->result = same;
  });
}

void vote(WarpOp* const* ops, unsigned members, WarpKind kind) {
  unsigned ballot = 0;
  for_each_lane(members,
                [&](int lane) { ballot |= static_cast<unsigned>(ops[lane]->predicate != 0) << lane; });
  const unsigned result = kind == WarpKind::kBallot ? ballot
                          : kind == WarpKind::kAny  ? ballot != 0
                                                    : ballot == members;
  for_each_lane(members, [&](int lane) { ops[lane]->result = result; });
}

}  // namespace

void* arrive_at_collective(WarpOp& op, void*** save) { return BlockRunner::current()->collective(op, save); }

void* BlockRunner::collective(WarpOp& op, void*** save) {
  Thread& thread = *thread_;
  const unsigned warp_index = thread.linear / kWarpSize, bit = 1u << (thread.linear % kWarpSize);
  Warp& warp = warps_[warp_index];
  fruitless_yields_ = 0;
  if (!(op.mask & bit))
    fail(FailureKind::kUndefinedBehaviour, op.file, op.line,
         "a warp function is called with a mask that does not name the calling lane",
         "the mask must hold exactly the lanes that reach this line");
  thread.op = &op;
  thread.file = op.file;
  thread.line = op.line;
  warp.ops[thread.linear % kWarpSize] = &op;
  warp.waiting |= bit;
  const unsigned members = op.mask & warp.present & ~warp.exited;
  if ((members & ~warp.waiting) == 0) {
    bool met = true;  // lanes inside another collective with another mask are not here yet
    for_each_lane(members, [&](int lane) { met &= warp.ops[lane]->mask == op.mask; });
    if (met) {
      complete(warp, warp_index, members, &thread);
      return nullptr;
    }
  }
  thread.state = State::kInCollective;
  *save = &thread.stack_pointer;
  Thread* next = pick();
  return next == &thread ? nullptr : next->stack_pointer;
}

/// Computes and lets the members continue; `last`, the running thread if it is one of them, needs no wake-up.
void BlockRunner::complete(Warp& warp, unsigned warp_index, unsigned members, Thread* last) {
  const WarpOp& first = *warp.ops[__builtin_ctz(members)];
  for_each_lane(members, [&](int lane) {
    const WarpOp& op = *warp.ops[lane];
    if (op.kind == first.kind && (op.line == first.line || op.kind == WarpKind::kSync)) return;
    fail(FailureKind::kUndefinedBehaviour, op.file, op.line,
         "lanes of one mask are in different warp functions: lane " + std::to_string(__builtin_ctz(members)) +
             " at " + first.file + ":" + std::to_string(first.line) + ", lane " + std::to_string(lane) +
             " at " + op.file + ":" + std::to_string(op.line),
         "all lanes named by the mask must reach the same call");
  });
  observe::warp_meets(warp_index, members, members == (warp.present & ~warp.exited));
  const observe::Silence computing;
  switch (first.kind) {
    case WarpKind::kSync:
      break;
    case WarpKind::kShuffle:
      shuffle(warp.ops, members);
      break;
    case WarpKind::kMatch:
      match(warp.ops, members);
      break;
    case WarpKind::kCollective:
      first.compute(warp.ops, members);
      break;
    case WarpKind::kMatrix:
      if (members != ~0u)
        fail(FailureKind::kUndefinedBehaviour, first.file, first.line,
             "a matrix instruction needs all 32 lanes of its warp; here are " +
                 std::to_string(__builtin_popcount(members)),
             "launch blocks of a multiple of 32 threads, and let no lane leave the kernel before");
      first.compute(warp.ops, members);
      break;
    default:
      vote(warp.ops, members, first.kind);
  }
  warp.waiting &= ~members;
  step_writes_.clear();
  const bool keep_together = schedule_ == Schedule::kWarp;
  Thread* lanes = &threads_[warp_index * kWarpSize];
  for_each_lane(members, [&](int lane) {
    Thread& member = lanes[lane];
    if (&member == last) return;
    member.state = State::kReady;
    if (keep_together)
      ready_.push_front(member.linear);
    else
      ready_.push_back(member.linear);
  });
}

/// A lane left the kernel: collectives that waited only for it may now be complete.
void BlockRunner::recheck_after_exit(unsigned warp_index) {
  Warp& warp = warps_[warp_index];
  for (unsigned left = warp.waiting; left;) {
    const unsigned mask = warp.ops[__builtin_ctz(left)]->mask;
    const unsigned members = mask & warp.present & ~warp.exited;
    bool met = (members & ~warp.waiting) == 0;
    if (met) for_each_lane(members, [&](int lane) { met &= warp.ops[lane]->mask == mask; });
    if (met) complete(warp, warp_index, members, nullptr);
    left &= ~(members | (1u << __builtin_ctz(left)));
  }
}

}  // namespace capstone_emu
