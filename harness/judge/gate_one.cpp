#include "harness/judge/gate_one.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace capstone {

MemfdArena::~MemfdArena() { drop(); }

void MemfdArena::drop() {
  if (base_) ::munmap(base_, bytes_);
  if (fd_ >= 0) ::close(fd_);
  base_ = nullptr;
  fd_ = -1;
}

Result<int> MemfdArena::resize(std::size_t bytes) {
  drop();
  fd_ = ::memfd_create("capstone-arena", MFD_CLOEXEC);
  if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0)
    return fail(fmt::format("cannot get {} bytes of shared memory: {}", bytes, std::strerror(errno)), {}, {},
                ExitCode::kEnvironment);
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED)
    return fail(std::string("cannot map shared memory: ") + std::strerror(errno), {}, {}, ExitCode::kEnvironment);
  base_ = static_cast<std::byte*>(base);
  bytes_ = bytes;
  return fd_;
}

Result<void> MemfdArena::load(std::span<const std::byte> image) {
  std::memcpy(base_, image.data(), image.size());
  return {};
}

Result<void> MemfdArena::fetch(std::span<std::byte> image) {
  std::memcpy(image.data(), base_, image.size());
  return {};
}

GateOne verdict_of(const WorkerFailure& failure) {
  using Kind = WorkerFailure::Kind;
  switch (failure.kind) {
    case Kind::kTimedOut: return GateOne::kTimedOut;
    case Kind::kReported:
      if (failure.report_kind == "not_judgeable") return GateOne::kNotJudgeable;
      if (failure.report_kind == "undefined_behaviour") return GateOne::kUndefined;
      return GateOne::kCrashed;
    default: return GateOne::kCrashed;
  }
}

namespace {

Error interrupted_error() { return {"interrupted", {}, {}, ExitCode::kInterrupted}; }

CaseResult failed_case(const PreparedCase& prepared, const WorkerFailure& failure, const std::string& schedule) {
  CaseResult result;
  result.id = prepared.plan.id;
  result.sizes = sizes_json(prepared.plan.sizes);
  result.seed = seed_text(prepared.plan.seed);
  result.schedule = schedule;
  result.problem = failure.what;
  result.where = failure.where;
  result.hint = failure.hint;
  return result;
}

// The wait for a worker's private scratch: it must be declared before the arena is laid out.
tl::expected<std::size_t, WorkerFailure> ask_workspace(Runner& worker, const Json& args) {
  auto answer = worker.ask({{"op", "workspace"}, {"args", args}});
  if (!answer) return tl::unexpected(answer.error());
  auto bytes = answer->message.find("bytes");
  if (bytes == answer->message.end() || !bytes->is_number_unsigned() || bytes->get<std::uint64_t>() > (1ull << 33))
    return tl::unexpected(WorkerFailure{WorkerFailure::Kind::kReported,
                                        "workspace_bytes() asks for more than 8 GiB, or for nonsense", {},
                                        "return the bytes that launch() needs at these sizes", "launch_error"});
  return bytes->get<std::size_t>();
}

}  // namespace

Result<void> gate_one(const GateOneSetup& setup, const std::vector<CasePlan>& plans, Measurement& into) {
  const Problem& problem = *setup.problem;
  auto worker = setup.start_worker();
  if (!worker) {
    if (worker.error().kind == WorkerFailure::Kind::kInterrupted) return fail(interrupted_error());
    PreparedCase nothing;
    nothing.plan.id = "start";
    into.cases.push_back(failed_case(nothing, worker.error(), {}));
    into.gate_one = verdict_of(worker.error());
    return {};
  }
  into.gate_one = GateOne::kPassed;
  int number = 0;
  for (const CasePlan& plan : plans) {
    setup.say(fmt::format("{}: gate one, case {} of {} ({})", setup.who, ++number, plans.size(), to_string(plan.sizes)));
    CAPSTONE_TRY(Json question, workspace_arguments(problem, plan.sizes));
    auto workspace = ask_workspace(**worker, question);
    CAPSTONE_TRY(PreparedCase prepared, prepare_case(problem, plan, *setup.oracle, workspace ? *workspace : 0));
    CAPSTONE_TRY(int arena, setup.arena->resize(prepared.layout.bytes));
    std::optional<WorkerFailure> broken;
    if (!workspace) broken = workspace.error();
    if (!broken)
      if (auto mapped = (*worker)->ask({{"op", "arena"}, {"bytes", prepared.layout.bytes}}, std::chrono::seconds(20), arena); !mapped)
        broken = mapped.error();
    CAPSTONE_TRY(Json args, call_arguments(problem, prepared.layout, plan.sizes));

    std::vector<std::byte> before = prepared.image, after(prepared.image.size()), first;
    for (const std::string& schedule : setup.schedules) {
      if (broken) break;
      const std::uint64_t poison_seed = fresh_seed();
      poison_image(problem, prepared, before, poison_seed);
      CAPSTONE_CHECK(setup.arena->load(before));
      Json request{{"op", "run"}, {"args", args}, {"seed", fresh_seed() >> 1}};
      request["workspace"] = prepared.layout.workspace_bytes ? Json(prepared.layout.workspace_offset) : Json(nullptr);
      if (!schedule.empty()) request["schedule"] = schedule;
      auto answer = (*worker)->ask(request, setup.run_timeout);
      if (!answer) {
        broken = answer.error();
        into.cases.push_back(failed_case(prepared, *broken, schedule));
        break;
      }
      CAPSTONE_CHECK(setup.arena->fetch(after));
      CaseResult result = examine(problem, prepared, before, after, poison_seed);
      result.schedule = schedule;
      bool passed = result.passed;
      if (!passed && first.empty() == false) {
        result.problem += " (it was right under the schedule before: the result depends on the order of threads)";
        result.hint = "a race: a __syncthreads() is missing, or two threads write the same element; " + result.hint;
      }
      into.cases.push_back(std::move(result));
      if (!passed) {
        into.gate_one = GateOne::kWrong;
        break;
      }
      if (first.empty()) first = after;
    }
    if (broken) {
      if (broken->kind == WorkerFailure::Kind::kInterrupted) return fail(interrupted_error());
      if (into.cases.empty() || into.cases.back().id != plan.id || into.cases.back().passed)
        into.cases.push_back(failed_case(prepared, *broken, {}));
      into.gate_one = verdict_of(*broken);
      return {};
    }
  }
  return {};
}

}  // namespace capstone
