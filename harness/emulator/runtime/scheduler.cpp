#include "runtime/scheduler.h"

#include <sched.h>

#include <algorithm>
#include <cfenv>
#include <cstdio>
#include <deque>
#include <numeric>
#include <utility>

#include "runtime/fiber.h"
#include "runtime/shadow.h"
#include "runtime/time_limit.h"

namespace capstone_emu {

thread_local __constinit ThreadState thread_state{};
thread_local __constinit Index3 thread_index{};
thread_local __constinit Index3 block_index{};
thread_local __constinit Index3 block_dim{};
thread_local __constinit Index3 grid_dim{};

namespace {
constexpr unsigned kYieldsBetweenLooks = 64;
// How long waiting blocks may make no progress before more blocks start, and how much longer for each of
// them.
constexpr std::chrono::microseconds kPatience{5000}, kPatienceForEach{100};
constexpr unsigned kMostWaitingThreads = 144 * 1024;  // of an OS thread's blocks
// Barriers may be part of the waiting, as in `while (__syncthreads_and(flag == 0))`; but most loops with
// barriers do work.
constexpr unsigned kBarriersBetweenLooks = 64, kBarriersBetweenRequests = 1024;
constexpr std::chrono::milliseconds kPatienceWithBarriers{100};
}  // namespace

thread_local __constinit BlockRunner* g_runner = nullptr;

bool in_kernel() { return g_runner != nullptr; }

std::uint64_t Grid::permuted(std::uint64_t k, std::uint64_t count) const {
  switch (settings.schedule) {
    case Schedule::kReverse:
      return count - 1 - k;
    case Schedule::kRandom:
      return static_cast<std::uint64_t>((static_cast<unsigned __int128>(k) * stride + offset) % count);
    default:
      return k;
  }
}

Index3 Grid::block_at(std::uint64_t k) const {
  auto unravel = [](std::uint64_t i, const Index3& dim) {
    return Index3{static_cast<unsigned>(i % dim.x), static_cast<unsigned>(i / dim.x % dim.y),
                  static_cast<unsigned>(i / (static_cast<std::uint64_t>(dim.x) * dim.y))};
  };
  if (!clusters) return unravel(permuted(k, blocks), config.grid);
  const Index3 &c = config.cluster, &g = config.grid;
  const Index3 in = unravel(k % cluster_blocks, c);
  const Index3 at =
      unravel(permuted(k / cluster_blocks, blocks / cluster_blocks), {g.x / c.x, g.y / c.y, g.z / c.z});
  return {at.x * c.x + in.x, at.y * c.y + in.y, at.z * c.z + in.z};
}

std::uint64_t BlockRunner::random() {  // splitmix64
  std::uint64_t z = (random_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// ---- a grid, block by block -------------------------------------------------------------------------------

// Most launches have the block of the launch before: its threads are numbered already.
void BlockRunner::number_threads(const Index3& block) {
  const bool as_before = block.x == numbered_.x && block.y == numbered_.y && block.z == numbered_.z &&
                         schedule_ == numbered_for_;
  if (as_before && schedule_ != Schedule::kRandom) return;  // the random order was shuffled since
  numbered_ = block;
  numbered_for_ = schedule_;
  start_order_.resize(count_);
  std::iota(start_order_.begin(), start_order_.end(), 0u);
  if (schedule_ == Schedule::kReverse) std::reverse(start_order_.begin(), start_order_.end());
  Index3 index{0, 0, 0};
  for (unsigned i = 0; i < count_; ++i) {
    threads_[i].linear = static_cast<std::uint16_t>(i);
    threads_[i].index = index;
    if (++index.x < block.x) continue;
    index.x = 0;
    if (++index.y < block.y) continue;
    index.y = 0;
    ++index.z;
  }
}

void BlockRunner::prepare_for(Grid& grid) {
  grid_ = &grid;
  schedule_ = grid.settings.schedule;
  const LaunchConfig& config = grid.config;
  count_ = config.block.x * config.block.y * config.block.z;
  const unsigned warps = (count_ + kWarpSize - 1) / kWarpSize;
  if (threads_.size() < count_) threads_.resize(count_);
  if (copies_.size() < count_) copies_.resize(count_);
  if (multiply_groups_.size() < count_) multiply_groups_.resize(count_);
  if (warps_.size() < warps) warps_.resize(warps);
  at_barrier_.resize(ReadyQueue::kSize);
  ready_.reset();
  number_threads(config.block);
  if (std::exchange(copies_used_, false))
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      threads_[i].has_copies = false;
      copies_[i].clear();
    }
  if (grid.clusters) cluster_phases_.resize(count_);
  prepare_arena();
  block_dim = config.block;
  grid_dim = config.grid;
}

namespace {

// While it lives, this OS thread gets SIGFPE from an operation whose result is infinite or no number.
class ArithmeticTrap {
 public:
  explicit ArithmeticTrap(bool on) : on_(on) {
    if (!on_) return;
    std::feclearexcept(FE_ALL_EXCEPT);
    ::feenableexcept(kTrapped);
  }
  ~ArithmeticTrap() {
    if (on_) ::fedisableexcept(kTrapped);
  }
  ArithmeticTrap(const ArithmeticTrap&) = delete;
  ArithmeticTrap& operator=(const ArithmeticTrap&) = delete;

 private:
  static constexpr int kTrapped = FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO;
  bool on_;
};

}  // namespace

// Blocks that wait for others stand aside, and the OS thread goes round. Where none of them ends, twice as
// many may run at the same time: a barrier among all blocks of the grid ends when all have started. The
// blocks of a cluster start together.
void BlockRunner::run(Grid& grid) {
  using Clock = std::chrono::steady_clock;
  static thread_local std::vector<std::unique_ptr<BlockRunner>> more;
  prepare_thread_for_faults();
  const ArithmeticTrap trap(settings().trap);
  const unsigned threads = grid.config.block.x * grid.config.block.y * grid.config.block.z;
  std::vector<BlockRunner*> idle{this};
  std::vector<BlockRunner*>
      ended;  // blocks of clusters that still run: others may reach into their shared memory
  std::uint64_t next = 0,
                taken = 0;  // blocks that were taken from the grid and have not started: [next, taken)
  std::deque<BlockRunner*> aside;
  std::size_t together = 1, made = 0, turns = 0;
  auto since = Clock::now();
  prepare_for(grid);
  for (;;) {
    BlockRunner* runner = nullptr;
    if (next == taken && aside.size() < together && !grid.failed) {
      next = std::min(grid.next.fetch_add(grid.cluster_blocks), grid.blocks);
      taken = std::min(next + grid.cluster_blocks, grid.blocks);
    }
    if (next < taken && !grid.failed) {
      if (idle.empty()) {
        if (made == more.size()) more.push_back(std::make_unique<BlockRunner>());
        idle.push_back(more[made++].get());
        idle.back()->prepare_for(grid);
      }
      runner = idle.back();
      idle.pop_back();
      g_runner = runner;
      runner->run_block(next++);
    } else if (!aside.empty()) {
      runner = aside.front();
      aside.pop_front();
      if (aside.empty()) ::sched_yield();
      observe::pass_turn();
      g_runner = runner;
      runner->run_until_it_waits(std::exchange(runner->aside_, nullptr));
    } else {
      break;
    }
    if (!runner->aside_) {
      if (!runner->cluster_) {
        idle.push_back(runner);
      } else {
        ended.push_back(runner);
        if (runner->ends_cluster())
          for (auto it = ended.begin(); it != ended.end();) {
            const bool over = (*it)->cluster_ == runner->cluster_;
            if (over) idle.push_back(*it);
            it = over ? ended.erase(it) : it + 1;
          }
      }
      since = Clock::now();
      turns = 0;
      continue;
    }
    aside.push_back(runner);
    ++turns;
    // The instrumented build counts steps, not time, so that every run is the same.
    const bool patient = observe::kOn ? turns < 2 * aside.size()
                                      : Clock::now() - since < kPatience + aside.size() * kPatienceForEach;
    if (aside.size() < together || patient) continue;
    together = std::min<std::size_t>(2 * together, std::max(1u, kMostWaitingThreads / threads));
    since = Clock::now();
    turns = 0;
  }
  g_runner = nullptr;
}

/// Goes on with the block until it ends or stands aside.
void BlockRunner::run_until_it_waits(void* stack_pointer) {
  switch_stack(&main_stack_, stack_pointer);
  if (aside_) return;
  thread_ = nullptr;
  observe::block_ends(!grid_->failed);
  if (grid_->failed) {
    idle_ = all_;
    ready_.reset();
    for (const Fiber* fiber : all_) unpoison(fiber->stack, fiber->size);  // frames that were abandoned
  } else {
    check_red_zones();
  }
  leave_grid_barrier();
}

/// Blocks of a cooperative launch have an OS thread each, except those of a cluster.
bool BlockRunner::may_wait_aside() const { return cluster_ || !grid_->config.cooperative; }

/// Other blocks of this OS thread run first.
void BlockRunner::wait_aside() {
  const ThreadState state = thread_state;
  const Index3 index = thread_index;
  void* const observed = observe::block_stands_aside();
  switch_stack(&aside_, main_stack_);
  thread_state = state;
  thread_index = index;
  block_index = block_;
  observe::block_goes_on(observed);
  observe::thread_runs(thread_->linear);
  if (grid_->failed) leave_kernel();
}

void BlockRunner::run_block(std::uint64_t k) {
  const Index3& dim = grid_->config.grid;
  block_ = grid_->block_at(k);
  block_index = block_;
  use_arena();
  const std::uint64_t index = (static_cast<std::uint64_t>(block_.z) * dim.y + block_.y) * dim.x + block_.x;
  join_cluster(k);
  started_ = done_ = arrived_ = at_step_ = 0;
  step_writes_.clear();
  at_grid_ = false;
  if (std::exchange(named_used_, false))
    for (NamedBarrier& barrier : named_) {
      barrier.arrived = 0;
      barrier.waiting.clear();
    }
  if (std::exchange(multiply_groups_used_, false))
    for (std::vector<unsigned>& groups : multiply_groups_) groups.clear();
  tensor_.reset();
  tensor_queue_.reset();
  votes_ = {};
  fruitless_yields_ = barriers_ = 0;
  random_ = grid_->settings.seed * 0x2545f4914f6cdd1dull + index + 1;
  thread_state.epoch = ++epoch_;
  thread_state.spin = 0;
  observe::block_begins(*this, index, {arena_, arena_size_, statics_}, cluster_);
  begin_dynamic();
  publish_arena();
  thread_state.row_end = 0;
  rows_ = !observe::kOn && !cluster_ && (schedule_ == Schedule::kForward || schedule_ == Schedule::kWarp);
  states_unset_ = rows_;
  if (!rows_) set_states(0);
  for (unsigned first = 0, w = 0; first < count_; first += kWarpSize, ++w) {
    const unsigned lanes = count_ - first;
    warps_[w].present = lanes >= kWarpSize ? ~0u : (1u << lanes) - 1;
    warps_[w].exited = warps_[w].waiting = warps_[w].multiplies = 0;
  }
  if (schedule_ == Schedule::kRandom)
    for (unsigned i = count_ - 1; i > 0; --i) std::swap(start_order_[i], start_order_[random() % (i + 1)]);
  Thread* first = next_unstarted();
  start_on(*first, take_fiber());
  enter(*first);
  run_until_it_waits(first->stack_pointer);
}

// ---- fibers -----------------------------------------------------------------------------------------------

Fiber* BlockRunner::take_fiber() {
  if (idle_.empty()) {
    Fiber* fresh = allocate_fiber(all_.size());
    if (!fresh)
      fail(FailureKind::kLaunchError, nullptr, 0, "no memory left for the stacks of the emulated threads");
    all_.push_back(fresh);
    return fresh;
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void fiber_main() { g_runner->fiber_loop(); }

void BlockRunner::start_on(Thread& thread, Fiber* fiber) {
  thread.fiber = fiber;
  thread.stack_pointer = prepare_stack(*fiber, fiber_main);
}

/// The first `ended` threads have ended, and no other one has begun.
void BlockRunner::set_states(unsigned ended) {
  for (unsigned i = 0; i < count_; ++i) {
    threads_[i].state = i < ended ? State::kDone : State::kNotStarted;
    threads_[i].fiber = nullptr;
  }
}

// ---- rows: threads that end one after another, without a look at the scheduler between them ---------------

/// From the running thread on, if all before it have ended: then none waits for one of the row to end.
inline void BlockRunner::begin_row() {
  if (rows_ && started_ == done_ + 1) thread_state.row_end = count_;
}

/// A thread of the row calls the runtime: those before it have ended, and it is the one that runs.
void BlockRunner::settle() {
  thread_state.row_end = 0;
  const unsigned first = thread_->linear, running = thread_state.linear;
  Fiber* const fiber = thread_->fiber;
  if (std::exchange(states_unset_, false)) set_states(running);
  for (unsigned i = first; i < running; ++i) {
    threads_[i].state = State::kDone;
    warps_[i / kWarpSize].exited |= 1u << (i % kWarpSize);
  }
  if (first < running) fruitless_yields_ = barriers_ = 0;
  done_ += running - first;
  started_ = running + 1;
  thread_ = &threads_[running];
  thread_->fiber = fiber;
  thread_->state = State::kRunning;
}

/// The whole block was one row, of which the runtime has seen nothing.
inline bool BlockRunner::ended_in_one_row() {
  if (!states_unset_ || thread_state.linear + 1 != count_) return false;
  thread_state.row_end = 0;
  started_ = done_ = count_;
  return true;
}

/// The instrumented build has no rows. There, too, a thread that ends needs few questions if nothing waits
/// for it and it is not the last of its warp. @return true if the next one runs now
inline bool BlockRunner::goes_on_quickly() {
  if (!observe::kOn || arrived_ || cluster_ || thread_->has_copies || started_ == count_ || !ready_.empty())
    return false;
  Warp& warp = warps_[thread_->linear / kWarpSize];
  const unsigned exited = warp.exited | 1u << (thread_->linear % kWarpSize);
  if (warp.waiting || exited == warp.present) return false;
  warp.exited = exited;
  thread_->state = State::kDone;
  ++done_;
  fruitless_yields_ = barriers_ = 0;
  Thread& next = threads_[start_order_[started_++]];
  next.fiber = thread_->fiber;
  enter(next);
  return true;
}

// Runs threads on one stack for as long as they end without waiting: a kernel without barriers never
// switches.
void BlockRunner::fiber_loop() {
  void (*const body)(void*) = grid_->body;
  void* const arguments = grid_->arguments;
  for (;;) {
    begin_row();
    body(arguments);
    if (goes_on_quickly()) continue;
    Fiber* fiber = thread_->fiber;
    Thread* next = nullptr;
    if (!ended_in_one_row()) {
      if (thread_state.row_end) settle();
      finish_thread();
      next = take_ready();
    }
    if (!next) {
      next = next_unstarted();
      if (next) {
        next->fiber = fiber;
        enter(*next);
        continue;
      }
      if (done_ == count_) {
        idle_.push_back(fiber);
        void* abandoned;
        switch_stack(&abandoned, main_stack_);
        __builtin_unreachable();
      }
      if (!release_the_waiting()) report_deadlock();
      next = take_ready();
    }
    idle_.push_back(fiber);
    enter(*next);
    void* abandoned;
    switch_stack(&abandoned, next->stack_pointer);
    __builtin_unreachable();
  }
}

inline void BlockRunner::finish_thread() {
  Thread& thread = *thread_;
  if (thread.has_copies) {
    async_commit();
    async_wait(0);
    bulk_commit();
    bulk_wait(0);
  }
  if (cluster_) leave_cluster();
  thread.state = State::kDone;
  ++done_;
  if (done_ == count_) end_tensor_memory();
  const unsigned warp = thread.linear / kWarpSize;
  warps_[warp].exited |= 1u << (thread.linear % kWarpSize);
  if (warps_[warp].exited == warps_[warp].present) observe::warp_ends(warp);
  if (arrived_ && arrived_ + done_ == count_) release_barrier();
  if (warps_[warp].waiting) recheck_after_exit(warp);
  fruitless_yields_ = barriers_ = 0;
}

/// No thread is ready: starts a thread that has not run yet, or lets the ones at __activemask() go.
Thread* BlockRunner::pick_cold() {
  for (;;) {
    Thread* next = take_ready();
    if (!next && (next = next_unstarted())) start_on(*next, take_fiber());
    if (next) {
      enter(*next);
      return next;
    }
    if (!release_the_waiting()) report_deadlock();
  }
}

void BlockRunner::switch_from(Thread& thread) {
  Thread* next = pick();
  if (next != &thread) switch_stack(&thread.stack_pointer, next->stack_pointer);
}

/// No thread of the block has ended or passed a barrier for a while: it may wait for another block.
void BlockRunner::look_for_standstill() {
  if (release_steps()) return;
  if (may_wait_aside()) return wait_aside();
  if (observe::kOn) {  // counts steps, not time, so that every run is the same
    if (ask_for_another_runner(*grid_)) observe::await_newcomers(1);
    return observe::pass_turn();
  }
  const auto now = std::chrono::steady_clock::now();
  if (fruitless_yields_ == kYieldsBetweenLooks) {
    standstill_since_ = now;
  } else if (now - standstill_since_ > kPatience) {
    standstill_since_ = now;
    ask_for_another_runner(*grid_);
  }
}

/// The block passed a barrier, and no thread has ended for a while.
void BlockRunner::look_for_rounds() {
  if (grid_->failed) leave_kernel();
  if (grid_->next.load() >= grid_->blocks && !observe::kOn) return;
  if (observe::kOn) {
    if (barriers_ % kBarriersBetweenRequests == 0 && ask_for_another_runner(*grid_))
      observe::await_newcomers(1);
    return observe::pass_turn();
  }
  const auto now = std::chrono::steady_clock::now();
  if (barriers_ == kBarriersBetweenLooks) {
    rounds_since_ = now;
  } else if (now - rounds_since_ > kPatienceWithBarriers) {
    rounds_since_ = now;
    ask_for_another_runner(*grid_);
  }
}
void BlockRunner::count_barrier() {
  if (++barriers_ % kBarriersBetweenLooks == 0) look_for_rounds();
}

// A thread that spins (atomics, fences, __nanosleep) lets the others of its block run; a block that spins
// alone waits for another block, which may need a separate OS thread to run.
void BlockRunner::yield() {
  if (grid_->failed) leave_kernel();
  if (__builtin_expect(time_out_phase() != TimeOutPhase::kNone, 0)) leave_at_time_limit(nullptr);
  Thread& thread = *thread_;
  if (++fruitless_yields_ % kYieldsBetweenLooks == 0) look_for_standstill();
  if (ready_.empty() && started_ == count_) {
    if (cluster_) return wait_aside();
    observe::pass_turn();
    ::sched_yield();
    return;
  }
  make_ready(thread);
  if (Thread* fresh = next_unstarted()) {
    start_on(*fresh, take_fiber());
    make_ready(*fresh);
  }
  switch_from(thread);
}

void yield_to_others() {
  if (BlockRunner* const runner = BlockRunner::current()) runner->yield();
}

// ---- __activemask -----------------------------------------------------------------------------------------

unsigned BlockRunner::active_mask(const char* file, int line) {
  Thread& thread = *thread_;
  thread.state = State::kAtActiveMask;
  thread.file = file;
  thread.line = line;
  switch_from(thread);
  return thread.active;
}

unsigned active_mask(const char* file, int line) {
  BlockRunner* const runner = BlockRunner::current();
  return runner ? runner->active_mask(file, line) : 1u;
}

/// No other thread can run: the threads of a warp that wait at one __activemask() are converged there.
bool BlockRunner::release_active_masks() {
  bool released = false;
  for (unsigned first = 0; first < count_; first += kWarpSize) {
    unsigned mask = 0;
    int line = -1;
    for (unsigned i = first; i < count_ && i < first + kWarpSize; ++i) {
      const Thread& thread = threads_[i];
      if (thread.state != State::kAtActiveMask || (mask && thread.line != line)) continue;
      line = thread.line;
      mask |= 1u << (i - first);
    }
    for (unsigned rest = mask; rest; rest &= rest - 1) {
      Thread& thread = threads_[first + static_cast<unsigned>(__builtin_ctz(rest))];
      thread.active = mask;
      make_ready(thread);
      released = true;
    }
  }
  return released;
}

// ---- lock step --------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostStepWrites = 256;
std::atomic<bool> g_told_of_lock_step;

/// Says once that the program counts on lock step.
void warn_of_lock_step(const LaunchConfig& config, const char* file, int line) {
  if (g_told_of_lock_step.exchange(true)) return;
  std::fflush(stdout);
  std::fprintf(
      stderr,
      "capstone: %s:%d: warning: the kernel reads volatile shared memory that another lane of the warp "
      "wrote, without __syncwarp() between the two\n"
      "  kernel %s launched at %s:%d\n"
      "  hint: it counts on the lanes of a warp running in lock step. They do so here, but GPUs since "
      "Volta do not promise it: put __syncwarp() between the load and the store, and between the steps\n",
      file, line, config.kernel, config.file, config.line);
}

}  // namespace

void BlockRunner::lock_step(const volatile void* object, unsigned place, Step step, const char* file,
                            int line) {
  if (!owns(const_cast<const void*>(object))) return;
  Thread& thread = *thread_;
  thread.state = State::kAtStep;
  thread.active = place;
  thread.file = file;
  thread.line = line;
  ++at_step_;
  switch_from(thread);
  if (step == Step::kWrite && step_writes_.size() < kMostStepWrites)
    step_writes_.emplace_back(object, thread.linear);
  if (step != Step::kRead || g_told_of_lock_step) return;
  const unsigned lane = thread.linear % kWarpSize, warp = thread.linear - lane;
  for (const auto& [written, by] : step_writes_)
    if (written == object && by != thread.linear && by - warp < kWarpSize)
      return warn_of_lock_step(grid_->config, file, line);
}

void lock_step(const volatile void* object, unsigned place, Step step, const char* file, int line) {
  if (BlockRunner* const runner = BlockRunner::current()) runner->lock_step(object, place, step, file, line);
}

/// No other thread can run: of each warp, the lanes at the first place in the source go on. So lanes meet
/// again behind a branch or a loop, as before Volta.
bool BlockRunner::release_steps() {
  if (!at_step_) return false;
  for (unsigned first = 0; first < count_; first += kWarpSize) {
    const unsigned end = std::min(count_, first + kWarpSize);
    unsigned place = ~0u;
    for (unsigned i = first; i < end; ++i)
      if (threads_[i].state == State::kAtStep) place = std::min(place, threads_[i].active);
    for (unsigned i = first; i < end; ++i)
      if (threads_[i].state == State::kAtStep && threads_[i].active == place) {
        make_ready(threads_[i]);
        --at_step_;
      }
  }
  return true;
}

// ---- failures ---------------------------------------------------------------------------------------------

Failure BlockRunner::describe(FailureKind kind, const char* file, int line, std::string message,
                              std::string hint, int cuda_error) const {
  const LaunchConfig& config = grid_->config;
  Failure failure{kind,
                  std::move(message),
                  config.kernel,
                  std::string(config.file) + ":" + std::to_string(config.line),
                  std::array<unsigned, 3>{block_.x, block_.y, block_.z},
                  std::nullopt,
                  file ? file : "",
                  line,
                  std::move(hint),
                  cuda_error};
  if (thread_) failure.thread = std::array<unsigned, 3>{thread_->index.x, thread_->index.y, thread_->index.z};
  return failure;
}

void BlockRunner::fail(FailureKind kind, const char* file, int line, std::string message, std::string hint,
                       int cuda_error) {
  if (thread_state.row_end) settle();
  record_failure(describe(kind, file, line, std::move(message), std::move(hint), cuda_error));
  leave_kernel();
}

void BlockRunner::leave_kernel() {
  grid_->failed = true;
  thread_state.row_end = 0;
  void* abandoned;
  switch_stack(&abandoned, main_stack_);
  __builtin_unreachable();
}

bool BlockRunner::inside_stack_guard(const void* address) const {
  const char* p = static_cast<const char*>(address);
  for (const Fiber* fiber : all_)
    if (p < fiber->stack && p >= fiber->stack - kStackGuard) return true;
  return false;
}

bool BlockRunner::on_fiber(const void* stack_pointer) const {
  const char* p = static_cast<const char*>(stack_pointer);
  for (const Fiber* fiber : all_)
    if (p >= fiber->stack && p < fiber->stack + fiber->size) return true;
  return false;
}

std::string BlockRunner::waiting_summary() const {
  auto what = [](State state) {
    switch (state) {
      case State::kAtBarrier:
        return "__syncthreads()";
      case State::kInCollective:
        return "a warp collective";
      case State::kAtActiveMask:
        return "__activemask()";
      case State::kAtStep:
        return "an access in lock step";
      default:
        return "nothing";
    }
  };
  std::string text;
  int groups = 0;
  for (unsigned i = 0; i < count_;) {
    const Thread& first = threads_[i];
    unsigned end = i;
    auto same = [&](const Thread& t) {
      return t.state == first.state &&
             (first.state == State::kDone || (t.line == first.line && t.file == first.file));
    };
    while (end < count_ && same(threads_[end])) ++end;
    if (++groups > 6) return text + "; …";
    char place[256];
    if (first.state == State::kDone)
      std::snprintf(place, sizeof place, "%u from (%u,%u,%u) left the kernel", end - i, first.index.x,
                    first.index.y, first.index.z);
    else
      std::snprintf(place, sizeof place, "%u from (%u,%u,%u) wait at %s in %s:%d", end - i, first.index.x,
                    first.index.y, first.index.z, what(first.state), first.file, first.line);
    text += (text.empty() ? "" : "; ") + std::string(place);
    i = end;
  }
  return text;
}

void BlockRunner::report_deadlock() {
  const Thread* blamed = nullptr;
  for (unsigned i = 0; i < count_ && !blamed; ++i)
    if (threads_[i].state == State::kInCollective) blamed = &threads_[i];
  for (unsigned i = 0; i < count_ && !blamed; ++i)
    if (threads_[i].state == State::kAtBarrier) blamed = &threads_[i];
  fail(FailureKind::kUndefinedBehaviour, blamed ? blamed->file : nullptr, blamed ? blamed->line : 0,
       "deadlock: no thread of the block can go on; threads: " + waiting_summary(),
       "every thread of the block (or every lane of the mask) must reach the same synchronisation");
}

}  // namespace capstone_emu
