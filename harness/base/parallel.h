#pragma once
// A loop over several threads.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace capstone {

/// `threads`, or the number of hardware threads if it is 0.
inline int threads_or_all(int threads) {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Runs `work(begin, end)` over [0, count), `chunk` at a time, on several threads. The first exception is
/// rethrown here.
template <class Work>
void parallel_for(std::int64_t count, std::int64_t chunk, int threads, const Work& work) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto run = [&] {
    try {
      for (std::int64_t begin; (begin = next.fetch_add(chunk)) < count;)
        work(begin, std::min(count, begin + chunk));
    } catch (...) {
      const std::lock_guard lock(failure_lock);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  const std::int64_t useful = std::min<std::int64_t>(threads, (count + chunk - 1) / chunk);
  {
    std::vector<std::jthread> others;
    for (std::int64_t i = 1; i < useful; ++i) others.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace capstone
