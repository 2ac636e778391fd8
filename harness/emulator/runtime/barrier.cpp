// __syncthreads() and its voting variants.
#include "harness/emulator/runtime/scheduler.h"

namespace capstone_emu {

void grid_barrier(const char* file, int line) {
  not_judgeable(file, line, "grid-wide synchronisation has no CPU implementation; run it on a GPU");
}

int BlockRunner::barrier_result(BarrierKind kind) const {
  switch (kind) {
    case BarrierKind::kCount: return released_.count;
    case BarrierKind::kAnd: return released_.all;
    case BarrierKind::kOr: return released_.any;
    case BarrierKind::kSync: break;
  }
  return 0;
}

/// Every thread that waits becomes ready in the order of arrival: the lists are swapped when nothing else is ready.
/// The threads' states follow when they run; until then nobody looks at them.
void BlockRunner::release_barrier() {
  observe::barrier_releases();
  if (ready_.empty())
    ready_.adopt(at_barrier_, arrived_);
  else
    for (unsigned i = 0; i < arrived_; ++i) ready_.push_back(at_barrier_[i]);
  released_ = votes_;
  votes_ = {};
  arrived_ = 0;
}

// Threads that meet at different __syncthreads() lines are let through: warp-specialised kernels do that and hardware
// counts arrivals only. Threads that left the kernel count as arrived, as they do on hardware.
inline void* BlockRunner::barrier(BarrierKind kind, int predicate, const char* file, int line, void*** save) {
  Thread& thread = *thread_;
  thread.state = State::kAtBarrier;
  thread.file = file;
  thread.line = line;
  fruitless_yields_ = 0;
  if (kind != BarrierKind::kSync) {
    votes_.count += predicate != 0;
    votes_.all = votes_.all && predicate;
    votes_.any = votes_.any || predicate;
  }
  at_barrier_[arrived_++] = thread.linear;
  if (arrived_ + done_ == count_) release_barrier();
  *save = &thread.stack_pointer;
  Thread* next = pick();
  return next == &thread ? nullptr : next->stack_pointer;
}

void* arrive_at_barrier(BarrierKind kind, int predicate, const char* file, int line, void*** save) {
  observe::barrier_arrives(__builtin_return_address(0));
  return BlockRunner::current()->barrier(kind, predicate, file, line, save);
}
int barrier_result(BarrierKind kind) { return BlockRunner::current()->barrier_result(kind); }

}  // namespace capstone_emu
