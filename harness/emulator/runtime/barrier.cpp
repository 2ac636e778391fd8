// __syncthreads() and its voting variants, named barriers, and the barrier of a cooperative grid.
#include "runtime/scheduler.h"

namespace capstone_emu {

namespace {
constexpr std::chrono::milliseconds kLookAgain{20};
}  // namespace

int BlockRunner::barrier_result(BarrierKind kind) const {
  switch (kind) {
    case BarrierKind::kCount:
      return released_.count;
    case BarrierKind::kAnd:
      return released_.all;
    case BarrierKind::kOr:
      return released_.any;
    case BarrierKind::kSync:
    case BarrierKind::kGrid:
      break;
  }
  return 0;
}

/// Threads that wait at different lines are no error, but a race that follows has its cause there.
void BlockRunner::tell_of_split() const {
  const Thread& first = threads_[at_barrier_[0]];
  unsigned together = 0;
  const Thread* other = nullptr;
  for (unsigned i = 0; i < arrived_; ++i) {
    const Thread& thread = threads_[at_barrier_[i]];
    if (thread.line == first.line)
      ++together;
    else if (!other)
      other = &thread;
  }
  if (other) observe::barrier_splits({first.file, first.line, together, arrived_, other->line});
}

/// Every thread that waits becomes ready in the order of arrival: the lists are swapped when nothing else is
/// ready. The threads' states follow when they run; until then nothing reads them.
void BlockRunner::release_barrier() {
  if (at_grid_) meet_the_grid();
  if constexpr (observe::kOn) tell_of_split();
  observe::barrier_releases();
  if (ready_.empty())
    ready_.adopt(at_barrier_, arrived_);
  else
    for (unsigned i = 0; i < arrived_; ++i) ready_.push_back(at_barrier_[i]);
  released_ = votes_;
  votes_ = {};
  arrived_ = 0;
  step_writes_.clear();
}

// Threads that meet at different __syncthreads() lines pass: warp-specialised kernels do this, and the
// hardware counts arrivals only. Threads that left the kernel count as arrived, as they do on hardware.
inline void* BlockRunner::barrier(BarrierKind kind, int predicate, const char* file, int line, void*** save) {
  Thread& thread = *thread_;
  thread.state = State::kAtBarrier;
  thread.file = file;
  thread.line = line;
  fruitless_yields_ = 0;
  if (kind == BarrierKind::kGrid) {
    if (!grid_->config.cooperative)
      fail(FailureKind::kUndefinedBehaviour, file, line,
           "grid-wide synchronisation in a launch that is not cooperative",
           "launch the kernel with cudaLaunchCooperativeKernel, which makes all its blocks run at the same "
           "time");
    at_grid_ = true;
  } else if (kind != BarrierKind::kSync) {
    votes_.count += predicate != 0;
    votes_.all = votes_.all && predicate;
    votes_.any = votes_.any || predicate;
  }
  at_barrier_[arrived_++] = thread.linear;
  if (arrived_ + done_ == count_) {
    release_barrier();
    count_barrier();
  }
  *save = &thread.stack_pointer;
  Thread* next = pick();
  return next == &thread ? nullptr : next->stack_pointer;
}

/// __syncthreads() of a thread that is not the last one, while others are ready: what nearly every call is.
/// It calls nothing, so that it touches few lines of the stack. @return null: it is not so
inline void* BlockRunner::quick_barrier(BarrierKind kind, const char* file, int line, void*** save) {
  if (kind != BarrierKind::kSync || arrived_ + 1 + done_ == count_ || ready_.empty() ||
      schedule_ == Schedule::kRandom)
    return nullptr;
  Thread& thread = *thread_;
  thread.state = State::kAtBarrier;
  thread.file = file;
  thread.line = line;
  fruitless_yields_ = 0;
  at_barrier_[arrived_++] = thread.linear;
  *save = &thread.stack_pointer;
  Thread& next = threads_[ready_.pop_front()];
  enter(next);
  return next.stack_pointer;
}

__attribute__((noinline)) static void* slow_barrier(BarrierKind kind, int predicate, const char* file,
                                                    int line, void*** save) {
  return BlockRunner::current()->barrier(kind, predicate, file, line, save);
}

void* arrive_at_barrier(BarrierKind kind, int predicate, const char* file, int line, void*** save) {
  observe::barrier_arrives(__builtin_return_address(0));
  if (!thread_state.row_end)
    if (void* const to = g_runner->quick_barrier(kind, file, line, save)) return to;
  return slow_barrier(kind, predicate, file, line, save);
}
int barrier_result(BarrierKind kind) { return BlockRunner::current()->barrier_result(kind); }

// ---- the grid ---------------------------------------------------------------------------------------------

/// Every thread of the block has arrived. Each block of a cooperative launch has an OS thread, which waits.
void BlockRunner::meet_the_grid() {
  at_grid_ = false;
  GridBarrier& barrier = grid_->barrier;
  std::unique_lock lock(barrier.mutex);
  const std::uint64_t phase = barrier.phase;
  if (++barrier.arrived == grid_->blocks) {
    observe::grid_meets();
    barrier.arrived = 0;
    ++barrier.phase;
    barrier.changed.notify_all();
    return;
  }
  auto over = [&] {
    return barrier.phase != phase || barrier.arrived + barrier.left == grid_->blocks || grid_->failed;
  };
  while (cluster_ && !over()) {  // the cluster's other blocks need this OS thread
    lock.unlock();
    wait_aside();
    lock.lock();
  }
  if (observe::kOn) {  // the others run in turn, in the same order every time
    while (!over()) {
      lock.unlock();
      observe::pass_turn();
      lock.lock();
    }
  }
  // a block that fails elsewhere does not notify
  while (!barrier.changed.wait_for(lock, kLookAgain, over)) {
  }
  const std::uint64_t left = barrier.left;
  lock.unlock();
  if (barrier.phase != phase) return;
  if (grid_->failed) leave_kernel();
  fail(FailureKind::kUndefinedBehaviour, thread_->file, thread_->line,
       "deadlock: the grid waits for " + std::to_string(left) + " blocks that left the kernel",
       "every block of the grid must reach grid.sync()");
}

void BlockRunner::leave_grid_barrier() {
  if (!grid_->config.cooperative) return;
  std::lock_guard lock(grid_->barrier.mutex);
  ++grid_->barrier.left;
  grid_->barrier.changed.notify_all();
}

// ---- named barriers ---------------------------------------------------------------------------------------

void* BlockRunner::named_barrier(unsigned id, unsigned threads, bool wait, const char* file, int line,
                                 void*** save) {
  if (id >= kNamedBarriers)
    fail(FailureKind::kUndefinedBehaviour, file, line, "a block has no barrier " + std::to_string(id));
  if (threads == 0) threads = (count_ + kWarpSize - 1) / kWarpSize * kWarpSize;
  if (threads % kWarpSize)
    fail(FailureKind::kUndefinedBehaviour, file, line,
         "a barrier's number of threads must be a multiple of 32, not " + std::to_string(threads));
  NamedBarrier& barrier = named_[id];
  named_used_ = true;
  observe::arrives_at(id, wait);
  if (barrier.arrived && barrier.expected != threads)
    fail(FailureKind::kUndefinedBehaviour, file, line,
         "barrier " + std::to_string(id) + " is used for " + std::to_string(threads) +
             " threads here and for " + std::to_string(barrier.expected) + " elsewhere at the same time",
         "all threads that meet at a barrier must name the same number");
  fruitless_yields_ = 0;
  barrier.expected = threads;
  Thread& thread = *thread_;
  // Threads beyond the block's last, partial warp count as present.
  const unsigned full = threads < count_ ? threads : count_;
  const bool last = ++barrier.arrived == full;
  if (last) {
    observe::threads_meet(id);
    for (std::uint32_t waiting : barrier.waiting) make_ready(threads_[waiting]);
    barrier.waiting.clear();
    barrier.arrived = 0;
  }
  if (last || !wait) return nullptr;
  thread.state = State::kAtBarrier;
  thread.file = file;
  thread.line = line;
  barrier.waiting.push_back(thread.linear);
  *save = &thread.stack_pointer;
  Thread* next = pick();
  return next == &thread ? nullptr : next->stack_pointer;
}

char* BlockRunner::scratch() {
  scratch_.resize(kMaxThreads * kScratchPerThread);
  return scratch_.data();
}
char* block_scratch() { return BlockRunner::current()->scratch(); }
bool launched_cooperatively() { return BlockRunner::current()->grid().config.cooperative; }

void named_barrier(unsigned id, unsigned threads, const char* file, int line) {
  observe::barrier_arrives(__builtin_return_address(0));
  void** save;
  if (void* to = BlockRunner::current()->named_barrier(id, threads, true, file, line, &save))
    switch_stack(save, to);
}
void named_barrier_arrive(unsigned id, unsigned threads, const char* file, int line) {
  void** save;
  BlockRunner::current()->named_barrier(id, threads, false, file, line, &save);
}

}  // namespace capstone_emu
