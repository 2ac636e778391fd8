#include "harness/judge/judge.h"

#include <algorithm>
#include <chrono>

#include "harness/base/files.h"
#include "harness/judge/decide.h"
#include "harness/judge/inspect.h"
#include "harness/judge/pipeline.h"
#include "harness/judge/python_candidate.h"
#include "harness/judge/source_text.h"

namespace capstone {
namespace {

constexpr std::size_t kMostBuiltAhead = 2;  // candidates whose instrumented builds begin with the first one

// Candidates that one backend judges.
struct Part {
  explicit Part(const JudgeRequest& whole) : request(std::make_unique<JudgeRequest>(whole)) {
    request->candidates.clear();
  }

  std::unique_ptr<JudgeRequest> request;  ///< with its candidates alone
  std::vector<std::size_t> places;        ///< theirs among all
  std::unique_ptr<JudgeBackend> backend;
  std::vector<Built> built;
};

// On a GPU all candidates race together; on the CPU those in Python have a backend of their own.
std::vector<Part> parts_of(const JudgeContext& context, const BackendChoice& choice,
                           const OracleInWaiting& oracle) {
  const JudgeRequest& request = *context.request;
  Part cuda(request), emulated(request), python(request);
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    Part& part = choice.backend == Backend::kCuda          ? cuda
                 : is_python(request.candidates[i].source) ? python
                                                           : emulated;
    part.request->candidates.push_back(request.candidates[i]);
    part.places.push_back(i);
  }
  std::vector<Part> parts;
  const auto add = [&](Part& part, auto make) {
    if (part.places.empty()) return;
    JudgeContext its = context;
    its.request = part.request.get();
    part.backend = make(its);
    parts.push_back(std::move(part));
  };
  add(cuda, [&](const JudgeContext& its) { return make_cuda_backend(its, oracle); });
  add(emulated, [&](const JudgeContext& its) { return make_emulated_backend(its, oracle, choice.because); });
  add(python, [&](const JudgeContext& its) { return make_python_backend(its, oracle, choice.because); });
  return parts;
}

// build → bind → check → time → decide
Result<std::vector<Measurement>> run(const JudgeRequest& request, std::vector<Part> parts,
                                     const OracleInWaiting& oracle) {
  for (Part& part : parts) {
    CAPSTONE_TRY(part.built, part.backend->build());
  }
  CAPSTONE_CHECK(oracle.get());
  if (parts.empty()) return std::vector<Measurement>{};
  CAPSTONE_TRY(const Bound bound, bind(request, parts.front().backend->draw_limits()));
  std::vector<Measurement> measurements(request.candidates.size());
  for (Part& part : parts) {
    CAPSTONE_TRY(auto checked, part.backend->check(std::move(part.built), bound));
    CAPSTONE_TRY(auto timed, part.backend->time(std::move(checked), bound));
    CAPSTONE_TRY(auto decided, decide(std::move(timed), *request.problem));
    if (parts.size() == 1) return decided;
    for (std::size_t i = 0; i < decided.size(); ++i) measurements[part.places[i]] = std::move(decided[i]);
  }
  return measurements;
}

// What the instrumented builds for the CPU say about the sources that passed.
Result<void> inspect_passed(const JudgeContext& context, const OracleInWaiting& oracle, CloserBuilds& builds,
                            std::vector<Measurement>& measurements) {
  std::vector<InspectedCandidate> passed;
  for (Measurement& m : measurements)
    if (m.gate_one == GateOne::kPassed && !is_python(m.source)) passed.push_back({m.source, &m});
  CAPSTONE_TRY(const Oracle* right, oracle.get());
  return inspect({context.request->problem, right, &builds, context.sandbox, run_timeout(*context.request),
                  *context.say, context.request->replay},
                 passed);
}

// What went wrong in the sources that failed.
Result<void> name_causes_of(const JudgeContext& context, const OracleInWaiting& oracle, CloserBuilds& builds,
                            std::vector<Measurement>& measurements) {
  std::vector<InspectedCandidate> failed;
  for (Measurement& m : measurements)
    if (!is_python(m.source)) failed.push_back({m.source, &m});
  CAPSTONE_TRY(const Oracle* right, oracle.get());
  return name_causes({context.request->problem, right, &builds, context.sandbox,
                      run_timeout(*context.request), *context.say, context.request->replay},
                     failed);
}

// On a GPU gate two was judged before: a pass that is revoked takes its verdict with it.
void revoke_gate_two(std::vector<Measurement>& measurements, const std::vector<GateOne>& before) {
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (before[i] != GateOne::kPassed || measurements[i].gate_one == GateOne::kPassed) continue;
    measurements[i].gate_two = GateTwo::kNotJudged;
    measurements[i].gate_two_reason = "gate one failed";
  }
}

// What a first look on a GPU leaves out. Whatever needs PyTorch keeps it.
JudgeRequest first_look(JudgeRequest request) {
  request.options.hidden_cases = std::min(request.options.hidden_cases, 1);
  if (!request.problem->oracle_is_reference) request.options.python = "none";
  request.options.budget_seconds = std::min(request.options.budget_seconds, 1.0);
  request.restarts = 1;
  request.extra_checks = ExtraChecks::kNever;
  return request;
}

}  // namespace

Result<std::vector<Measurement>> judge(const JudgeRequest& wanted, const Resources& resources,
                                       const Narration& say) {
  const auto begun = std::chrono::steady_clock::now();
  const BackendChoice choice = choose_backend(wanted.options.backend, resources);
  const bool on_gpu = choice.backend == Backend::kCuda;
  const JudgeRequest request =
      on_gpu && wanted.options.quick && is_timed(wanted) ? first_look(wanted) : wanted;
  const Sandbox sandbox = Sandbox::detect(resources);
  const JudgeContext context{&request, &resources, &say, &sandbox};
  const OracleInWaiting oracle(request, resources, &sandbox);
  const bool inspected = on_gpu ? request.options.check_races : !request.options.quick;
  CloserBuilds builds(*request.problem, resources, sandbox);
  // A GPU's timing is not disturbed by compilers, nor a small machine by dozens of them.
  if (inspected && !on_gpu && request.candidates.size() <= kMostBuiltAhead)
    for (const Candidate& candidate : request.candidates)
      if (!is_python(candidate.source)) builds.begin_instrumented(candidate.source, candidate.name);
  CAPSTONE_TRY(auto measurements, run(request, parts_of(context, choice, oracle), oracle));
  if (inspected) {
    std::vector<GateOne> before;
    for (const Measurement& m : measurements) before.push_back(m.gate_one);
    CAPSTONE_CHECK(inspect_passed(context, oracle, builds, measurements));
    if (on_gpu) revoke_gate_two(measurements, before);
  }
  if (request.name_causes) CAPSTONE_CHECK(name_causes_of(context, oracle, builds, measurements));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  for (Measurement& m : measurements) {
    m.seconds = seconds;
    const auto source = read_file(m.source);
    std::string label = source ? label_of_hidden_text(*source, is_python(m.source)) : std::string();
    if (!label.empty()) m.labels.push_back(std::move(label));
    for (const Json& language : m.environment.value("languages", Json::array()))
      m.labels.push_back("note: written in " + language.get<std::string>());
  }
  return measurements;
}

}  // namespace capstone
