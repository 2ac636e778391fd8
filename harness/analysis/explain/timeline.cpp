#include "harness/analysis/explain/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace capstone {
namespace {

constexpr unsigned kWarpGroup = 128;  // threads that multiply together

struct Barrier {
  double arrived = 0;  // the last arrival, or copy, of this phase
  double over = 0;     // when the phase before ended
  bool copying = false;
};

class Replay {
 public:
  explicit Replay(const EngineTimes& times) : times_(times) {}

  void step(char kind, unsigned thread, int object, int value) {
    double& clock = clocks_.try_emplace(thread, met_).first->second;
    Barrier& barrier = barriers_[object];
    switch (kind) {
      case 'c':
        if (!barrier.copying) use(line_.copies, clock, times_.copy);
        barrier.copying = true;
        barrier.arrived = std::max(barrier.arrived, line_.copies.back().end);
        break;
      case 'a':
        barrier.arrived = std::max(barrier.arrived, clock);
        break;
      case 'o':
        barrier = {0, barrier.arrived, false};
        break;
      case 'w':
        clock = std::max(clock, barrier.over);
        break;
      case 'm':
        if (thread % kWarpGroup) break;
        use(line_.products, clock, times_.product);
        groups_[thread / kWarpGroup].push_back(line_.products.back().end);
        break;
      case 'd': {
        const std::vector<double>& groups = groups_[thread / kWarpGroup];
        if (groups.size() > static_cast<std::size_t>(value))
          clock = std::max(clock, groups[groups.size() - 1 - static_cast<std::size_t>(value)]);
        break;
      }
      default:  // all threads meet
        meet();
    }
  }
  Timeline line() && { return std::move(line_); }

 private:
  // An engine does one thing at a time.
  static void use(std::vector<EngineUse>& uses, double from, double takes) {
    const double begin = std::max(from, uses.empty() ? 0 : uses.back().end);
    uses.push_back({static_cast<int>(uses.size()) + 1, begin, begin + takes});
  }
  void meet() {
    for (const auto& [thread, clock] : clocks_) met_ = std::max(met_, clock);
    for (auto& [thread, clock] : clocks_) clock = met_;
  }

  EngineTimes times_;
  Timeline line_;
  double met_ = 0;
  std::map<unsigned, double> clocks_;
  std::map<int, Barrier> barriers_;
  std::map<unsigned, std::vector<double>> groups_;  // ends of the products, by warp group
};

}  // namespace

double Timeline::end() const {
  double last = 0;
  for (const auto* uses : {&copies, &products})
    if (!uses->empty()) last = std::max(last, uses->back().end);
  return last;
}

int Timeline::overlapping() const {
  return static_cast<int>(std::count_if(products.begin(), products.end(), [&](const EngineUse& product) {
    return std::any_of(copies.begin(), copies.end(), [&](const EngineUse& copy) {
      return copy.begin < product.end && product.begin < copy.end;
    });
  }));
}

Result<Timeline> replay_waits(const Json& report, const EngineTimes& times) try {
  const auto waits = report.find("waits");
  if (waits == report.end()) return fail("the observed run recorded no waits");
  Replay replay(times);
  for (const Json& step : *waits)
    replay.step(step.at(0).get<std::string>().at(0), step.at(1).get<unsigned>(), step.at(2).get<int>(),
                step.at(3).get<int>());
  return std::move(replay).line();
} catch (const std::exception& wrong) {
  return fail(fmt::format("the waits of the observed run cannot be read: {}", wrong.what()));
}

Result<Timeline> timeline(const ExplainRequest& request, const EngineTimes& times, const Resources& resources,
                          const Narration& say) {
  say("building with every access observed");
  const Sandbox sandbox = Sandbox::detect(resources);
  CAPSTONE_TRY(const std::filesystem::path program, build_observed(request, resources, sandbox));
  say(fmt::format("running at {}", to_string(request.sizes)));
  CAPSTONE_TRY(const Json report, observe_run(program, request, sandbox, true));
  return replay_waits(report, times);
}

}  // namespace capstone
