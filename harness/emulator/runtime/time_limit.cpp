#include "runtime/time_limit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
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

void signal_thread(pid_t thread) { ::syscall(SYS_tgkill, ::getpid(), thread, kTimeOutSignal); }

/// Calls `visit` with each thread of this process but the one that calls.
template <class Visit>
void for_other_threads(Visit visit) {
  DIR* tasks = ::opendir("/proc/self/task");
  if (!tasks) return;
  while (const dirent* entry = ::readdir(tasks))
    if (const pid_t thread = std::atoi(entry->d_name); thread > 0 && thread != thread_id()) visit(thread);
  ::closedir(tasks);
}

/// Processor time that each thread has taken since it began.
std::map<pid_t, std::chrono::nanoseconds> processor_times() {
  std::map<pid_t, std::chrono::nanoseconds> times;
  for_other_threads([&](pid_t thread) {
    // The clock of another thread of this process: what pthread_getcpuclockid() makes of its id.
    const clockid_t clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6);
    timespec taken{};
    if (::clock_gettime(clock, &taken) == 0)
      times[thread] = std::chrono::seconds(taken.tv_sec) + std::chrono::nanoseconds(taken.tv_nsec);
  });
  return times;
}

/// Processor time of the thread that has taken the most of it since `before`. Threads run at the same time
/// on an idle machine, so this is the time that the run would have taken there, at least.
std::chrono::nanoseconds busiest_since(const std::map<pid_t, std::chrono::nanoseconds>& before) {
  std::chrono::nanoseconds most{0};
  for (const auto& [thread, taken] : processor_times()) {
    const auto then = before.find(thread);
    most = std::max(most, then == before.end() ? taken : taken - then->second);
  }
  return most;
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
    const auto before = processor_times();
    if (changed.wait_for(lock, limit, [this] { return over; })) return false;
    while (busiest_since(before) < limit && std::chrono::steady_clock::now() - begin < kMostWaits * limit)
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
      for_other_threads(signal_thread);
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
