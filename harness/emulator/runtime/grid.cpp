// Launches: checking the configuration, and sharing a grid's blocks among OS threads.
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <numeric>
#include <thread>

#include "harness/emulator/runtime/scheduler.h"

/// Defined by the candidate: the __CUDA_ARCH__ that it was compiled for.
extern "C" const int capstone_emu_arch;

namespace capstone_emu {
namespace {

// cudaError_t values; CUDA never changes them.
constexpr int kErrorInvalidValue = 1, kErrorInvalidConfiguration = 9, kErrorLaunchFailure = 719;
// Stacks are two memory mappings each, and Linux allows 65530 of them.
constexpr unsigned kMaxStacks = 28000;

int g_last_error = 0;
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
    const unsigned most = std::max(1u, kMaxStacks / block);
    const unsigned wanted = static_cast<unsigned>(std::min<std::uint64_t>({hardware, most, grid.blocks}));
    observe::launch_begins(grid);
    limit_ = most;
    if (wanted > 1 && !observe::kOn) recruit(grid, wanted - 1);
    own_.run(grid);
    std::unique_lock lock(mutex_);
    grid_ = nullptr;
    openings_ = 0;
    finished_.wait(lock, [&] { return active_ == 0; });
    observe::launch_ends();
  }

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
      runner.run(grid);
      lock.lock();
      if (--active_ == 0) finished_.notify_all();
    }
  }

  BlockRunner own_;
  std::mutex launching_, mutex_;
  std::condition_variable wake_, finished_;
  Grid* grid_ = nullptr;
  unsigned helpers_ = 0, active_ = 0, openings_ = 0, limit_ = 1;
};

void refuse(const LaunchConfig& config, int error, std::string message, std::string hint) {
  g_last_error = error;
  record_failure({FailureKind::kLaunchError, std::move(message), config.kernel,
                  std::string(config.file) + ":" + std::to_string(config.line), std::nullopt, std::nullopt,
                  config.file, config.line, std::move(hint)});
}

std::string text_of(const Index3& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
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
           "too much dynamic shared memory: " + std::to_string(config.dynamic_shared) + " bytes, the limit is " +
               std::to_string(g_dynamic_limit),
           g_dynamic_limit < shared_memory_capacity()
               ? "above 48 KiB call cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) first"
               : "this architecture has no more");
    return false;
  }
  return true;
}

}  // namespace

RunSettings& settings() { return g_settings; }
int& last_error() { return g_last_error; }
std::size_t& dynamic_shared_limit() { return g_dynamic_limit; }
int emulated_arch() { return capstone_emu_arch; }

std::size_t shared_memory_capacity() {  // CUDA C++ Programming Guide, "Technical specifications per compute capability"
  const int arch = emulated_arch();
  if (arch >= 900 && arch < 1200) return 227 * 1024;
  if (arch == 800 || arch == 870) return 163 * 1024;
  if (arch >= 860) return 99 * 1024;
  if (arch == 750) return 64 * 1024;
  return arch == 700 || arch == 720 ? 96 * 1024 : 48 * 1024;
}

void run_on_pool(Grid& grid) { Pool::instance().run(grid); }
bool ask_for_another_runner(Grid& grid) { return Pool::instance().add_runner(grid); }

void run_grid(const LaunchConfig& config, void (*body)(void*), void* arguments) {
  if (in_kernel())
    not_judgeable(config.file, config.line, "kernel launch from device code is not supported on the CPU backend");
  if (kernels_are_over()) {
    g_last_error = kErrorLaunchFailure;
    return;
  }
  if (!acceptable(config)) return;
  Grid grid{config, body, arguments, settings()};
  grid.blocks = static_cast<std::uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
  if (grid.settings.schedule == Schedule::kRandom) {
    grid.offset = grid.settings.seed % grid.blocks;
    grid.stride = (grid.settings.seed / 3 | 1) % grid.blocks + 1;
    while (std::gcd(grid.stride, grid.blocks) != 1) ++grid.stride;
  }
  run_on_pool(grid);
  if (grid.failed) g_last_error = kErrorLaunchFailure;
}

}  // namespace capstone_emu
