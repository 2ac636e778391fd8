// The runtime's reports about the life of launches, blocks and threads.
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "hooks/access.h"
#include "hooks/report.h"
#include "hooks/reserve.h"
#include "hooks/waits.h"
#include "runtime/observe.h"

// From the linker: the program's static storage ends here.
extern "C" const char __executable_start, end;

namespace capstone_emu::hooks {

thread_local __constinit Block* this_block CAPSTONE_TLS = nullptr;
thread_local __constinit Lane* this_lane CAPSTONE_TLS = nullptr;
Launch running_launch;
Time now = 1;

Block::Block() : lanes(kMaxThreads) {
  auto* ids = reserve<SiteId>(std::size_t{kMaxThreads} * kTraceCapacity);
  auto* addresses = reserve<std::uint64_t>(std::size_t{kMaxThreads} * kTraceCapacity);
  for (unsigned t = 0; t < kMaxThreads; ++t) {
    lanes[t].linear = t;
    lanes[t].trace_sites = ids + std::size_t{t} * kTraceCapacity;
    lanes[t].trace_addresses = addresses + std::size_t{t} * kTraceCapacity;
    std::fill_n(lanes[t].known, kWarpSize, Time{0});
  }
}

namespace {

/// First come, first served. Each waits for a separate signal, because blocks that spin pass the turn often.
class Turn {
 public:
  void take() { wait_for_turn(false); }
  void give() {
    std::lock_guard lock(mutex_);
    if (queue_.empty()) {
      taken_ = false;
      return;
    }
    Waiter& next = *queue_.front();
    queue_.pop_front();
    next.called = true;
    next.signal.notify_one();
  }
  /// A runner arrives, at its first block.
  void enter() { wait_for_turn(true); }
  void expect(unsigned count) {
    std::lock_guard lock(mutex_);
    expected_ += count;
  }
  void await_expected() {
    std::unique_lock lock(mutex_);
    entrance_.wait(lock, [&] { return entered_ >= expected_; });
  }
  bool wanted() {
    std::lock_guard lock(mutex_);
    return !queue_.empty();
  }

 private:
  struct Waiter {
    std::condition_variable signal;
    bool called = false;
  };
  void wait_for_turn(bool newcomer) {
    std::unique_lock lock(mutex_);
    if (newcomer) {
      ++entered_;
      entrance_.notify_all();
    }
    if (!std::exchange(taken_, true)) return;
    Waiter mine;
    queue_.push_back(&mine);
    mine.signal.wait(lock, [&] { return mine.called; });
  }

  std::mutex mutex_;
  std::condition_variable entrance_;
  std::deque<Waiter*> queue_;
  bool taken_ = false;
  std::uint64_t entered_ = 0, expected_ = 0;  // runners, in the life of the process
};
Turn& turn() {
  static auto* instance = new Turn;
  return *instance;
}

void begin_turn(Block& block) {
  block.last_turn = ++now;
  running_launch.turns.emplace_back(now, block.index);
}

/// Launches that the host has not waited for, the running one last.
std::vector<ConcurrentLaunch>& unawaited() {
  static auto* all = new std::vector<ConcurrentLaunch>;
  return *all;
}

void order_launch(const LaunchConfig& config) {
  running_launch.concurrent.clear();
  running_launch.floor = running_launch.begin;
  // Launches without a line are nodes of graphs, or of a library: what orders them is not known here.
  if (!pointers_are_checked() || config.line == 0) return;
  constexpr std::size_t kMost = 256;
  std::vector<ConcurrentLaunch>& all = unawaited();
  std::erase_if(all, [](const ConcurrentLaunch& launch) { return host_knows_done(launch.work); });
  if (all.size() >= kMost) all.erase(all.begin());
  const StreamWork work = work_begins(config.stream);
  for (const ConcurrentLaunch& launch : all)
    if (!done_before(launch.work, work)) running_launch.concurrent.push_back(launch);
  if (!running_launch.concurrent.empty()) running_launch.floor = running_launch.concurrent.front().begin;
  const std::string_view file = config.file;
  all.push_back({work, running_launch.begin, running_launch.begin,
                 std::string("kernel ") + config.kernel + ", launched at " +
                     std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(config.line) +
                     " in another stream"});
}

void add_static_storage() {
  static const bool added = [] {
    add_allocation(&__executable_start, static_cast<std::size_t>(&end - &__executable_start),
                   "a __device__ or __constant__ variable", true, false);
    return true;
  }();
  static_cast<void>(added);
}

void reset(Lane& lane) {
  lane.time = now;
  lane.traced = 0;
  lane.learnt.reset();
  lane.fenced.reset();
  lane.last_fence = 0;
  lane.next_fence.reset();
  lane.loaded = 0;
  lane.interruptions = 0;
  if (!std::exchange(lane.uses_engines, false)) return;
  lane.open.clear();
  lane.committed.clear();
  lane.open_stores.clear();
  lane.committed_stores.clear();
  lane.results.clear();
  lane.result_groups = 0;
  lane.multiplies = false;
  lane.tensor_moves.clear();
  lane.engine.clear();
}

}  // namespace
}  // namespace capstone_emu::hooks

namespace capstone_emu::observe {

using namespace hooks;

Silence::Silence() : lane_(this_lane) { this_lane = nullptr; }
Silence::~Silence() { this_lane = static_cast<Lane*>(lane_); }

void launch_begins(const Grid& grid) {
  prepare_sites();
  turn().expect(1);
  add_static_storage();
  running_launch.config = &grid.config;
  running_launch.arguments = reinterpret_cast<std::uintptr_t>(grid.arguments);
  running_launch.first = running_launch.begin = ++now;
  running_launch.turns.clear();
  order_launch(grid.config);
  forget_flags();
  forget_relaxed_writes();
  forget_clusters();
}

void launch_ends() {
  if (!unawaited().empty() && unawaited().back().begin == running_launch.first)
    unawaited().back().end = now + 1;
  add_launch(*running_launch.config);
  end_waits();
}

void take_turn() { turn().enter(); }
void give_turn() { turn().give(); }
void await_newcomers(unsigned count) {
  turn().expect(count);
  turn().await_expected();
}
void pass_turn() {
  memory_is_current();
  if (!turn().wanted()) return;
  if (this_block) settle_doubts(*this_block);
  turn().give();
  turn().take();
  if (this_block) begin_turn(*this_block);
}

void block_begins(const BlockRunner& runner, std::uint64_t index, SharedArena shared, const void* cluster) {
  static thread_local std::map<const BlockRunner*, std::unique_ptr<Block>> blocks;
  std::unique_ptr<Block>& own = blocks[&runner];
  if (!own) own = std::make_unique<Block>();
  Block& block = *own;
  this_block = &block;
  if (!block.shadow || block.shared_bytes != shared.bytes)
    block.shadow = std::make_unique<Shadow>(shared.bytes);
  block.runner = &runner;
  block.index = index;
  block.shared = reinterpret_cast<std::uintptr_t>(shared.begin);
  block.shared_bytes = shared.bytes;
  block.statics = static_cast<std::size_t>(shared.statics - shared.begin);
  block.cluster = cluster;
  block.cells = block.shadow->words_from(block.shared);
  block.byte_cells = block.shadow->bytes_from(block.shared);
  block.quick_bytes = cluster ? 0 : block.shared_bytes;
  block.variables.clear();
  block.doubts.clear();
  block.learnt.reset();
  block.fenced.reset();
  block.split.clear();
  block.count = runner.count();
  begin_turn(block);
  block.begin = block.barrier = now;
  std::fill(std::begin(block.warp), std::end(block.warp), now);
  for (unsigned t = 0; t < block.count; ++t) reset(block.lanes[t]);
  for (std::vector<Arrival>& arrivals : block.arrivals) arrivals.clear();
  live_blocks().push_back(&block);
}

void block_ends(bool complete) {
  memory_is_current();
  Block& block = *this_block;
  this_lane = nullptr;
  if (complete) {
    settle_doubts(block);
    forget_multiplies(block);
  } else {
    block.shadow.reset();  // copies may still be pending there
    for (MultiplierReads& reads : block.multipliers) reads = {};
  }
  std::erase(live_blocks(), &block);
  forget_loads(block);
  this_block = nullptr;
}

void* block_stands_aside() {
  memory_is_current();
  settle_doubts(*this_block);
  this_lane = nullptr;
  return std::exchange(this_block, nullptr);
}
void block_goes_on(void* block) {
  this_block = static_cast<Block*>(block);
  begin_turn(*this_block);
}

void shared_begins(const char* begin, std::size_t bytes) {
  this_block->variables.emplace_back(reinterpret_cast<std::uintptr_t>(begin) - this_block->shared, bytes);
}

void thread_runs(unsigned linear) {
  memory_is_current();
  this_lane = &this_block->lanes[linear];
}
void warp_ends(unsigned warp) {
  if (counting()) count_warp(*this_block, warp);
}

void barrier_arrives(const void* pc) {
  if (this_lane) trace(*this_block, *this_lane, site_at(number(pc), 0, false, false), 0);
}

void flops(std::uint64_t count, const void* pc, int kind) {
  if (!this_lane) return;
  Site& site = sites[site_at(number(pc), 0, false, false)];
  site.used = true;
  site.counts.flops += count;
  if (kind >= 0) site.counts.flops_of_kind.at(static_cast<std::size_t>(kind)) += count;
}

void allocated(const void* begin, std::size_t bytes, bool written) {
  add_allocation(begin, bytes, "memory of cudaMalloc", written);
}
void is_argument(std::uintptr_t pointer, const char* names, unsigned number) {
  Allocation* allocation = names ? find_allocation(pointer) : nullptr;
  if (!allocation || allocation->begin != pointer || !allocation->counted || allocation->tensor) return;
  std::string_view rest = names;
  for (; number > 1; --number) rest.remove_prefix(std::min(rest.find(','), rest.size() - 1) + 1);
  if (const std::string_view name = rest.substr(0, rest.find(',')); !name.empty()) allocation->name = name;
}
void freed(const void* begin) { remove_allocation(begin); }
void written_by_host(const void* begin, std::size_t bytes) { mark_written(begin, bytes); }

}  // namespace capstone_emu::observe
