#include "cli/replaying.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/show.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

// The recorded case of that name. Names of failed cases come first: they are what one replays.
Result<CaseResult> recorded_case(const Measurement& last, const std::string& wanted) {
  std::vector<std::string> failed, passed;
  const CaseResult* found = nullptr;
  for (const CaseResult& c : last.cases) {
    if (c.seed.empty()) continue;
    if ((c.id == wanted && (!found || !c.passed)) || (wanted.empty() && (!found || (found->passed && !c.passed)))) found = &c;
    auto& names = c.passed ? passed : failed;
    if (std::find(names.begin(), names.end(), c.id) == names.end()) names.push_back(c.id);
  }
  if (found) return *found;
  std::vector<std::string> all = failed;
  all.insert(all.end(), passed.begin(), passed.end());
  std::string hint = failed.empty() ? "it has no failed case" : "failed: " + join(failed, ", ");
  if (auto meant = nearest(wanted, all)) hint = "did you mean `" + *meant + "`?  (" + hint + ")";
  return fail(fmt::format("the last measurement of {} has no case {} that can be run again", last.candidate, wanted.empty() ? "at all" : wanted), {}, hint);
}

}  // namespace

Result<ExitCode> replay_case(const Context& context, const Project& project, const Measurement& last, const fs::path& source, const std::string& wanted,
                             const JudgeOptions& options, const std::string& again) {
  CAPSTONE_TRY(CaseResult recorded, recorded_case(last, wanted));
  CAPSTONE_TRY(FileLock lock, lock_project(project));
  JudgeRequest request = request_of(project.problem, options);
  CAPSTONE_TRY(request.replay, plan_of(project.problem, recorded));
  request.options.quick = recorded.build.empty();  // what went wrong in a plain build shows there
  request.candidates = {{last.candidate, source}};
  CAPSTONE_TRY(auto measurements, judge(request, context.resources, [&](const std::string& text) { context.terminal.progress(text); }));
  context.terminal.end_progress();
  const Terminal& t = context.terminal;
  t.say(fmt::format("note: case {} of {} again, with the source as it is now; no version is made and nothing is recorded", recorded.id, last.version));
  if (context.json) {
    t.out(Json(measurements).dump(2));
    return exit_code_of(measurements);
  }
  const Measurement& m = measurements.front();
  if (std::string why = explain_failure(m, t, true); !why.empty()) t.out(why);
  else t.out(fmt::format("{}: case {} ({}): {}", m.candidate, recorded.id, to_string(request.replay->sizes), label_of(m.gate_one)));
  for (const std::string& label : m.labels) t.out(m.candidate + ": " + label);
  t.out(m.gate_one == GateOne::kPassed ? fmt::format("next: all cases: capstone measure {}", m.candidate)
                                       : fmt::format("next: change one thing, then again: {}", again));
  return exit_code_of(measurements);
}

}  // namespace capstone::cli
