#include "harness/judge/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>

#include "harness/runtime/build/build.h"

namespace capstone {
namespace {

struct Instrument {
  BuildVariant variant;
  const char* name;  // in records
  const char *title, *finds;
};
constexpr std::array kInstruments{
    Instrument{BuildVariant::kAsan, "asan", "asan", "accesses out of bounds"},
    Instrument{BuildVariant::kInstrumented, "hooks", "instrumented", "races and unwritten memory"},
};

constexpr std::size_t kSmallCases = 3;
constexpr Cost kSmall{2e6, 1e6}, kLarge{2e7, 8e6};  // flops, bytes
constexpr int kSlowdown = 10;                       // of an instrumented run

// A measure of work that makes costs of both kinds comparable.
double work_of(const Cost& cost) { return cost.flops + cost.bytes; }
bool within(const Cost& cost, const Cost& limit) {
  return cost.flops <= limit.flops && cost.bytes <= limit.bytes;
}

struct Building {
  const PassedCandidate* candidate;
  const Instrument* instrument;
  std::future<Result<EmulatedArtifact>> artifact;
};

Result<void> run(const InspectSetup& setup, const Building& building, const EmulatedArtifact& artifact,
                 const std::vector<BoundCase>& cases) {
  Measurement& m = *building.candidate->into;
  MemfdArena arena;
  WorkerLimits limits;
  GateOneSetup gate{
      setup.problem,
      setup.oracle,
      &arena,
      {"forward"},
      [&] { return Worker::start_runner({artifact.program.string()}, *setup.sandbox, limits, false); },
      setup.run_timeout * kSlowdown,
      patience_with_emulator(setup.run_timeout * kSlowdown),
      [&](StageEvent event) {
        event.build = fmt::format("{} build: {}", building.instrument->title, building.instrument->finds);
        setup.say(event);
      },
      m.candidate};
  Measurement seen;
  CAPSTONE_CHECK(gate_one(gate, cases, seen));
  // Slow is not wrong: what an instrumented build cannot run to its end says nothing about the kernel; nor
  // does one that does not start (no address space for its shadow memory).
  const CaseResult* bad = seen.first_failure();
  if (bad && (bad->id == "start" || seen.gate_one == GateOne::kTimedOut ||
              seen.gate_one == GateOne::kNotJudgeable)) {
    m.labels.push_back(fmt::format("not looked at for {}: {}", building.instrument->finds, bad->problem));
    std::erase_if(seen.cases, [](const CaseResult& result) { return !result.passed; });
    seen.gate_one = GateOne::kPassed;
  }
  for (CaseResult& result : seen.cases) {
    result.build = building.instrument->name;
    m.cases.push_back(std::move(result));
  }
  if (seen.gate_one != GateOne::kPassed) m.gate_one = seen.gate_one;
  return {};
}

}  // namespace

Result<std::vector<CasePlan>> plan_instrumented(const Problem& problem) {
  std::vector<std::pair<double, const Sizes*>> small;
  const Sizes* large = nullptr;
  double most = 0;
  const auto consider = [&](const Sizes& sizes, bool check) -> Result<void> {
    CAPSTONE_TRY(Cost cost, cost_at(problem, sizes));
    if (check) small.emplace_back(work_of(cost), &sizes);
    if (!within(cost, kLarge) || work_of(cost) <= most) return {};
    large = &sizes;
    most = work_of(cost);
    return {};
  };
  for (const Sizes& sizes : problem.check) CAPSTONE_CHECK(consider(sizes, true));
  CAPSTONE_CHECK(consider(problem.emulate, false));
  std::stable_sort(small.begin(), small.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CasePlan> plans;
  for (const auto& [work, sizes] : small) {
    CAPSTONE_TRY(Cost cost, cost_at(problem, *sizes));
    if (plans.empty() || (plans.size() < kSmallCases && within(cost, kSmall)))
      plans.push_back({fmt::format("small-{}", plans.size()), *sizes, fresh_seed()});
  }
  if (large &&
      std::none_of(plans.begin(), plans.end(), [&](const CasePlan& plan) { return plan.sizes == *large; }))
    plans.push_back({"many-blocks", *large, fresh_seed()});
  return plans;
}

Result<void> inspect(const InspectSetup& setup, const std::vector<PassedCandidate>& passed) {
  if (passed.empty()) return {};
  setup.say({Stage::kBuildInstrumented, {}});
  std::vector<Building> buildings;
  for (const PassedCandidate& candidate : passed)
    for (const Instrument& instrument : kInstruments) {
      BuildRequest request{setup.problem, candidate.source, setup.resources, setup.sandbox,
                           candidate.into->candidate};
      request.variant = instrument.variant;
      buildings.push_back({&candidate, &instrument,
                           std::async(std::launch::async, [request] { return build_emulated(request); })});
    }
  std::vector<CasePlan> plans;
  if (setup.replay) {
    plans = {*setup.replay};
  } else {
    CAPSTONE_TRY(plans, plan_instrumented(*setup.problem));
  }
  CAPSTONE_TRY(const auto cases, bind_cases(*setup.problem, std::move(plans)));
  for (Building& building : buildings) {
    CAPSTONE_TRY(EmulatedArtifact artifact, building.artifact.get());
    Measurement& m = *building.candidate->into;
    if (m.gate_one != GateOne::kPassed) continue;
    if (artifact.result.ok) {
      CAPSTONE_CHECK(run(setup, building, artifact, cases));
    } else {
      const auto& error = artifact.result.first_error;
      m.labels.push_back(fmt::format("not looked at for {}: the {} build cannot be made: {}",
                                     building.instrument->finds, building.instrument->name,
                                     !artifact.not_judgeable.empty() ? artifact.not_judgeable
                                     : error                         ? error->text
                                                                     : "no error line"));
    }
  }
  return {};
}

}  // namespace capstone
