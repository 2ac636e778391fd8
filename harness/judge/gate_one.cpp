#include "harness/judge/gate_one.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "harness/base/text.h"
#include "harness/correctness/trials.h"
#include "harness/emulator/runtime/time_limit.h"
#include "harness/model/labels.h"

namespace capstone {

GateOne verdict_of(const WorkerFailure& failure) {
  using Kind = WorkerFailure::Kind;
  switch (failure.kind) {
    case Kind::kTimedOut:
      return GateOne::kTimedOut;
    case Kind::kReported:
      if (failure.report_kind == "not_judgeable") return GateOne::kNotJudgeable;
      if (failure.report_kind == "undefined_behaviour") return GateOne::kUndefined;
      if (failure.report_kind == "timed_out") return GateOne::kTimedOut;
      if (failure.report_kind == "wrong_output") return GateOne::kWrong;
      return GateOne::kCrashed;
    default:
      return GateOne::kCrashed;
  }
}

std::chrono::milliseconds patience_with_emulator(std::chrono::milliseconds run_timeout) {
  constexpr std::chrono::milliseconds kLastWords{10000};
  return capstone_emu::kMostWaits * run_timeout + kLastWords;
}

namespace {

Error interrupted_error() { return {"interrupted", {}, {}, ExitCode::kInterrupted}; }

CaseResult failed_case(const PreparedCase& prepared, const WorkerFailure& failure,
                       const std::string& schedule) {
  CaseResult result = blank_result(prepared.plan);
  result.schedule = schedule;
  result.problem = failure.what;
  result.where = failure.where;
  result.hint = failure.hint;
  result.traceback = failure.trace;
  return result;
}

// A run that is wrong after one that was right: the cause is what differs between the two, not the
// arithmetic.
void blame_the_difference(CaseResult& result) {
  constexpr const char* kPattern = "differs from run to run (race, or memory that was never written)";
  result.problem = fmt::format("{}; this run: {}", kPattern, result.problem);
  result.hint =
      "the run before was right on the same inputs. A __syncthreads() is missing, two threads write the same "
      "element, or "
      "shared memory, the workspace or an accumulator is read before it is written; " +
      result.hint;
  if (result.diagnosis)
    result.diagnosis->pattern = fmt::format("{}: {}", kPattern, result.diagnosis->pattern);
}

// What a worker says about a run beyond its success: untrusted text; empty where it says nothing.
std::string text_of(const Json& answer, const char* key) {
  constexpr std::size_t kLongest = 600;
  return to_utf8(printable(text_at(answer, key)).substr(0, kLongest));
}

// The beginning of what a run printed: enough to look for a mistake, not enough to fill a ledger.
std::string shortened(const std::string& printed) {
  constexpr std::size_t kMostLines = 40, kMostBytes = 4000;
  std::string text;
  std::size_t lines = 0;
  for (const std::string& line : split(trim(printed), '\n')) {
    if (++lines > kMostLines || text.size() + line.size() > kMostBytes)
      return text + (text.empty() ? "" : "\n") + "… (cut)";
    text += (text.empty() ? "" : "\n") + to_utf8(printable(line));
  }
  return text;
}

// What the worker noted about a run that is no error: untrusted text, too.
std::vector<std::string> notes_of(const Json& answer) {
  constexpr std::size_t kMostNotes = 4, kLongest = 300;
  std::vector<std::string> notes;
  const auto found = answer.find("notes");
  if (found == answer.end() || !found->is_array()) return notes;
  for (const Json& each : *found)
    if (each.is_string() && notes.size() < kMostNotes)
      notes.push_back(to_utf8(printable(each.get<std::string>()).substr(0, kLongest)));
  return notes;
}

void add_label(Measurement& into, std::string label) {
  if (std::find(into.labels.begin(), into.labels.end(), label) == into.labels.end())
    into.labels.push_back(std::move(label));
}

}  // namespace

std::string label_of_libraries(const std::set<std::string>& libraries) {
  constexpr std::array kKnown{"libcublas",   "libcudnn",    "libcufft",   "libcurand", "libcusolver",
                              "libcusparse", "libcutensor", "libcutlass", "libnccl",   "libnpp",
                              "libnvinfer",  "libtorch",    "libc10"};
  std::vector<std::string> found;
  for (const std::string& library : libraries)
    if (std::any_of(kKnown.begin(), kKnown.end(),
                    [&](const char* known) { return library.starts_with(known); }))
      found.push_back(library);
  if (found.empty()) return {};
  return fmt::format("library: {} {} loaded by the kernel's process", join(found, ", "),
                     found.size() == 1 ? "was" : "were");
}

Result<tl::expected<CaseResult, WorkerFailure>> run_prepare(const GateOneSetup& setup, Runner& worker,
                                                            const PreparedCase& prepared, Json request,
                                                            std::span<std::byte> image) {
  using Outcome = tl::expected<CaseResult, WorkerFailure>;
  if (!setup.problem->prepare) {
    CaseResult nothing;
    nothing.passed = true;
    return Outcome(std::move(nothing));
  }
  const Layout& layout = prepared.layout;
  std::vector<std::byte> before(image.begin(), image.end()), after(image.size());
  const std::uint64_t seed = fresh_seed();
  hide_inputs(*setup.problem, prepared, before, seed);
  CAPSTONE_CHECK(setup.arena->load(before));
  CAPSTONE_CHECK(poison_workspace(*setup.arena, layout, seed));
  request["op"] = "prepare";
  request["prepared"] = layout.prepared_offset;
  if (auto answer = worker.ask(request, setup.patience); !answer)
    return Outcome(tl::unexpect, answer.error());
  CAPSTONE_CHECK(setup.arena->fetch(after));
  std::memcpy(image.data() + layout.prepared_offset, after.data() + layout.prepared_offset,
              layout.prepared_bytes);
  CAPSTONE_TRY(const auto overwritten, overwritten_workspace(*setup.arena, layout, seed, true));
  return Outcome(examine_preparation(*setup.problem, prepared, before, after, overwritten));
}

namespace {

class CaseLoop {
 public:
  CaseLoop(const GateOneSetup& setup, Measurement& into)
      : setup_(setup), problem_(*setup.problem), into_(into) {}

  Result<PrivateBytes> run(const std::vector<BoundCase>& cases) {
    auto worker = setup_.start_worker();
    if (!worker) return not_started(worker.error());
    worker_ = std::move(*worker);
    into_.gate_one = GateOne::kPassed;
    int number = 0;
    for (const BoundCase& each : cases) {
      announce(each.plan, ++number, static_cast<int>(cases.size()));
      CAPSTONE_CHECK(run_case(each));
      if (broken_) return give_up(each.plan);
    }
    if (std::string label = label_of_libraries(worker_->libraries()); !label.empty())
      add_label(into_, std::move(label));
    if (counts_kernels_ && !kernels_ && into_.gate_one == GateOne::kPassed)
      add_label(into_, std::string(kNeedsExplanation) +
                           "launch() started no kernel in any case: the host did the work");
    if (!setup_.ask_ahead || into_.gate_one != GateOne::kPassed) return PrivateBytes{};
    return ask_ahead();
  }

 private:
  void announce(const CasePlan& plan, int number, int total) const {
    StageEvent event(Stage::kGateOne, setup_.who, to_string(plan.sizes));
    if (plan.battery != Battery::kPlain)
      event.detail += ", inputs " + std::string(description_of(plan.battery));
    event.number = number;
    event.total = total;
    setup_.say(event);
  }

  Result<PrivateBytes> not_started(const WorkerFailure& failure) {
    if (failure.kind == WorkerFailure::Kind::kInterrupted) return fail(interrupted_error());
    PreparedCase nothing;
    nothing.plan.id = "start";
    into_.cases.push_back(failed_case(nothing, failure, {}));
    into_.gate_one = verdict_of(failure);
    return PrivateBytes{};
  }

  // After a crash or a time-out.
  Result<PrivateBytes> give_up(const CasePlan& plan) {
    if (broken_->kind == WorkerFailure::Kind::kInterrupted) return fail(interrupted_error());
    if (into_.cases.empty() || into_.cases.back().id != plan.id || into_.cases.back().passed) {
      PreparedCase unprepared;
      unprepared.plan = plan;
      into_.cases.push_back(failed_case(unprepared, *broken_, {}));
    }
    if (into_.gate_one != GateOne::kWrong)
      into_.gate_one = verdict_of(*broken_);  // what comes after a wrong result excuses nothing
    return PrivateBytes{};
  }

  // One case under every schedule, or under one that its seed chooses. A failure of the worker is in broken_.
  Result<void> run_case(const BoundCase& which) {
    CAPSTONE_TRY(Json question, workspace_arguments(which.bound));
    auto asked = ask_private_bytes(*worker_, problem_, question);
    const PrivateBytes bytes = asked.value_or(PrivateBytes{});
    CAPSTONE_TRY(const PreparedCase prepared,
                 prepare_case(which, *setup_.oracle, bytes.workspace, bytes.prepared));
    if (!asked) broken_ = asked.error();
    if (!broken_) CAPSTONE_CHECK(map_arena(prepared.layout.bytes));
    if (broken_) return {};
    CAPSTONE_TRY(Json args, call_arguments(which.bound, prepared.layout));
    const Json request{{"op", "run"}, {"args", std::move(args)}};
    std::vector<std::byte> first;
    std::span<const std::string> schedules = setup_.schedules;
    if (which.plan.one_schedule && !schedules.front().empty())
      schedules = schedules.subspan(which.plan.seed % schedules.size(), 1);
    for (const std::string& schedule : schedules) {
      CAPSTONE_TRY(const bool right, run_once(prepared, request, schedule, first));
      if (!right) break;
    }
    return {};
  }

  // A case of the same size finds its tensors at the same addresses.
  Result<void> map_arena(std::size_t bytes) {
    if (mapped_ == bytes) return {};
    CAPSTONE_TRY(int arena, setup_.arena->resize(bytes));
    if (auto answer = worker_->ask({{"op", "arena"}, {"bytes", bytes}}, std::chrono::seconds(20), arena);
        !answer)
      broken_ = answer.error();
    else
      mapped_ = bytes;
    return {};
  }

  // @return whether the outputs were right. `first`: the arena after the first run of this case; empty before
  // it
  Result<bool> run_once(const PreparedCase& prepared, Json request, const std::string& schedule,
                        std::vector<std::byte>& first) {
    std::vector<std::byte> before = prepared.image, after(prepared.image.size());
    const std::uint64_t poison_seed = fresh_seed();
    poison_image(problem_, prepared, before, poison_seed);
    request["seed"] = fresh_seed() >> 1;
    request["extents"] = call_extents(problem_, prepared.layout);
    request["limit_ms"] = setup_.run_timeout.count();
    if (!schedule.empty()) request["schedule"] = schedule;
    if (setup_.trap) request["trap"] = true;
    CAPSTONE_TRY(auto preparation, run_prepare(setup_, *worker_, prepared, request, before));
    if (preparation && !preparation->passed) {
      preparation->schedule = schedule;
      return wrong(std::move(*preparation));
    }
    CAPSTONE_CHECK(setup_.arena->load(before));
    CAPSTONE_CHECK(poison_workspace(*setup_.arena, prepared.layout, poison_seed));
    request["workspace"] =
        prepared.layout.workspace_bytes ? Json(prepared.layout.workspace_offset) : Json(nullptr);
    if (problem_.prepare) request["prepared"] = prepared.layout.prepared_offset;
    auto answer = preparation ? worker_->ask(request, setup_.patience)
                              : tl::expected<Packet, WorkerFailure>(tl::unexpect, preparation.error());
    const std::string printed = shortened(worker_->take_printed());
    if (!answer) {
      broken_ = answer.error();
      into_.cases.push_back(failed_case(prepared, *broken_, schedule));
      into_.cases.back().printed = printed;
      return false;
    }
    CAPSTONE_CHECK(setup_.arena->fetch(after));
    CAPSTONE_TRY(const auto overwritten,
                 overwritten_workspace(*setup_.arena, prepared.layout, poison_seed, false));
    CaseResult result = examine(problem_, prepared, before, after, poison_seed, overwritten);
    result.schedule = schedule;
    if (!result.passed || into_.cases.empty()) result.printed = printed;
    if (!result.passed && first.empty() && setup_.oracle)
      CAPSTONE_CHECK(try_mistakes(problem_, prepared, before, after, *setup_.oracle, result));
    if (auto kernels = answer->message.find("kernels");
        kernels != answer->message.end() && kernels->is_number_unsigned()) {
      kernels_ |= kernels->get<std::uint64_t>() > 0;
      counts_kernels_ = true;
    }
    const std::string left_behind = text_of(answer->message, "left_behind");
    if (!left_behind.empty())
      add_label(into_,
                fmt::format(
                    "{}launch() leaves work behind on a stream that the given stream does not wait for ({})",
                    kNeedsExplanation, left_behind));
    for (const std::string& note : notes_of(answer->message)) add_label(into_, "note: " + note);
    into_.build.compile_seconds =
        std::max(into_.build.compile_seconds, answer->number(kCompileSeconds).value_or(0));
    if (!result.passed) {
      if (const std::string early = text_of(answer->message, "early_read"); !early.empty()) {
        result.hint = early;
      } else if (!left_behind.empty()) {
        result.hint = "nothing makes the given stream wait for the kernel that was launched at " +
                      left_behind +
                      " on another stream: record an event there, and let the given stream wait for it";
      } else if (!first.empty()) {
        blame_the_difference(result);
      }
      return wrong(std::move(result));
    }
    into_.cases.push_back(std::move(result));
    if (first.empty())
      first = std::move(after);
    else if (!first_difference(problem_, prepared.layout, first, after).empty())
      add_label(into_, std::string(kVaries));
    return true;
  }

  bool wrong(CaseResult result) {
    into_.cases.push_back(std::move(result));
    into_.gate_one = GateOne::kWrong;
    return false;
  }

  // What the kernel will want at the `measure` sizes.
  Result<PrivateBytes> ask_ahead() {
    CAPSTONE_TRY(Json question, workspace_arguments(problem_, problem_.measure));
    auto wanted = ask_private_bytes(*worker_, problem_, question);
    if (wanted) return *wanted;
    if (wanted.error().kind == WorkerFailure::Kind::kInterrupted) return fail(interrupted_error());
    PreparedCase measured;
    measured.plan.id = "measure";
    measured.plan.sizes = problem_.measure;
    into_.cases.push_back(failed_case(measured, wanted.error(), {}));
    into_.gate_one = verdict_of(wanted.error());
    return PrivateBytes{};
  }

  const GateOneSetup& setup_;
  const Problem& problem_;
  Measurement& into_;
  std::unique_ptr<Runner> worker_;
  std::optional<WorkerFailure> broken_;  ///< the worker crashed or was stopped
  std::size_t mapped_ = 0;               ///< bytes of the arena that the worker has
  bool kernels_ = false;                 ///< launch() started one
  bool counts_kernels_ = false;          ///< the worker says how many
};

}  // namespace

Result<PrivateBytes> gate_one(const GateOneSetup& setup, const std::vector<BoundCase>& cases,
                              Measurement& into) {
  return CaseLoop(setup, into).run(cases);
}

}  // namespace capstone
