#include "runtime/habits.h"

#include <atomic>
#include <mutex>

#include "runtime/allocations.h"

namespace capstone_emu {
namespace {

std::atomic<bool> g_watching{false};
std::mutex g_mutex;
std::string g_default_stream;  ///< the first launch there
bool g_waited = false;
long g_live = 0;  ///< allocations when the call began
int g_leaks = 0;  ///< calls that left more behind than they found

}  // namespace

void watch_habits() {
  std::lock_guard lock(g_mutex);
  g_default_stream.clear();
  g_waited = false;
  g_live = live_device_allocations();
  g_watching = true;
}

std::vector<std::string> habits_seen() {
  std::vector<std::string> all;
  if (!g_watching.exchange(false)) return all;
  std::lock_guard lock(g_mutex);
  if (!g_default_stream.empty())
    all.push_back("the launch at " + g_default_stream +
                  " is on the default stream: on a GPU nothing orders it with the given stream");
  if (g_waited)
    all.push_back(
        "launch() calls cudaDeviceSynchronize(): the host waits in every call, and a GPU cannot "
        "capture it");
  // Memory that is kept once, for all later calls, is a cache; memory that is kept again is a leak.
  if (live_device_allocations() > g_live && ++g_leaks > 1)
    all.push_back("launch() allocates device memory in every call and does not free it");
  return all;
}

void saw_default_stream(const std::string& place) {
  if (!g_watching) return;
  std::lock_guard lock(g_mutex);
  if (g_default_stream.empty()) g_default_stream = place;
}

void saw_device_wait() {
  if (!g_watching) return;
  std::lock_guard lock(g_mutex);
  g_waited = true;
}

}  // namespace capstone_emu
