// Launches: checking the configuration, and sharing a grid's blocks among OS threads.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <numeric>
#include <thread>

#include "runtime/allocations.h"
#include "runtime/habits.h"
#include "runtime/scheduler.h"
#include "runtime/stream_order.h"

/// Defined by the candidate: the __CUDA_ARCH__ that it was compiled for.
extern "C" const int capstone_emu_arch;

namespace capstone_emu {
namespace {

// cudaError_t values; CUDA never changes them.
constexpr int kErrorInvalidValue = 1, kErrorInvalidConfiguration = 9, kErrorCooperativeLaunchTooLarge = 720,
              kErrorInvalidClusterSize = 912;
// Stacks are two memory mappings each, and Linux allows 65530 of them.
constexpr unsigned kMaxStacksOfGrid = 28000;
// OS threads that blocks which wait for each other get one by one; a sandbox counts them as processes.
constexpr unsigned kMaxHelpers = 160;
// What the largest GPU has today: a grid that fits there is no mistake.
constexpr std::uint64_t kLargestMultiprocessors = 160;

int g_last_error = 0;
std::atomic<std::uint64_t> g_launches{0};
std::size_t g_dynamic_limit = kStaticSharedLimit;
RunSettings g_settings;

class Pool {
 public:
  static Pool& instance() {
    static Pool* pool = new Pool;  // its threads live as long as the process
    return *pool;
  }

  void run(Grid& grid) {
    static const std::uint64_t hardware = std::max(1u, std::thread::hardware_concurrency());
    std::lock_guard one_grid_at_a_time(launching_);
    const unsigned block = grid.config.block.x * grid.config.block.y * grid.config.block.z;
    const unsigned most = std::max(1u, kMaxStacksOfGrid / block);
    // Blocks that wait for each other need a thread each, and those of a cluster have one together.
    const std::uint64_t parts = grid.blocks / grid.cluster_blocks,
                        together = grid.config.cooperative ? parts : 1;
    const std::uint64_t beside = observe::kOn ? 1 : std::min<std::uint64_t>({hardware, most, parts});
    const unsigned wanted = static_cast<unsigned>(std::max(together, beside));
    limit_ = std::max(std::min(most, kMaxHelpers), wanted);
    in_progress_ = &grid.config;
    observe::launch_begins(grid);
    observe::take_turn();
    if (wanted > 1) {
      recruit(grid, wanted - 1);
      observe::await_newcomers(wanted - 1);
    }
    own_.run(grid);
    observe::give_turn();
    if (recruited_.exchange(false)) {
      std::unique_lock lock(mutex_);
      grid_ = nullptr;
      openings_ = 0;
      finished_.wait(lock, [&] { return active_ == 0; });
    }
    observe::launch_ends();
    in_progress_ = nullptr;
  }

  const LaunchConfig* in_progress() const { return in_progress_; }

  bool add_runner(Grid& grid) {
    {
      std::lock_guard lock(mutex_);
      if (active_ + openings_ + 1 >= limit_ || grid.next.load() >= grid.blocks) return false;
    }
    recruit(grid, 1);
    return true;
  }

 private:
  void recruit(Grid& grid, unsigned count) {
    std::lock_guard lock(mutex_);
    recruited_ = true;
    grid_ = &grid;
    openings_ += count;
    while (helpers_ < active_ + openings_) {
      ++helpers_;
      std::thread([this] { serve(); }).detach();
    }
    wake_.notify_all();
  }

  void serve() {
    BlockRunner runner;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return openings_ > 0; });
      --openings_;
      ++active_;
      Grid& grid = *grid_;
      lock.unlock();
      observe::take_turn();
      runner.run(grid);
      observe::give_turn();
      lock.lock();
      if (--active_ == 0) finished_.notify_all();
    }
  }

  BlockRunner own_;
  std::mutex launching_, mutex_;
  std::condition_variable wake_, finished_;
  std::atomic<const LaunchConfig*> in_progress_{nullptr};
  std::atomic<bool> recruited_{false};  // other threads than the launching one may work on the grid
  Grid* grid_ = nullptr;
  unsigned helpers_ = 0, active_ = 0, openings_ = 0, limit_ = 1;
};

void refuse(const LaunchConfig& config, int error, std::string message, std::string hint,
            FailureKind kind = FailureKind::kLaunchError, int later_error = kErrorLaunchFailure) {
  g_last_error = error;
  record_failure({kind, std::move(message), config.kernel,
                  std::string(config.file) + ":" + std::to_string(config.line), std::nullopt, std::nullopt,
                  config.file, config.line, std::move(hint), later_error});
}

std::string text_of(const Index3& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

bool acceptable_cluster(const LaunchConfig& config) {
  const Index3 &g = config.grid, &c = config.cluster;
  if (!c.x) return true;
  const unsigned blocks = c.x * c.y * c.z;
  if (blocks && blocks <= kMaxClusterBlocks && g.x % c.x == 0 && g.y % c.y == 0 && g.z % c.z == 0)
    return true;
  refuse(config, kErrorInvalidClusterSize, "invalid cluster " + text_of(c) + " for the grid " + text_of(g),
         "a cluster has at most 8 blocks (16 with the opt-in), and the grid must be a multiple of it");
  return false;
}

bool acceptable(const LaunchConfig& config) {
  const Index3 &g = config.grid, &b = config.block;
  const std::uint64_t threads = static_cast<std::uint64_t>(b.x) * b.y * b.z;
  if (threads > kMaxThreads || b.x > 1024 || b.y > 1024 || b.z > 64) {
    refuse(config, kErrorInvalidConfiguration,
           "invalid configuration: a block of " + text_of(b) + " has " + std::to_string(threads) + " threads",
           "a block has at most 1024 threads, and at most 64 in z");
    return false;
  }
  if (threads == 0 || !g.x || !g.y || !g.z || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535) {
    refuse(config, kErrorInvalidConfiguration,
           "invalid configuration: grid " + text_of(g) + ", block " + text_of(b),
           "no dimension may be 0; grid.y and grid.z are at most 65535");
    return false;
  }
  if (config.dynamic_shared > g_dynamic_limit) {
    refuse(config, kErrorInvalidValue,
           "too much dynamic shared memory: " + std::to_string(config.dynamic_shared) +
               " bytes, the limit is " + std::to_string(g_dynamic_limit),
           g_dynamic_limit < shared_memory_capacity()
               ? "above 48 KiB call cudaFuncSetAttribute(kernel, "
                 "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) first"
               : "this architecture has no more");
    return false;
  }
  const std::uint64_t blocks = static_cast<std::uint64_t>(g.x) * g.y * g.z;
  const int resident =
      resident_blocks(static_cast<unsigned>(threads), config.dynamic_shared) * kMultiprocessors;
  if (config.cooperative && blocks > static_cast<std::uint64_t>(resident)) {
    refuse(
        config, kErrorCooperativeLaunchTooLarge,
        "a cooperative launch of " + std::to_string(blocks) + " blocks, of which the device, which has " +
            std::to_string(kMultiprocessors) + " multiprocessors here, holds " + std::to_string(resident) +
            " at the same time",
        "size the grid with cudaOccupancyMaxActiveBlocksPerMultiprocessor and the number of multiprocessors",
        blocks <= static_cast<std::uint64_t>(resident) / kMultiprocessors * kLargestMultiprocessors
            ? FailureKind::kNotJudgeable
            : FailureKind::kLaunchError);
    return false;
  }
  return acceptable_cluster(config);
}

}  // namespace

bool accepts_argument(const LaunchConfig& config, unsigned number, std::uintptr_t pointer) {
  if (!is_host_memory(reinterpret_cast<const void*>(pointer))) {
    observe::is_argument(pointer, config.arguments, number);
    return true;
  }
  refuse(config, kErrorIllegalAddress,
         "argument " + std::to_string(number) + " of the kernel points to memory of the host",
         "allocate it with cudaMalloc and copy with cudaMemcpy, or use cudaMallocManaged",
         FailureKind::kCrash, kErrorIllegalAddress);
  return false;
}

namespace {

/// Settings and orders of a grid that is about to run.
void prepare(Grid& grid) {
  const LaunchConfig& config = grid.config;
  grid.blocks = static_cast<std::uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
  if (config.cluster.x) {
    grid.cluster_blocks = config.cluster.x * config.cluster.y * config.cluster.z;
    grid.clusters = std::make_unique<Cluster[]>(grid.blocks / grid.cluster_blocks);
  }
  if (grid.settings.schedule == Schedule::kRandom) {
    const std::uint64_t count = grid.blocks / grid.cluster_blocks;
    grid.offset = grid.settings.seed % count;
    grid.stride = (grid.settings.seed / 3 | 1) % count + 1;
    while (std::gcd(grid.stride, count) != 1) ++grid.stride;
  }
}

}  // namespace

RunSettings& settings() { return g_settings; }
bool& streams_are_late() {
  static bool late = false;
  return late;
}
int& last_error() { return g_last_error; }
std::size_t& dynamic_shared_limit() { return g_dynamic_limit; }
int emulated_arch() { return capstone_emu_arch; }

// CUDA C++ Programming Guide, "Technical specifications per compute capability"
std::size_t shared_memory_capacity() {
  const int arch = emulated_arch();
  if (arch >= 900 && arch < 1200) return 227 * 1024;
  if (arch == 800 || arch == 870) return 163 * 1024;
  if (arch >= 860) return 99 * 1024;
  if (arch == 750) return 64 * 1024;
  return arch == 700 || arch == 720 ? 96 * 1024 : 48 * 1024;
}

std::uint64_t launches_so_far() { return g_launches; }
const LaunchConfig* launch_in_progress() { return Pool::instance().in_progress(); }
void run_on_pool(Grid& grid) { Pool::instance().run(grid); }
bool ask_for_another_runner(Grid& grid) { return Pool::instance().add_runner(grid); }

void launch_after_this_grid(const LaunchConfig& config, void (*body)(void*), void* arguments,
                            void (*destroy)(void*)) {
  Grid& grid = BlockRunner::current()->grid();
  std::lock_guard lock(grid.children_mutex);
  grid.children.push_back({config, body, {arguments, destroy}});
}

void run_grid(const LaunchConfig& config, void (*body)(void*), void* arguments) {
  if (in_kernel())
    not_judgeable(config.file, config.line,
                  "kernel launch from device code is not supported on the CPU backend");
  if (kernels_are_over()) {
    g_last_error = kernel_error();
    return;
  }
  if (!acceptable(config)) return;
  ++g_launches;
  if (!config.stream) saw_default_stream(config.file + (":" + std::to_string(config.line)));
  std::uint64_t wanted_cluster;
  std::vector<Child> children;
  {
    Grid grid{.config = config, .body = body, .arguments = arguments, .settings = settings()};
    prepare(grid);
    const DeviceMemoryUse use;
    saw_launch_of(config.kernel);
    const KernelMayChangeSources behind_copies;
    run_on_pool(grid);
    wanted_cluster = grid.wanted_cluster;
    children = std::move(grid.children);
    if (grid.failed && !wanted_cluster)
      g_last_error = kernels_are_over() ? kernel_error() : kErrorLaunchFailure;
  }
  const WorkOfStream of_parent(config.stream);
  for (const Child& child : children) run_grid(child.config, child.body, child.arguments.get());
  if (!wanted_cluster) return;
  LaunchConfig clustered = config;
  clustered.cluster = {static_cast<unsigned>(wanted_cluster & 0xffff),
                       static_cast<unsigned>(wanted_cluster >> 16 & 0xffff),
                       static_cast<unsigned>(wanted_cluster >> 32)};
  run_grid(clustered, body, arguments);
}

int resident_blocks(unsigned threads, std::size_t dynamic_shared) {
  if (threads == 0) return 0;
  const std::size_t whole_warps = (threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  const std::size_t by_threads = kThreadsPerMultiprocessor / whole_warps;
  const std::size_t by_shared =
      dynamic_shared ? (shared_memory_capacity() + 1024) / (dynamic_shared + 1024) : by_threads;
  return static_cast<int>(
      std::min({by_shared, by_threads, static_cast<std::size_t>(kBlocksPerMultiprocessor)}));
}

}  // namespace capstone_emu
