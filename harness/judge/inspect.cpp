#include "harness/judge/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

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
  const InspectedCandidate* candidate;
  const Instrument* instrument;
  std::shared_future<Result<EmulatedArtifact>> artifact;
};

std::shared_future<Result<EmulatedArtifact>> start_build(const InspectSetup& setup,
                                                         const InspectedCandidate& candidate,
                                                         BuildVariant variant) {
  return setup.builds->begin(candidate.source, candidate.into->candidate, variant);
}

std::vector<Building> start_builds(const InspectSetup& setup,
                                   const std::vector<InspectedCandidate>& candidates) {
  std::vector<Building> buildings;
  for (const InspectedCandidate& candidate : candidates)
    for (const Instrument& instrument : kInstruments)
      buildings.push_back({&candidate, &instrument, start_build(setup, candidate, instrument.variant)});
  return buildings;
}

/// Gate one of one build; `doing` is for the narration. `trap`: see GateOneSetup.
Result<Measurement> run(const InspectSetup& setup, const std::string& candidate, const std::string& doing,
                        const EmulatedArtifact& artifact, const std::vector<BoundCase>& cases,
                        bool trap = false) {
  MemfdArena arena;
  GateOneSetup gate{};
  gate.problem = setup.problem;
  gate.oracle = setup.oracle;
  gate.arena = &arena;
  gate.schedules = {"forward"};
  gate.start_worker = [&] {
    return Worker::start_runner({artifact.program.string()}, *setup.sandbox, WorkerLimits{}, false);
  };
  gate.run_timeout = setup.run_timeout * kSlowdown;
  gate.patience = patience_with_emulator(gate.run_timeout);
  gate.say = [&](StageEvent event) {
    event.build = doing;
    setup.say(event);
  };
  gate.who = candidate;
  gate.trap = trap;
  Measurement seen;
  CAPSTONE_CHECK(gate_one(gate, cases, seen));
  return seen;
}

std::string doing(const Instrument& instrument) {
  return fmt::format("{} build: {}", instrument.title, instrument.finds);
}

Result<void> run(const InspectSetup& setup, const Building& building, const EmulatedArtifact& artifact,
                 const std::vector<BoundCase>& cases) {
  Measurement& m = *building.candidate->into;
  CAPSTONE_TRY(Measurement seen, run(setup, m.candidate, doing(*building.instrument), artifact, cases));
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

CaseResult* first_failure(Measurement& m) {
  const auto bad =
      std::find_if(m.cases.begin(), m.cases.end(), [](const CaseResult& c) { return !c.passed; });
  return bad == m.cases.end() ? nullptr : &*bad;
}

// Whether a build that looks closer can say more about this failure. That an input was changed, say, is
// clear.
bool is_open(const Measurement& m, const CaseResult& bad) {
  const bool wrong = m.gate_one == GateOne::kWrong &&
                     (bad.diagnosis || bad.problem.find("outside the tensors") != std::string::npos);
  const bool crashed = m.gate_one == GateOne::kCrashed &&
                       (bad.where.empty() || bad.problem.starts_with("illegal memory access"));
  return !bad.sizes.empty() && (wrong || crashed);
}

// The failed case, where an instrumented build runs it in a moment, and the smallest sizes.
Result<std::vector<BoundCase>> cases_for(const InspectSetup& setup, const CaseResult& bad) {
  constexpr std::size_t kMostCases = 3;
  if (setup.replay) return bind_cases(*setup.problem, {*setup.replay});
  std::vector<CasePlan> plans;
  if (auto plan = plan_of(*setup.problem, bad)) {
    CAPSTONE_TRY(const Cost cost, cost_at(*setup.problem, plan->sizes));
    if (within(cost, kLarge)) plans.push_back(std::move(*plan));
  }
  CAPSTONE_TRY(auto small, plan_instrumented(*setup.problem));
  for (CasePlan& plan : small)
    if (plans.size() < kMostCases &&
        std::none_of(plans.begin(), plans.end(), [&](const CasePlan& p) { return p.sizes == plan.sizes; }))
      plans.push_back(std::move(plan));
  return bind_cases(*setup.problem, std::move(plans));
}

// What an instrument says of a kernel that fails anyway: not that its outputs are wrong, which is known.
const CaseResult* finding_of(const Measurement& seen) {
  const CaseResult* found = seen.first_failure();
  const bool names_it = seen.gate_one == GateOne::kUndefined || seen.gate_one == GateOne::kCrashed;
  return found && names_it && found->id != "start" && !found->where.empty() ? found : nullptr;
}

void become(CaseResult& bad, const CaseResult& cause, const char* build) {
  bad.problem = cause.problem;
  bad.where = cause.where;
  bad.hint = cause.hint;
  bad.build = build;
}

// A register that is never set is in no memory that an instrument watches; the compiler sees it.
bool warned_of(const std::vector<CompilerMessage>& warnings, CaseResult& bad) {
  for (const CompilerMessage& warning : warnings) {
    const auto says = [&](const char* words) { return warning.text.find(words) != std::string::npos; };
    const bool unset = says("-Wuninitialized]") || says("-Wmaybe-uninitialized]");
    if (!unset && (bad.diagnosis && bad.diagnosis->exact)) continue;
    if (!unset && !says("-Wparentheses]") && !says("-Wempty-body]") && !says("-Warray-bounds") &&
        !says("-Wreturn-type]"))
      continue;
    bad.problem = "the compiler warns: " + warning.text.substr(0, warning.text.rfind(" [-W"));
    bad.where = fmt::format("{}:{}", warning.file, warning.line);
    bad.hint = unset ? "give the variable a value where it is declared" : "look at this line first";
    return true;
  }
  return false;
}

}  // namespace

std::shared_future<Result<EmulatedArtifact>> CloserBuilds::begin(const fs::path& source,
                                                                 const std::string& label,
                                                                 BuildVariant variant) {
  auto& build = builds_[{source, variant}];
  if (build.valid()) return build;
  BuildRequest request{&problem_, source, &resources_, &sandbox_, label};
  request.variant = variant;
  build = std::async(std::launch::async, [request] { return build_emulated(request); }).share();
  return build;
}

void CloserBuilds::begin_instrumented(const fs::path& source, const std::string& label) {
  for (const Instrument& instrument : kInstruments) begin(source, label, instrument.variant);
}

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

Result<void> inspect(const InspectSetup& setup, const std::vector<InspectedCandidate>& passed) {
  if (passed.empty()) return {};
  setup.say({Stage::kBuildInstrumented, {}});
  std::vector<Building> buildings = start_builds(setup, passed);
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

Result<void> name_causes(const InspectSetup& setup, const std::vector<InspectedCandidate>& failed) {
  std::vector<InspectedCandidate> open;
  for (const InspectedCandidate& candidate : failed)
    if (const CaseResult* bad = candidate.into->first_failure(); bad && is_open(*candidate.into, *bad))
      open.push_back(candidate);
  if (open.empty()) return {};
  setup.say({Stage::kBuildInstrumented, {}});
  std::vector<Building> buildings = start_builds(setup, open);
  std::set<const Measurement*> named, explained;
  for (Building& building : buildings) {
    CAPSTONE_TRY(const EmulatedArtifact artifact, building.artifact.get());
    Measurement& m = *building.candidate->into;
    if (explained.contains(&m) || !artifact.result.ok) continue;
    CaseResult& bad = *first_failure(m);
    CAPSTONE_TRY(const auto cases, cases_for(setup, bad));
    CAPSTONE_TRY(const Measurement seen,
                 run(setup, m.candidate, doing(*building.instrument), artifact, cases));
    if (const CaseResult* cause = finding_of(seen)) {
      become(bad, *cause, building.instrument->name);
      named.insert(&m);
      // A crash has a line, but not what was accessed: the next build may know.
      if (seen.gate_one == GateOne::kUndefined) explained.insert(&m);
    }
  }
  for (const InspectedCandidate& candidate : open) {
    CaseResult& bad = *first_failure(*candidate.into);
    if (!named.contains(candidate.into) && warned_of(candidate.into->build.warnings, bad))
      named.insert(candidate.into);
    const auto plan = setup.replay ? Result<CasePlan>(*setup.replay) : plan_of(*setup.problem, bad);
    if (named.contains(candidate.into) || !(bad.diagnosis && bad.diagnosis->infinite) || !plan) continue;
    CAPSTONE_TRY(const EmulatedArtifact artifact, start_build(setup, candidate, BuildVariant::kFast).get());
    if (!artifact.result.ok) continue;
    CAPSTONE_TRY(const auto cases, bind_cases(*setup.problem, {*plan}));
    CAPSTONE_TRY(const Measurement seen, run(setup, candidate.into->candidate,
                                             "the first result that is no number", artifact, cases, true));
    if (const CaseResult* cause = finding_of(seen)) become(bad, *cause, "");
  }
  return {};
}

}  // namespace capstone
