#include "harness/judge/gate_one.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "harness/base/text.h"

namespace capstone {

GateOne verdict_of(const WorkerFailure& failure) {
  using Kind = WorkerFailure::Kind;
  switch (failure.kind) {
    case Kind::kTimedOut: return GateOne::kTimedOut;
    case Kind::kReported:
      if (failure.report_kind == "not_judgeable") return GateOne::kNotJudgeable;
      if (failure.report_kind == "undefined_behaviour") return GateOne::kUndefined;
      if (failure.report_kind == "timed_out") return GateOne::kTimedOut;
      if (failure.report_kind == "wrong_output") return GateOne::kWrong;
      return GateOne::kCrashed;
    default: return GateOne::kCrashed;
  }
}

namespace {

// An emulated worker itself stops what runs for too long and says where it was. Only then it is given up.
constexpr std::chrono::milliseconds kLastWords{10000};

Error interrupted_error() { return {"interrupted", {}, {}, ExitCode::kInterrupted}; }

CaseResult failed_case(const PreparedCase& prepared, const WorkerFailure& failure, const std::string& schedule) {
  CaseResult result = blank_result(prepared.plan);
  result.schedule = schedule;
  result.problem = failure.what;
  result.where = failure.where;
  result.hint = failure.hint;
  result.traceback = failure.trace;
  return result;
}

// A run that is wrong after one that was right: the cause is what differs between the two, not the arithmetic.
void blame_the_difference(CaseResult& result) {
  constexpr const char* kPattern = "differs from run to run (race, or memory that was never written)";
  result.problem = fmt::format("{}; this run: {}", kPattern, result.problem);
  result.hint = "the run before was right on the same inputs. A __syncthreads() is missing, two threads write the same element, or "
                "shared memory, the workspace or an accumulator is read before it is written; " + result.hint;
  if (result.diagnosis) result.diagnosis->pattern = fmt::format("{}: {}", kPattern, result.diagnosis->pattern);
}

void add_label(Measurement& into, std::string label) {
  if (std::find(into.labels.begin(), into.labels.end(), label) == into.labels.end()) into.labels.push_back(std::move(label));
}

}  // namespace

std::string label_of_libraries(const std::set<std::string>& libraries) {
  constexpr std::array kKnown{"libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse", "libcutensor", "libcutlass",
                              "libnccl", "libnpp", "libnvinfer", "libtorch", "libc10"};
  std::vector<std::string> found;
  for (const std::string& library : libraries)
    if (std::any_of(kKnown.begin(), kKnown.end(), [&](const char* known) { return library.starts_with(known); })) found.push_back(library);
  if (found.empty()) return {};
  return fmt::format("library: {} {} loaded by the kernel's process", join(found, ", "), found.size() == 1 ? "was" : "were");
}

Result<tl::expected<CaseResult, WorkerFailure>> run_prepare(const GateOneSetup& setup, Runner& worker, const PreparedCase& prepared,
                                                            Json request, std::span<std::byte> image) {
  using Outcome = tl::expected<CaseResult, WorkerFailure>;
  if (!setup.problem->prepare) {
    CaseResult nothing;
    nothing.passed = true;
    return Outcome(std::move(nothing));
  }
  const Layout& layout = prepared.layout;
  std::vector<std::byte> before(image.begin(), image.end()), after(image.size());
  hide_inputs(*setup.problem, prepared, before, fresh_seed());
  CAPSTONE_CHECK(setup.arena->load(before));
  request["op"] = "prepare";
  request["prepared"] = layout.prepared_offset;
  if (auto answer = worker.ask(request, setup.run_timeout + kLastWords); !answer) return Outcome(tl::unexpect, answer.error());
  CAPSTONE_CHECK(setup.arena->fetch(after));
  std::memcpy(image.data() + layout.prepared_offset, after.data() + layout.prepared_offset, layout.prepared_bytes);
  return Outcome(examine_preparation(*setup.problem, prepared, before, after));
}

Result<PrivateBytes> gate_one(const GateOneSetup& setup, const std::vector<CasePlan>& plans, Measurement& into) {
  const Problem& problem = *setup.problem;
  auto worker = setup.start_worker();
  if (!worker) {
    if (worker.error().kind == WorkerFailure::Kind::kInterrupted) return fail(interrupted_error());
    PreparedCase nothing;
    nothing.plan.id = "start";
    into.cases.push_back(failed_case(nothing, worker.error(), {}));
    into.gate_one = verdict_of(worker.error());
    return PrivateBytes{};
  }
  into.gate_one = GateOne::kPassed;
  int number = 0;
  std::size_t mapped = 0;  // bytes of the arena that the worker has: a case of the same size finds its tensors at the same addresses
  for (const CasePlan& plan : plans) {
    setup.say(fmt::format("{}: gate one, case {} of {} ({}{})", setup.who, ++number, plans.size(), to_string(plan.sizes),
                          plan.battery == Battery::kPlain ? "" : fmt::format(", inputs {}", description_of(plan.battery))));
    CAPSTONE_TRY(Json question, workspace_arguments(problem, plan.sizes));
    auto asked = ask_private_bytes(**worker, problem, question);
    const PrivateBytes bytes = asked.value_or(PrivateBytes{});
    CAPSTONE_TRY(PreparedCase prepared, prepare_case(problem, plan, *setup.oracle, bytes.workspace, bytes.prepared));
    std::optional<WorkerFailure> broken;
    if (!asked) broken = asked.error();
    if (!broken && mapped != prepared.layout.bytes) {
      CAPSTONE_TRY(int arena, setup.arena->resize(prepared.layout.bytes));
      if (auto answer = (*worker)->ask({{"op", "arena"}, {"bytes", prepared.layout.bytes}}, std::chrono::seconds(20), arena); !answer)
        broken = answer.error();
      else
        mapped = prepared.layout.bytes;
    }
    CAPSTONE_TRY(Json args, call_arguments(problem, prepared.layout, plan.sizes));

    std::vector<std::byte> before = prepared.image, after(prepared.image.size()), first;
    for (const std::string& schedule : setup.schedules) {
      if (broken) break;
      const std::uint64_t poison_seed = fresh_seed();
      poison_image(problem, prepared, before, poison_seed);
      Json request{{"op", "run"}, {"args", args}, {"seed", fresh_seed() >> 1}};
      request["extents"] = call_extents(problem, prepared.layout);
      request["limit_ms"] = setup.run_timeout.count();
      if (!schedule.empty()) request["schedule"] = schedule;
      CAPSTONE_TRY(auto preparation, run_prepare(setup, **worker, prepared, request, before));
      if (preparation && !preparation->passed) {
        preparation->schedule = schedule;
        into.cases.push_back(std::move(*preparation));
        into.gate_one = GateOne::kWrong;
        break;
      }
      CAPSTONE_CHECK(setup.arena->load(before));
      request["workspace"] = prepared.layout.workspace_bytes ? Json(prepared.layout.workspace_offset) : Json(nullptr);
      if (problem.prepare) request["prepared"] = prepared.layout.prepared_offset;
      auto answer = preparation ? (*worker)->ask(request, setup.run_timeout + kLastWords)
                                : tl::expected<Packet, WorkerFailure>(tl::unexpect, preparation.error());
      if (!answer) {
        broken = answer.error();
        into.cases.push_back(failed_case(prepared, *broken, schedule));
        break;
      }
      CAPSTONE_CHECK(setup.arena->fetch(after));
      CaseResult result = examine(problem, prepared, before, after, poison_seed);
      result.schedule = schedule;
      bool passed = result.passed;
      if (!passed && !first.empty()) blame_the_difference(result);
      into.cases.push_back(std::move(result));
      if (!passed) {
        into.gate_one = GateOne::kWrong;
        break;
      }
      if (first.empty()) first = after;
      else if (!first_difference(problem, prepared.layout, first, after).empty()) add_label(into, std::string(kVaries));
    }
    if (broken) {
      if (broken->kind == WorkerFailure::Kind::kInterrupted) return fail(interrupted_error());
      if (into.cases.empty() || into.cases.back().id != plan.id || into.cases.back().passed)
        into.cases.push_back(failed_case(prepared, *broken, {}));
      if (into.gate_one != GateOne::kWrong) into.gate_one = verdict_of(*broken);  // what comes after a wrong result excuses nothing
      return PrivateBytes{};
    }
  }
  if (std::string label = label_of_libraries((*worker)->libraries()); !label.empty()) add_label(into, std::move(label));
  if (!setup.ask_ahead || into.gate_one != GateOne::kPassed) return PrivateBytes{};
  CAPSTONE_TRY(Json question, workspace_arguments(problem, problem.measure));
  auto wanted = ask_private_bytes(**worker, problem, question);
  if (wanted) return *wanted;
  if (wanted.error().kind == WorkerFailure::Kind::kInterrupted) return fail(interrupted_error());
  PreparedCase measured;
  measured.plan.id = "measure";
  measured.plan.sizes = problem.measure;
  into.cases.push_back(failed_case(measured, wanted.error(), {}));
  into.gate_one = verdict_of(wanted.error());
  return PrivateBytes{};
}

}  // namespace capstone
