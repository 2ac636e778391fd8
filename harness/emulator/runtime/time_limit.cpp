#include "runtime/time_limit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "runtime/failure.h"
#include "runtime/scheduler.h"

namespace capstone_emu {
namespace {

constexpr std::chrono::milliseconds kAgain{10};  // between two signals
constexpr std::chrono::milliseconds kLook{20};   // between two looks at the processor time
// before host code must report where it is, if no kernel runs
constexpr std::chrono::milliseconds kHostPatience{1500};
// … whatever runs: the judge waits a little longer than this
constexpr std::chrono::milliseconds kLastResort{8000};

pid_t thread_id() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

/// Processor time that this process has taken, all threads together.
std::chrono::nanoseconds processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void signal_thread(pid_t thread) { ::syscall(SYS_tgkill, ::getpid(), thread, kTimeOutSignal); }

void signal_other_threads() {
  DIR* tasks = ::opendir("/proc/self/task");
  if (!tasks) return;
  while (const dirent* entry = ::readdir(tasks))
    if (const pid_t thread = std::atoi(entry->d_name); thread > 0 && thread != thread_id())
      signal_thread(thread);
  ::closedir(tasks);
}

}  // namespace

std::atomic<TimeOutPhase>& time_out_phase() {
  static std::atomic<TimeOutPhase> phase{TimeOutPhase::kNone};
  return phase;
}

namespace {
std::atomic<std::int64_t> g_limit_ms{0};
}  // namespace

std::string time_limit_text() {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", static_cast<double>(g_limit_ms) / 1000);
  return text;
}

struct TimeLimit::Watch {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  pid_t launching = thread_id();
  std::thread thread;

  /// On a busy machine a process does not get all of the time that passes: it may take that later.
  /// @return false when the run ended within its limit
  bool expired(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit) {
    const auto begin = std::chrono::steady_clock::now();
    const auto taken = processor_time();
    if (changed.wait_for(lock, limit, [this] { return over; })) return false;
    while (processor_time() - taken < limit && std::chrono::steady_clock::now() - begin < kMostWaits * limit)
      if (changed.wait_for(lock, kLook, [this] { return over; })) return false;
    return true;
  }

  void run(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex);
    if (!expired(lock, limit)) return;
    time_out_phase() = TimeOutPhase::kKernels;
    const auto begin = std::chrono::steady_clock::now();
    auto waited = [&] { return std::chrono::steady_clock::now() - begin; };
    while (waited() < kHostPatience || (waited() < kLastResort && (launch_in_progress() || has_failure()))) {
      signal_other_threads();
      if (changed.wait_for(lock, kAgain, [this] { return over; })) return;
    }
    time_out_phase() = TimeOutPhase::kHost;
    signal_thread(launching);
  }
};

TimeLimit::TimeLimit(std::chrono::milliseconds limit) {
  if (limit.count() <= 0) return;
  g_limit_ms = limit.count();
  watch_ = std::make_unique<Watch>();
  watch_->thread = std::thread([watch = watch_.get(), limit] { watch->run(limit); });
}

TimeLimit::~TimeLimit() {
  if (!watch_) return;
  {
    std::lock_guard lock(watch_->mutex);
    watch_->over = true;
  }
  watch_->changed.notify_all();
  watch_->thread.join();
  time_out_phase() = TimeOutPhase::kNone;
}

}  // namespace capstone_emu
