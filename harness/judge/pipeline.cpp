#include "harness/judge/pipeline.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include "harness/base/text.h"
#include "harness/judge/reference_oracle.h"

namespace capstone {

OracleInWaiting::OracleInWaiting(const JudgeRequest& request, const Resources& resources,
                                 const Sandbox* sandbox)
    : pending_(std::async(std::launch::async, [&request, &resources, sandbox] {
                 return load_oracle(*request.problem, resources, request.options.python, sandbox);
               }).share()) {}

Result<const Oracle*> OracleInWaiting::get() const {
  const Result<Oracle>& loaded = pending_.get();
  if (!loaded) return fail(loaded.error());
  return &*loaded;
}

Result<Bound> bind(const JudgeRequest& request, const DrawLimits& limits) {
  Bound bound;
  bound.problem = request.problem;
  std::vector<CasePlan> plans;
  if (request.replay) {
    plans = {*request.replay};
  } else {
    CAPSTONE_TRY(plans, plan_cases(*request.problem, request.options.hidden_cases, limits));
  }
  CAPSTONE_TRY(bound.cases, bind_cases(*request.problem, std::move(plans)));
  return bound;
}

Json host_environment(const Resources& resources) {
  Json environment;
  environment["tool"] = resources.version;
  utsname system{};
  ::uname(&system);
  environment["system"] = fmt::format("{} {}", system.sysname, system.release);
  environment["cpu_threads"] = std::thread::hardware_concurrency();
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) {
      environment["cpu"] = std::string(trim(line.substr(line.find(':') + 1)));
      break;
    }
  return environment;
}

bool is_timed(const JudgeRequest& request) { return request.timing && !request.replay; }

Measurement blank_measurement(const JudgeRequest& request, const Candidate& candidate, const Sandbox& sandbox,
                              const Json& environment) {
  Measurement m;
  m.candidate = candidate.name;
  m.source = candidate.source.string();
  m.problem_id = request.problem->id;
  m.problem_digest = request.problem->digest;
  m.isolation = sandbox.description();
  m.environment = environment;
  return m;
}

std::chrono::milliseconds run_timeout(const JudgeRequest& request) {
  return std::chrono::milliseconds(static_cast<long>(request.options.timeout_seconds * 1000));
}

}  // namespace capstone
