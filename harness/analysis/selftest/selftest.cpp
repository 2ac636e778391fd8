#include "harness/analysis/selftest/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "harness/base/text.h"
#include "harness/judge/python_candidate.h"
#include "harness/runtime/build/cuda.h"

namespace capstone {
namespace {

using Kind = Expectation::Kind;
using Clock = std::chrono::steady_clock;

constexpr int kHiddenCases = 2;
constexpr std::size_t kTogether = 8;  // honest kernels in one race

// "PASS, SLOWER 0.71x (in-process)"
std::string outcome(const Measurement& m) {
  std::string text(label_of(m.gate_one));
  if (m.gate_one == GateOne::kPassed && m.gate_two != GateTwo::kNotJudged) {
    text += ", " + std::string(label_of(m.gate_two));
    if (m.measured && m.measured->speedup) text += " " + format_speedup(m.measured->speedup->point);
  }
  if (m.backend == Backend::kCuda) text += fmt::format(" ({})", recorded_name(m.execution));
  return text;
}

std::string reason(const Measurement& m) {
  if (const CaseResult* failure = m.first_failure()) return failure->problem;
  if (!m.build.ok && m.build.first_error) return m.build.first_error->text;
  return join(m.labels, "; ");
}

// The expectation for a judgement, and what is already wrong with its execution.
struct Promise {
  const Expectation* expectation;
  std::string wrong_execution;
};
Promise promise_for(const CorpusCase& corpus_case, Backend backend, Execution execution,
                    const Measurement& m) {
  if (backend == Backend::kEmulated) return {&corpus_case.emulated, {}};
  // not judgeable when replayed: its launch could not be captured
  const bool replayed = m.execution == Execution::kReplayed && m.gate_one != GateOne::kNotJudgeable;
  const bool must_fall_back = corpus_case.cuda_replayed.kind == Kind::kFallsBack;
  if (replayed && must_fall_back)
    return {&corpus_case.cuda_in_process, "it was replayed, and should not have been"};
  if (replayed) return {&corpus_case.cuda_replayed, {}};
  if (execution == Execution::kReplayed && must_fall_back) return {&corpus_case.cuda_replayed, {}};
  return {&corpus_case.cuda_in_process, {}};
}

bool machine_could_not(GateOne verdict) {
  return verdict == GateOne::kNotJudgeable || verdict == GateOne::kMachineFault;
}

RowState state_of(const Expectation& expected, const Measurement& m) {
  const bool passed = m.gate_one == GateOne::kPassed;
  switch (expected.kind) {
    case Kind::kCannotShow:
      return RowState::kNotRun;
    case Kind::kFallsBack:
      return passed ? RowState::kEscaped : RowState::kOk;
    case Kind::kPasses:
      return passed ? RowState::kOk : machine_could_not(m.gate_one) ? RowState::kNotRun : RowState::kRefused;
    default:
      break;
  }
  if (machine_could_not(m.gate_one)) return RowState::kNotRun;
  switch (expected.kind) {
    case Kind::kCaught:
      if (passed) return RowState::kEscaped;
      return std::find(expected.verdicts.begin(), expected.verdicts.end(), m.gate_one) !=
                     expected.verdicts.end()
                 ? RowState::kOk
                 : RowState::kDiffers;
    case Kind::kLabelled:
      if (!passed) return RowState::kDiffers;
      return std::any_of(
                 m.labels.begin(), m.labels.end(),
                 [&](const std::string& label) { return label.find(expected.text) != std::string::npos; })
                 ? RowState::kOk
                 : RowState::kEscaped;
    default:  // not fooled: whatever the verdict, the trick must not have paid
      if (!passed) return RowState::kOk;
      return m.gate_two != GateTwo::kFaster && m.gate_two != GateTwo::kNotJudged && m.measured
                 ? RowState::kOk
                 : RowState::kEscaped;
  }
}

RowResult blank_row(const CorpusCase& corpus_case) {
  RowResult row;
  row.name = corpus_case.name;
  row.row = corpus_case.row;
  return row;
}

RowResult not_run(const CorpusCase& corpus_case, std::string expected, std::string why) {
  RowResult row = blank_row(corpus_case);
  row.expected = std::move(expected);
  row.why = std::move(why);
  return row;
}

// Why a case cannot be shown, known before anything is built; empty if it can.
std::string hopeless(const CorpusCase& corpus_case, const SelftestRequest& request) {
  auto why = [](const Expectation& e) { return e.kind == Kind::kCannotShow ? e.text : std::string(); };
  if (request.backend == Backend::kEmulated) return why(corpus_case.emulated);
  if (request.execution == Execution::kInProcess) return why(corpus_case.cuda_in_process);
  if (request.execution == Execution::kReplayed && is_python(corpus_case.source))
    return "a Python process cannot be captured";
  if (request.execution == Execution::kReplayed) return why(corpus_case.cuda_replayed);
  return why(corpus_case.cuda_replayed).empty() ? std::string() : why(corpus_case.cuda_in_process);
}

Result<RowResult> read_hostile_file(const CorpusCase& corpus_case, const SelftestRequest& request) {
  RowResult row = blank_row(corpus_case);
  const HostileInput& input = *corpus_case.input;
  row.expected = input.refused ? "refused" : fmt::format("ends within {:g} s", corpus_case.timeout_seconds);
  auto reader = request.readers.find(input.reader);
  if (reader == request.readers.end())
    return not_run(corpus_case, row.expected, "nothing here reads a " + input.reader);
  const auto begun = Clock::now();
  const std::optional<std::string> refused = reader->second(input);
  row.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  row.got = fmt::format("{} in {}", refused ? "refused" : "read", format_time_ms(row.seconds * 1000));
  row.why = refused.value_or("");
  row.state = row.seconds > corpus_case.timeout_seconds || (input.refused && !refused) ? RowState::kEscaped
                                                                                       : RowState::kOk;
  return row;
}

}  // namespace

std::string_view label_of(RowState state) {
  switch (state) {
    case RowState::kOk:
      return "ok";
    case RowState::kEscaped:
      return "ESCAPED";
    case RowState::kRefused:
      return "REFUSED";
    case RowState::kDiffers:
      return "DIFFERS";
    case RowState::kNotRun:
      return "not run";
  }
  return "?";
}

RowResult faulty_row(const CorpusCase& corpus_case, const Error& error) {
  RowResult row =
      not_run(corpus_case, "a judgement", error.what + (error.where.empty() ? "" : " (" + error.where + ")"));
  row.state = RowState::kDiffers;
  row.got = "a fault of the machine";
  return row;
}

RowResult assess(const CorpusCase& corpus_case, Backend backend, Execution execution,
                 const Measurement& measurement) {
  RowResult row = blank_row(corpus_case);
  const Promise promise = promise_for(corpus_case, backend, execution, measurement);
  row.expected = to_string(*promise.expectation);
  row.got = outcome(measurement);
  row.state = state_of(*promise.expectation, measurement);
  row.why = reason(measurement);
  if (promise.expectation->kind == Kind::kCannotShow) row.why = promise.expectation->text;
  if (!promise.wrong_execution.empty()) {
    row.state = RowState::kDiffers;
    row.why = promise.wrong_execution;
  }
  if (backend == Backend::kCuda && execution != Execution::kInProcess)
    row.replayed =
        measurement.execution == Execution::kReplayed && measurement.gate_one != GateOne::kNotJudgeable;
  row.measurement = measurement;
  // The part of the record that the verdict rests on, without passed cases and samples.
  row.measurement["cases_run"] = measurement.cases.size();
  Json& cases = row.measurement["cases"];
  cases.erase(
      std::remove_if(cases.begin(), cases.end(), [](const Json& c) { return c.value("passed", false); }),
      cases.end());
  row.measurement["cases_failed"] = cases.size();
  if (cases.size() > 1) cases.erase(cases.begin() + 1, cases.end());
  for (Json& c : cases)
    if (c.contains("diagnosis") && c["diagnosis"].is_object()) c["diagnosis"].erase("mismatches");
  row.measurement.erase("environment");  // stored once, in the whole record
  for (const char* key : {"log", "command"}) row.measurement["build"].erase(key);
  if (measurement.measured)
    for (Json& arm : row.measurement["measured"]["arms"]) for (const char* key : {"samples_ms", "dirty_samples_ms"}) arm.erase(key);
  return row;
}

std::vector<std::vector<CorpusCase>> groups_of(const std::vector<CorpusCase>& cases, Backend backend) {
  std::vector<std::vector<CorpusCase>> groups;
  for (const CorpusCase& corpus_case : cases) {
    auto together = [&](const std::vector<CorpusCase>& group) {
      const CorpusCase& first = group.front();
      return backend == Backend::kCuda && corpus_case.honest() && first.honest() && !corpus_case.input &&
             !first.input && corpus_case.problem == first.problem &&
             corpus_case.timeout_seconds == first.timeout_seconds &&
             corpus_case.needs_isolation == first.needs_isolation && group.size() < kTogether;
    };
    auto group = std::find_if(groups.begin(), groups.end(), together);
    if (group == groups.end()) group = groups.insert(groups.end(), std::vector<CorpusCase>());
    group->push_back(corpus_case);
  }
  return groups;
}

Result<std::vector<RowResult>> run_group(const std::vector<CorpusCase>& group, const SelftestRequest& request,
                                         const Resources& resources, const Narration& say) {
  std::vector<RowResult> rows;
  std::vector<const CorpusCase*> shown;
  for (const CorpusCase& corpus_case : group) {
    if (corpus_case.input) {
      CAPSTONE_TRY(RowResult row, read_hostile_file(corpus_case, request));
      rows.push_back(std::move(row));
    } else if (std::string why = hopeless(corpus_case, request); !why.empty()) {
      rows.push_back(not_run(corpus_case, "cannot show", why));
    } else if (Sandbox sandbox = Sandbox::detect(resources);
               corpus_case.needs_isolation && !sandbox.isolated()) {
      rows.push_back(not_run(corpus_case, "needs isolation",
                             "untrusted processes are not isolated here: " + sandbox.description()));
    } else if (auto toolkit = find_toolkit(resources);
               corpus_case.needs_nvcc && request.backend != Backend::kCuda && !toolkit) {
      rows.push_back(not_run(corpus_case, "needs nvcc", toolkit.error().what));
    } else {
      shown.push_back(&corpus_case);
    }
  }
  if (shown.empty()) return rows;
  CAPSTONE_TRY(const Problem problem, load_problem(shown.front()->problem));
  JudgeRequest judged;
  judged.extra_checks = ExtraChecks::kAlways;
  judged.name_causes = false;  // the promises are about verdicts
  judged.problem = &problem;
  for (const CorpusCase* corpus_case : shown)
    judged.candidates.push_back({fmt::format("case-{}", judged.candidates.size() + 1), corpus_case->source});
  judged.options.backend = request.backend;
  judged.options.execution = request.execution;
  judged.options.budget_seconds = request.budget_seconds;
  judged.options.timeout_seconds = shown.front()->timeout_seconds;
  judged.options.hidden_cases = kHiddenCases;
  judged.options.python = "none";
  judged.timing = request.backend == Backend::kCuda;
  const auto begun = Clock::now();
  CAPSTONE_TRY(const auto measurements, judge(judged, resources, say));
  const double seconds =
      std::chrono::duration<double>(Clock::now() - begun).count() / static_cast<double>(shown.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    rows.push_back(assess(*shown[i], request.backend, request.execution, measurements[i]));
    rows.back().seconds = seconds;
  }
  return rows;
}

Rate rate_of(const std::vector<RowResult>& rows) {
  Rate rate;
  for (const RowResult& row : rows) {
    if (row.row == 0 && row.replayed) ++(*row.replayed ? rate.replayed : rate.in_process);
    if (row.state == RowState::kNotRun) {
      ++rate.not_run;
      continue;
    }
    ++(row.row ? rate.tricks : rate.honest);
    if (row.state == RowState::kOk) ++(row.row ? rate.caught : rate.passed);
  }
  return rate;
}

void to_json(Json& json, const RowResult& row) {
  json = Json{{"name", row.name},
              {"row", row.row ? Json(row.row) : Json("honest")},
              {"expected", row.expected},
              {"got", row.got},
              {"state", label_of(row.state)},
              {"why", row.why},
              {"seconds", row.seconds}};
  if (row.replayed) json["replayed"] = *row.replayed;
  if (!row.measurement.is_null()) json["measurement"] = row.measurement;
}

void from_json(const Json& json, RowResult& row) {
  row.name = json.at("name");
  row.row = json.at("row").is_number() ? json["row"].get<int>() : 0;
  row.expected = json.value("expected", "");
  row.got = json.value("got", "");
  for (RowState state :
       {RowState::kOk, RowState::kEscaped, RowState::kRefused, RowState::kDiffers, RowState::kNotRun})
    if (json.value("state", "") == label_of(state)) row.state = state;
  row.why = json.value("why", "");
  row.seconds = json.value("seconds", 0.0);
  if (auto replayed = json.find("replayed"); replayed != json.end()) row.replayed = replayed->get<bool>();
  row.measurement = json.value("measurement", Json());
}

void to_json(Json& json, const Rate& rate) {
  json = Json{{"tricks", rate.tricks},
              {"caught", rate.caught},
              {"honest", rate.honest},
              {"passed", rate.passed},
              {"not_run", rate.not_run}};
  if (rate.replayed + rate.in_process)
    json.update({{"honest_replayed", rate.replayed}, {"honest_in_process", rate.in_process}});
}

}  // namespace capstone
