#include "harness/course/jobs.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "harness/base/last_line.h"

namespace capstone {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLookInterval{20}, kTellInterval{200};

struct Place {
  std::size_t index = 0;
  Child child;
  Clock::time_point deadline;
};

}  // namespace

Result<void> run_jobs(const std::vector<Job>& jobs, int parallel, const JobEvents& events) {
  std::vector<std::optional<Place>> places(static_cast<std::size_t>(std::max(1, parallel)));
  std::size_t next = 0, ended = 0;
  Clock::time_point told{};
  while (ended < jobs.size()) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      auto& place = places[i];
      if (place) {
        const bool late = Clock::now() >= place->deadline;
        if (!late && place->child.running()) continue;
        ProcessResult result = place->child.finish(std::chrono::milliseconds(0));
        if (interrupted()) break;
        std::size_t index = place->index;
        place.reset();
        ++ended;
        events.finished(index, result);
      }
      if (next >= jobs.size()) continue;
      ProcessSpec spec = jobs[next].spec;
      events.starting(next, static_cast<int>(i), spec);
      CAPSTONE_TRY(Child child, Child::start(spec));
      place.emplace(Place{next++, std::move(child), Clock::now() + spec.timeout});
    }
    // On return, the destructors of `places` kill the running jobs.
    if (interrupted()) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (Clock::now() - told >= kTellInterval) {
      told = Clock::now();
      std::vector<RunningJob> running;
      for (const auto& place : places)
        if (place) running.push_back({place->index, last_line(place->child.err_so_far())});
      events.running(running);
    }
    std::this_thread::sleep_for(kLookInterval);
  }
  return {};
}

}  // namespace capstone
