#pragma once
// A BlockRunner runs blocks one after another; the CUDA threads of a block are fibers. An OS thread has one,
// and more while blocks wait for each other: a block that spins gives the OS thread to the next one.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "include/capstone_emulator/core.h"
#include "runtime/failure.h"
#include "runtime/observe.h"

namespace capstone_emu {

/// In which order threads run. Async copies complete late under kForward and kRandom, early under the other
/// two.
enum class Schedule { kForward, kReverse, kRandom, kWarp };

struct RunSettings {
  Schedule schedule = Schedule::kForward;
  std::uint64_t seed = 0;
  bool trap = false;  ///< kernels end at the first operation whose result is infinite or no number
  bool copies_early() const { return schedule == Schedule::kReverse || schedule == Schedule::kWarp; }
};
RunSettings& settings();

// The built-in variables; the names are those under which capstone_emulator/execution.h finds them.
extern thread_local __constinit Index3 thread_index __asm__("capstone_emu_thread_index") CAPSTONE_TLS;
extern thread_local __constinit Index3 block_index __asm__("capstone_emu_block_index") CAPSTONE_TLS;
extern thread_local __constinit Index3 block_dim __asm__("capstone_emu_block_dim") CAPSTONE_TLS;
extern thread_local __constinit Index3 grid_dim __asm__("capstone_emu_grid_dim") CAPSTONE_TLS;

inline constexpr unsigned kMaxThreads = 1024;  // in a block
inline constexpr unsigned kWarpSize = 32;
inline constexpr std::size_t kStaticSharedLimit = 48 * 1024;
inline constexpr std::size_t kRedZone = 64;  // [B] before and after each shared variable
inline constexpr int kPoison = 0xFF;         // as a float or half: NaN

enum class State : std::uint8_t {
  kNotStarted,
  kReady,
  kRunning,
  kAtBarrier,
  kInCollective,
  kAtActiveMask,
  kAtStep,
  kDone
};

/// A stack. It serves one CUDA thread after another.
struct Fiber {
  char* stack = nullptr;
  std::size_t size = 0;
  // [B] offset of the top, so that equal frames of different fibers do not share a cache set
  unsigned colour = 0;
};

/// One CUDA thread: one cache line.
struct alignas(64) Thread {
  void* stack_pointer;
  Fiber* fiber;
  WarpOp* op;        // while kInCollective
  const char* file;  // where it waits
  Index3 index;
  int line;
  unsigned active;  // result of __activemask(); while kAtStep, its place in the source
  std::uint16_t linear;
  State state;
  bool has_copies;  // async copies were issued and not all waited for
};
static_assert(sizeof(Thread) == 64);

struct Warp {
  unsigned present, exited, waiting;  // lane masks
  WarpOp* ops[kWarpSize];
  unsigned multiplies;  // wgmma that it has done
};

/// A ring of thread numbers that are ready to run.
class ReadyQueue {
 public:
  static constexpr std::size_t kSize = kMaxThreads + 1;
  void reset() {
    ring_.resize(kSize);
    head_ = tail_ = 0;
  }
  bool empty() const { return head_ == tail_; }
  void push_back(std::uint32_t thread) {
    ring_[tail_] = thread;
    tail_ = next(tail_);
  }
  void push_front(std::uint32_t thread) {
    head_ = (head_ ? head_ : kSize) - 1;
    ring_[head_] = thread;
  }
  std::uint32_t pop_front() {
    const std::uint32_t thread = ring_[head_];
    head_ = next(head_);
    return thread;
  }
  /// Takes the waiting list over as it is, in O(1). Only when empty, and if it has kSize elements.
  void adopt(std::vector<std::uint32_t>& waiting, unsigned count) {
    std::swap(ring_, waiting);
    head_ = 0;
    tail_ = count;
  }
  std::size_t size() const { return tail_ >= head_ ? tail_ - head_ : tail_ + kSize - head_; }
  /// Brings the k-th element to the front by swapping.
  void bring_to_front(std::size_t k) {
    std::size_t i = head_ + k;
    if (i >= kSize) i -= kSize;
    std::swap(ring_[head_], ring_[i]);
  }

 private:
  static std::size_t next(std::size_t i) { return i + 1 == kSize ? 0 : i + 1; }
  std::vector<std::uint32_t> ring_;
  std::size_t head_ = 0, tail_ = 0;
};

struct AsyncCopy {
  void* to;
  const void* from;
  unsigned bytes, zero_filled;
};
/// Copies of one thread: groups already committed, and the open one.
struct CopyQueue {
  std::vector<std::vector<AsyncCopy>> committed;
  std::vector<AsyncCopy> open;
  std::vector<std::vector<std::function<void()>>> committed_stores;  // bulk copies to global memory
  std::vector<std::function<void()>> open_stores;
  void clear() {
    committed.clear();
    open.clear();
    committed_stores.clear();
    open_stores.clear();
  }
};

/// A bulk copy that reports to an mbarrier.
struct BulkLoad {
  const std::uint64_t* barrier;
  std::function<void()> perform;
};

/// Barrier 1 … 15 of a block, and 0 when only some of its threads use it.
struct NamedBarrier {
  unsigned arrived = 0, expected = 0;
  std::vector<std::uint32_t> waiting;
};
inline constexpr unsigned kNamedBarriers = kTileBarriers + kMaxThreads / (2 * kWarpSize),
                          kMaxClusterBlocks = 16;

class TensorMemory;
struct TensorQueue;

/// Blocks that run at the same time, in turns on one OS thread. Its barrier counts threads; those that left
/// count as arrived.
struct Cluster {
  unsigned arrived = 0, left = 0;
  std::uint64_t phase = 0;
  char* arenas[kMaxClusterBlocks] = {};
  unsigned ended = 0, ended_mask = 0;  // blocks, and which
  std::shared_ptr<TensorMemory> tensor[kMaxClusterBlocks];
  std::shared_ptr<TensorQueue> tensor_queue;
};
/// Where the blocks of a cooperative launch meet.
struct GridBarrier {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t arrived = 0, left = 0, phase = 0;
};

/// A launch from a kernel.
struct Child {
  LaunchConfig config;
  void (*body)(void*);
  std::unique_ptr<void, void (*)(void*)> arguments;
};

/// One launch that is being executed.
struct Grid {
  LaunchConfig config;
  void (*body)(void*);
  void* arguments;
  RunSettings settings;
  std::uint64_t blocks = 0;
  // kRandom: the k-th block to run is (k * stride + offset) mod blocks
  std::uint64_t stride = 1, offset = 0;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  GridBarrier barrier{};
  unsigned cluster_blocks = 1;            // blocks in a cluster
  std::unique_ptr<Cluster[]> clusters{};  // null without clusters
  // x | y << 16 | z << 32, from __cluster_dims__: start again with it
  std::atomic<std::uint64_t> wanted_cluster{0};
  std::mutex children_mutex{};
  std::vector<Child> children{};  // run when the grid has ended
  std::uint64_t permuted(std::uint64_t k, std::uint64_t count) const;
  /// Takes a cluster that has not started, for a block that runs already. @return its first block
  std::optional<Index3> cancel_next() {
    const std::uint64_t k = next.fetch_add(cluster_blocks);
    return k < blocks ? std::optional(block_at(k)) : std::nullopt;
  }
  /// The k-th block to run. Blocks of a cluster follow each other, so that all of them get a thread of the
  /// pool.
  Index3 block_at(std::uint64_t k) const;
};

class BlockRunner;
extern thread_local __constinit BlockRunner* g_runner CAPSTONE_TLS;

class BlockRunner {
 public:
  /// The runner of the calling OS thread while it executes a kernel; null in host code. It knows which thread
  /// runs; g_runner itself may be behind.
  static BlockRunner* current() {
    if (thread_state.row_end) g_runner->settle();
    return g_runner;
  }

  /// Runs blocks of `grid` until there are none left. Called on an ordinary stack.
  void run(Grid& grid);

  // --- requests of the running CUDA thread ---
  void* barrier(BarrierKind kind, int predicate, const char* file, int line, void*** save);
  void* quick_barrier(BarrierKind kind, const char* file, int line, void*** save);
  int barrier_result(BarrierKind kind) const;
  void* collective(WarpOp& op, void*** save);
  unsigned active_mask(const char* file, int line);
  void lock_step(const volatile void* object, unsigned place, Step step, const char* file, int line);
  void yield();
  void begin_slot(const SharedSlot& slot);
  std::size_t matrix_offset(std::uint32_t address) const;
  CopyQueue& copies() { return copies_[thread_->linear]; }
  /// The running thread has issued async copies.
  void note_copies() { thread_->has_copies = copies_used_ = true; }
  void* named_barrier(unsigned id, unsigned threads, bool wait, const char* file, int line, void*** save);
  Cluster& cluster(const char* what);
  ClusterView cluster_view() const;
  char* scratch();
  std::uint64_t& cluster_phase() { return cluster_phases_[thread_->linear]; }
  void cluster_arrive();
  std::vector<BulkLoad>& bulk_loads() { return bulk_loads_; }
  /// Tensor memory of this block, or of another one of its cluster; the work on it that is still to be done.
  TensorMemory& tensor_memory(unsigned rank);
  TensorQueue& tensor_queue();
  bool has_tensor_queue() const {
    return cluster_ ? cluster_->tensor_queue != nullptr : tensor_queue_ != nullptr;
  }
  /// Of the running thread: at each commit of a group of wgmma, how many its warp had done.
  std::vector<unsigned>& multiply_groups() {
    return multiply_groups_used_ = true, multiply_groups_[thread_->linear];
  }
  /// A block that has seen a request for a cluster fail may make no further one.
  void note_failed_cancel() { cancel_failed_ = true; }
  void cancel_cluster(char* to, std::uint64_t* barrier, bool multicast, const char* file, int line,
                      const void* pc);
  Warp& warp() { return warps_[thread_->linear / kWarpSize]; }
  /// Have all warps of the running thread's warp group done so many wgmma?
  bool group_multiplied(unsigned count) const;
  Thread& thread() { return *thread_; }
  /// Does the address lie in this block's shared memory?
  bool owns(const void* address) const { return address >= arena_ && address < arena_ + arena_size_; }
  Grid& grid() { return *grid_; }
  std::size_t shared_bytes() const { return arena_size_; }
  State state_of(unsigned thread) const { return threads_[thread].state; }
  unsigned count() const { return count_; }

  /// Records a failure of the running thread and leaves the kernel for good.
  [[noreturn]] void fail(FailureKind kind, const char* file, int line, std::string message,
                         std::string hint = {}, int cuda_error = kErrorLaunchFailure);
  /// Leaves the kernel without finishing it: abandons every fiber of the block.
  [[noreturn]] void leave_kernel();
  /// The time limit has expired: says where the thread is (`interrupted`, or if null where this is called)
  /// and leaves the kernel.
  [[noreturn]] void leave_at_time_limit(const void* interrupted);
  bool inside_stack_guard(const void* address) const;
  /// Is this the stack of a CUDA thread, so that the kernel can be left from it?
  bool on_fiber(const void* stack_pointer) const;
  /// "4 bytes past the end of tile in kernel.cu:12 (4096 bytes)"; empty when the address is not in this
  /// block's shared memory.
  std::string describe_shared(const char* address) const;
  Failure describe(FailureKind kind, const char* file, int line, std::string message, std::string hint,
                   int cuda_error = kErrorLaunchFailure) const;

 private:
  friend void fiber_main();
  // scheduler.cpp
  void prepare_for(Grid& grid);
  void number_threads(const Index3& block);
  void run_block(std::uint64_t k);
  void run_until_it_waits(void* stack_pointer);
  bool may_wait_aside() const;
  void wait_aside();
  bool ends_cluster();
  [[noreturn]] void fiber_loop();
  void start_on(Thread& thread, Fiber* fiber);
  Fiber* take_fiber();
  void set_states(unsigned ended);
  void begin_row();
  void settle();
  bool ended_in_one_row();
  bool goes_on_quickly();
  Thread* next_unstarted();
  Thread* take_ready();
  Thread* pick();
  Thread* pick_cold();
  void switch_from(Thread& thread);
  void look_for_standstill();
  void look_for_rounds();
  void count_barrier();
  void finish_thread();
  void enter(Thread& thread);
  void make_ready(Thread& thread) {
    thread.state = State::kReady;
    ready_.push_back(thread.linear);
  }
  bool release_active_masks();
  bool release_steps();
  bool release_the_waiting() { return release_steps() || release_active_masks(); }
  [[noreturn]] void report_deadlock();
  std::string waiting_summary() const;
  std::uint64_t random();
  // barrier.cpp
  void release_barrier();
  void tell_of_split() const;
  void meet_the_grid();
  void leave_grid_barrier();
  // cluster.cpp
  void join_cluster(std::uint64_t k);
  void publish_arena();
  void leave_cluster();
  // tensor_memory.cpp
  void end_tensor_memory();
  // warp.cpp
  void complete(Warp& warp, unsigned warp_index, unsigned members, Thread* last);
  void recheck_after_exit(unsigned warp_index);
  // shared_memory.cpp
  void prepare_arena();
  void use_arena() const;
  void begin_dynamic();
  void check_red_zones();
  void check_red_zone(const char* begin, std::size_t bytes, const char* name, std::size_t size,
                      bool past_end);

  Grid* grid_ = nullptr;
  Schedule schedule_ = Schedule::kForward;
  Thread* thread_ = nullptr;  // running; null between blocks
  std::vector<Thread> threads_;
  std::vector<CopyQueue> copies_;
  std::vector<Warp> warps_;
  std::vector<std::uint32_t> start_order_;
  Index3 numbered_{};  // the block that threads_ and start_order_ were numbered for
  Schedule numbered_for_ = Schedule::kForward;
  ReadyQueue ready_;
  unsigned count_ = 0, started_ = 0, done_ = 0;
  // threads may run in rows; no thread's state has been set since the block began
  bool rows_ = false, states_unset_ = false;
  void* main_stack_ = nullptr;
  void* aside_ =
      nullptr;  // the stack of the running thread while other blocks have the OS thread; null: it is not so
  std::vector<Fiber*> idle_, all_;
  std::uint64_t random_ = 1;
  Index3 block_{};
  unsigned fruitless_yields_ = 0;  // since a thread last ended or passed a barrier
  unsigned barriers_ = 0;          // passed by the block since a thread last ended
  std::chrono::steady_clock::time_point standstill_since_, rounds_since_;

  // barrier: who waits, and the sums of the present and of the last phase
  struct Votes {
    int count = 0;
    bool all = true, any = false;
  };
  std::vector<std::uint32_t> at_barrier_;  // as long as the ring of ready_, with which it is swapped
  unsigned arrived_ = 0;
  Votes votes_, released_;
  bool at_grid_ = false;  // the block waits for the grid
  NamedBarrier named_[kNamedBarriers];
  bool named_used_ = false, copies_used_ = false;  // since they were last reset

  // lock step: how many threads wait, and which lanes have stored where since threads last synchronised
  unsigned at_step_ = 0;
  std::vector<std::pair<const volatile void*, unsigned>> step_writes_;

  // clusters and bulk copies
  std::vector<char> scratch_;
  Cluster* cluster_ = nullptr;
  unsigned cluster_rank_ = 0;
  std::vector<std::uint64_t> cluster_phases_;  // of each thread's last arrival
  std::vector<BulkLoad> bulk_loads_;           // issued, and not yet assigned to a group
  bool cancel_failed_ = false;

  // wgmma
  std::vector<std::vector<unsigned>> multiply_groups_;  // by thread
  bool multiply_groups_used_ = false;                   // since they were last reset

  // tcgen05, outside of clusters
  std::shared_ptr<TensorMemory> tensor_;
  std::shared_ptr<TensorQueue> tensor_queue_;

  // shared memory
  char *arena_ = nullptr, *statics_ = nullptr;
  std::size_t arena_size_ = 0, shared_used_ = 0;
  std::vector<std::uint32_t> slot_epochs_;
  std::uint32_t epoch_ = 0;
  std::vector<const SharedSlot*> touched_;
};

// ---- what runs at every switch ----------------------------------------------------------------------------

inline void BlockRunner::enter(Thread& thread) {
  thread_ = &thread;
  thread_index = thread.index;
  thread_state.lane = thread.linear & (kWarpSize - 1);
  thread_state.linear = thread.linear;
  observe::thread_runs(thread.linear);
  thread.state = State::kRunning;
}

inline Thread* BlockRunner::next_unstarted() {
  return started_ == count_ ? nullptr : &threads_[start_order_[started_++]];
}

inline Thread* BlockRunner::take_ready() {
  if (ready_.empty()) return nullptr;
  if (schedule_ == Schedule::kRandom) ready_.bring_to_front(random() % ready_.size());
  return &threads_[ready_.pop_front()];
}

/// The thread to run next, its state loaded. Called by a thread that cannot go on.
inline Thread* BlockRunner::pick() {
  Thread* next = take_ready();
  if (!next) return pick_cold();
  enter(*next);
  return next;
}

/// Grids that were run in this process.
std::uint64_t launches_so_far();
/// The launch that is being executed; null while none is.
const LaunchConfig* launch_in_progress();
/// Runs a prepared grid on the OS threads of the pool and on the calling one.
void run_on_pool(Grid& grid);
/// Called by a block that spins on another one: lets one more OS thread take blocks.
/// @return false when no blocks are left, or no stacks for them
bool ask_for_another_runner(Grid& grid);

/// Every __shared__ declaration of the program.
const std::vector<SharedSlot>& shared_slots();
/// Bytes that they take in the arena, red zones included.
std::size_t shared_slots_size();

/// Tells the mbarrier of bytes that a copy engine has written.
void complete_bytes(std::uint64_t* barrier, std::size_t bytes);
/// An engine arrives at the mbarrier.
void mbarrier_signal(std::uint64_t* barrier, const char* file, int line);

/// Where dynamic shared memory begins in a block's arena.
inline constexpr std::size_t kDynamicOffset = 1024;

}  // namespace capstone_emu
