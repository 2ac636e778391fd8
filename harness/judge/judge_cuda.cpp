// Judging on a GPU. The GPU host owns the tensors; a submission is replayed (recorded once, then launched by a process of ours)
// where that is possible, else it runs in a worker of its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/parallel.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/symbols.h"
#include "harness/base/text.h"
#include "harness/runtime/build/cuda.h"
#include "harness/judge/backends.h"
#include "harness/judge/gate_two.h"
#include "harness/judge/python_entries.h"
#include "harness/judge/reference_oracle.h"
#include "harness/runtime/cuda/replayed_kernel.h"
#include "harness/model/labels.h"
#include "harness/timing/statistics.h"
#include "harness/timing/roofline.h"
#include "harness/runtime/python/arms.h"
#include "harness/runtime/python/kernels.h"

namespace capstone {
namespace {

constexpr int kResamples = 10000;

// Each case twice: what a kernel reads without having written it, and what two threads race for, differs between the two.
const std::vector<std::string> kRuns{"", ""};

DeviceAttributes attributes_of(const Json& hello) {
  DeviceAttributes a;
  a.name = hello.value("name", "");
  a.major = hello.value("major", 0);
  a.minor = hello.value("minor", 0);
  a.sm_count = hello.value("sm_count", 0);
  a.clock_hz = hello.value("clock_khz", 0.0) * 1e3;
  a.memory_clock_hz = hello.value("memory_clock_khz", 0.0) * 1e3;
  a.bus_bits = hello.value("bus_bits", 0);
  a.l2_bytes = hello.value("l2_bytes", std::size_t{0});
  return a;
}

Arm finished_arm(const TimedArm& timed) {
  Arm arm;
  arm.name = timed.name;
  arm.label = timed.label;
  arm.median_ms = median_interval(timed.all_samples());
  if (!timed.warm.empty()) arm.warm_ms = median(timed.warm);
  if (!timed.host.empty()) arm.host_ms = median(timed.host);
  arm.samples_ms = timed.samples;
  return arm;
}

// The baselines that run in gate two, and why there are no more.
struct Baselines {
  std::optional<Python> python;         ///< whose PyTorch the arms and the candidates in Python run in
  std::vector<std::string> arms;        ///< of PyTorch; the first is gate two's. Empty: the native baseline is
  std::string why_native;               ///< why not PyTorch's
};

// What a mentor should ask about before believing a time.
void add_labels(std::vector<std::string>& labels, const Roofline& roof, double ms) {
  if (roof.floor_ms > 0 && ms < roof.floor_ms)
    labels.push_back(fmt::format("{}{} is less than the {} that the data sheet allows for this work", kNeedsExplanation,
                                 format_time_ms(ms), format_time_ms(roof.floor_ms)));
}

// The times of in-process execution are claims; the judge's own clock must bear them out.
void compare_clocks(const TimedArm& reference, const TimedArm& arm, Measurement& m) {
  auto view = host_timer_view(reference, arm);
  if (!view) return;
  Json seen{{"host_timer_ms", view->ms}, {"slack_ms", view->slack_ms}, {"launch_ms", arm.launch_ms}, {"agrees", view->agrees}};
  m.environment["host_timer"] = std::move(seen);
  if (view->agrees) return;
  m.labels.push_back(fmt::format("two clocks disagree: the kernel's process claims {}, from outside a launch takes {}{}",
                                 format_time_ms(median(arm.all_samples())), format_time_ms(view->ms),
                                 view->host_bound ? fmt::format("; it says that launch() keeps the host busy for {}", format_time_ms(arm.launch_ms))
                                                  : std::string()));
  m.gate_two = GateTwo::kUnresolved;
  m.gate_two_reason = "two clocks disagree about the kernel's time";
}

// What the build and the plans say about a kernel, whatever its time.
void add_labels(std::vector<std::string>& labels, const Problem& problem, const Artifact& artifact, const ReplayedKernel* replayed) {
  if (problem.precision == Precision::kFp32 && !artifact.tensor_instructions.empty())
    labels.push_back(fmt::format("{}tensor-core instructions ({}) in a problem that is judged in fp32", kNeedsExplanation,
                                 artifact.tensor_instructions));
  if (!replayed || replayed->launched().empty()) return;
  for (const std::string& note : replayed->notes()) labels.push_back("note: " + note);
  std::vector<std::string> unused;
  for (const std::string& name : replayed->defined())
    if (!replayed->launched().contains(name)) unused.push_back(demangled(name));
  if (!unused.empty())
    labels.push_back(fmt::format("{} never launched in any case: {}", unused.size() == 1 ? "a kernel is" : "kernels are",
                                 join(unused, ", ").substr(0, 300)));
}

struct CudaSession {
  const JudgeRequest& request;
  const Resources& resources;
  const Narration& say;
  Sandbox sandbox;
  Sandbox trusted;
  GpuIdentity gpu;
  fs::path toolkit;
  fs::path worker_program, capture_worker_program, replayer_program;
  Artifact baseline;
  Baselines baselines;
  std::unique_ptr<GpuHost> gpu_host;
  WorkerLimits limits;

  PythonWork python_work(const Python& python) const {
    PythonWork work;
    work.problem = request.problem;
    work.resources = &resources;
    work.python = &python;
    work.builds = resources.cache / "python" / "arms";
    work.cuda = true;
    work.toolkit = toolkit;
    return work;
  }
  /// One of PyTorch's arms, in a process that we trust.
  std::function<StartedRunner()> python_arm(const std::string& name) const {
    PythonWork work = python_work(*baselines.python);
    work.arm = name;
    return [this, work] { return start_python(work, trusted); };
  }

  StartedRunner start_worker(const fs::path& library, bool ours) const {
    Sandbox place = ours ? trusted : sandbox;
    return Worker::start_runner({worker_program.string(), library.string()}, place, limits, true);
  }
};

// Of the native baseline, which no gate one has asked.
Result<PrivateBytes> wants_of(const Problem& problem, const std::function<StartedRunner()>& start) {
  auto failed = [](const WorkerFailure& failure) { return fail(failure.what, failure.where, failure.hint, ExitCode::kEnvironment); };
  auto runner = start();
  if (!runner) return failed(runner.error());
  CAPSTONE_TRY(Json args, workspace_arguments(problem, problem.measure));
  auto bytes = ask_private_bytes(**runner, problem, args);
  if (!bytes) return failed(bytes.error());
  return *bytes;
}

// Whether eager runs the problem's first case on the GPU host's memory.
Result<tl::expected<Packet, WorkerFailure>> try_eager(const CudaSession& session, const Oracle& oracle, const Python& python) {
  const Problem& problem = *session.request.problem;
  auto eager = start_python(session.python_work(python), session.trusted);
  if (!eager) return tl::expected<Packet, WorkerFailure>(tl::unexpect, eager.error());
  CAPSTONE_TRY(PreparedCase prepared, prepare_case(problem, {"trial", problem.check.front(), fresh_seed(), Battery::kPlain}, oracle, 0));
  CAPSTONE_TRY(int memory, session.gpu_host->resize(prepared.layout.bytes));
  CAPSTONE_CHECK(session.gpu_host->load(prepared.image));
  CAPSTONE_TRY(Json args, call_arguments(problem, prepared.layout, problem.check.front()));
  auto mapped = (*eager)->ask({{"op", "arena"}, {"bytes", prepared.layout.bytes}}, std::chrono::seconds(60), memory);
  if (!mapped) return mapped;
  return (*eager)->ask({{"op", "run"}, {"args", args}}, run_timeout(session.request) + kFirstRunOfPython, -1);
}

// PyTorch, where it is wanted and there is one that works: what was found by itself and does not is no reason to fail, what was
// asked for is.
Result<Baselines> find_baselines(const CudaSession& session, const Oracle& oracle) {
  const JudgeRequest& request = session.request;
  Baselines found;
  const bool needed = request.problem->oracle_is_reference ||
                      std::any_of(request.candidates.begin(), request.candidates.end(), [](const Candidate& candidate) { return is_python(candidate.source); });
  if (request.options.python == "none") found.why_native = "PyTorch was not asked for";
  if (request.options.python == "none" && !needed) return found;
  auto python = find_python(request.options.python == "none" ? "auto" : request.options.python, session.resources);
  const bool asked_for = request.problem->oracle_is_reference || (request.options.python != "none" && request.options.python != "auto");
  if (!python) {
    if (asked_for || python.error().code == ExitCode::kInterrupted) return fail(python.error());
    found.why_native = python.error().what;
    return found;
  }
  session.say(fmt::format("starting PyTorch {}", python->torch));
  CAPSTONE_TRY(auto eager, try_eager(session, oracle, *python));
  if (!eager) {
    const WorkerFailure& failure = eager.error();
    if (failure.kind == WorkerFailure::Kind::kInterrupted) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (asked_for) return fail({failure.what, failure.where.empty() ? python->program.string() : failure.where, failure.hint, ExitCode::kEnvironment, failure.trace});
    found.why_native = failure.what;
    return found;
  }
  found.python = std::move(*python);
  found.arms = request.options.baselines.empty() ? python_arms_of(*request.problem) : request.options.baselines;
  found.why_native.clear();
  return found;
}

// One candidate on its way through the gates.
struct JudgedCandidate {
  Measurement measurement;
  Artifact artifact;
  std::shared_ptr<ReplayedKernel> replayed;  ///< null: in-process execution
  std::shared_ptr<ScratchFolder> builds;   ///< of one candidate in Python, not handed on to another judgement; null: a .cu
  std::optional<PythonWork> python;
  PrivateBytes wants;                    ///< at the `measure` sizes

  std::function<StartedRunner()> start(const CudaSession& session) const {
    if (python) return [&session, work = *python] { return start_python(work, session.sandbox); };
    if (replayed) return [kernel = replayed] { return kernel->start(kernel); };
    return [&session, library = artifact.program] { return session.start_worker(library, false); };
  }
  void run_in_process(const std::string& why) {
    replayed.reset();
    measurement.execution_reason = why;
  }
};

Result<std::shared_ptr<ReplayedKernel>> capture(const CudaSession& session, const Artifact& artifact) {
  CAPSTONE_TRY(std::string code, read_file(artifact.device_code, std::size_t{1} << 30));
  auto bytes = std::as_bytes(std::span(code));
  ReplayedKernel::Programs programs;
  programs.capture_worker = [&session, library = artifact.program] {
    return Worker::start_runner({session.capture_worker_program.string(), library.string()}, session.sandbox, session.limits, true);
  };
  programs.replayer = [&session] {
    return Worker::start_runner({session.replayer_program.string()}, session.trusted, session.limits, true);
  };
  return std::make_shared<ReplayedKernel>(std::move(programs), std::vector<std::byte>(bytes.begin(), bytes.end()));
}

// Gate one. Replayed first; what fails there has another chance in in-process execution, because a plan that computes something else than
// launch() is no fault of the kernel's.
Result<void> check_candidate(CudaSession& session, const Oracle& oracle, const std::vector<CasePlan>& plans, JudgedCandidate& c,
                              std::unique_ptr<Runner> loaded = nullptr) {
  Measurement& m = c.measurement;
  if (!c.artifact.result.ok) {
    m.gate_one = GateOne::kBuildFailed;
    m.gate_two_reason = "it does not build";
    return {};
  }
  const JudgeRequest& request = session.request;
  if (c.python && request.options.execution == Execution::kReplayed) {
    not_judgeable_here(m, {"cannot be replayed: a Python process cannot be recorded", {}, "measure with --execution in-process", ExitCode::kEnvironment});
    m.gate_two_reason = "gate one failed";
    return {};
  }
  const auto timeout = run_timeout(request) + (c.python ? kFirstRunOfPython : std::chrono::milliseconds(0));
  GateOneSetup setup{request.problem, &oracle, session.gpu_host.get(), kRuns, {}, timeout, session.say, m.candidate, is_timed(request) && !c.python};
  if (request.options.execution != Execution::kInProcess && m.execution_reason.empty() && !c.python) {
    CAPSTONE_TRY(c.replayed, capture(session, c.artifact));
    setup.start_worker = c.start(session);
    CAPSTONE_TRY(c.wants, gate_one(setup, plans, m));
    m.execution = "replayed";
    if (m.gate_one != GateOne::kPassed) m.gate_two_reason = "gate one failed";
    if (m.gate_one == GateOne::kPassed || m.gate_one == GateOne::kTimedOut) return {};
    if (!c.replayed->refusal().empty()) m.gate_one = GateOne::kNotJudgeable;
    if (request.options.execution == Execution::kReplayed) return {};
    const CaseResult* failure = m.first_failure();
    c.run_in_process(!c.replayed->refusal().empty() ? c.replayed->refusal()
                                                : "the recorded launch fails gate one: " + (failure ? failure->problem : std::string()));
  }
  m.cases.clear();
  m.labels.clear();
  m.gate_two_reason.clear();
  m.execution = "in-process";
  if (c.python) m.execution_reason = "a Python process cannot be recorded";
  setup.start_worker = starting_with(std::move(loaded), c.start(session));
  CAPSTONE_TRY(c.wants, gate_one(setup, plans, m));
  if (m.gate_one != GateOne::kPassed) m.gate_two_reason = "gate one failed";
  return {};
}

// What a build is for a .cu: the process that loaded the file; null: it cannot run, and the measurement says why.
Result<std::unique_ptr<Runner>> load_python(const CudaSession& session, const Candidate& candidate, JudgedCandidate& c) {
  if (!session.baselines.python) {
    not_judgeable_here(c.measurement, {session.baselines.why_native, {}, "give --python the path of a python3 with PyTorch for CUDA", ExitCode::kEnvironment});
    return nullptr;
  }
  session.say("loading " + candidate.name);
  c.builds = std::make_shared<ScratchFolder>(session.resources.cache / "python" / "candidate");
  c.python = session.python_work(*session.baselines.python);
  c.python->candidate = candidate.source;
  c.python->builds = c.builds->path();
  CAPSTONE_TRY(std::unique_ptr<Runner> loaded, load_candidate(*c.python, session.sandbox, c.measurement));
  if (!loaded) c.measurement.gate_two_reason = "it does not load";
  c.artifact.result = c.measurement.build;
  return loaded;
}

// All candidates, then the baseline (none where its path is empty), side by side: nvcc takes seconds for each and one core.
Result<std::vector<Artifact>> build_all(const CudaSession& session, const fs::path& baseline_arm, const std::string& arch) {
  const JudgeRequest& request = session.request;
  std::vector<std::optional<Result<Artifact>>> built(request.candidates.size() + 1);
  parallel_for(static_cast<std::int64_t>(built.size()), 1, threads_or_all(0), [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const bool ours = i == request.candidates.size();
      const std::string name = ours ? "native" : request.candidates[i].name;
      const fs::path& source = ours ? baseline_arm : request.candidates[i].source;
      if (source.empty() || is_python(source)) built[i] = Artifact{};
      else built[i] = build_cuda({request.problem, source, &session.resources, ours ? nullptr : &session.sandbox, name, 900}, arch,
                                 ours ? request.problem->link : std::vector<std::string>{});
    }
  });
  std::vector<Artifact> artifacts;
  for (auto& each : built) {
    CAPSTONE_TRY(Artifact artifact, std::move(*each));
    artifacts.push_back(std::move(artifact));
  }
  return artifacts;
}

}  // namespace

Result<FileLock> take_gpu(const GpuIdentity& gpu, const Narration& say) {
  std::error_code code;
  const fs::path file = "/tmp/capstone-" + gpu.uuid + ".lock";
  for (bool said = false;;) {
    auto lock = FileLock::acquire(file, false);
    if (lock) {
      fs::permissions(file, fs::perms::all & ~fs::perms::owner_exec & ~fs::perms::group_exec & ~fs::perms::others_exec, code);
      return lock;
    }
    if (lock.error().code != ExitCode::kEnvironment) return lock;
    if (interrupted()) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (!said) say("waiting for " + gpu.name + ": another capstone command is using it");
    said = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

Result<std::vector<Measurement>> judge_cuda(const JudgeRequest& request, const Resources& resources, const Narration& say) {
  const Problem& problem = *request.problem;
  CudaSession session{request, resources, say, Sandbox::detect(resources), Sandbox::none(resources, "trusted"), {}, {}, {}, {}, {}, {}, {}, {}, {}};
  session.limits.memory = std::size_t{16} << 30;  // of the host; what the driver maps of the device does not count
  session.limits.start = std::chrono::seconds(60);
  CAPSTONE_TRY(session.gpu, find_gpu(resources));
  const std::string arch = session.gpu.arch();
  CAPSTONE_TRY(CudaToolkit toolkit, find_toolkit(resources));
  session.toolkit = toolkit.root;

  const auto begun = std::chrono::steady_clock::now();
  const bool has_native = !problem.oracle_is_reference;  // else PyTorch's eager is the baseline, and says what timed runs should give
  const fs::path native = !has_native ? fs::path() : request.baseline.empty() ? problem.folder / "baseline.cu" : request.baseline;
  std::vector<std::string> names;
  for (const Candidate& candidate : request.candidates) names.push_back(candidate.name);
  say(fmt::format("building {}{} with nvcc", join(names, ", "), has_native ? " and the native baseline" : ""));
  auto building_all = std::async(std::launch::async, [&] { return build_all(session, native, arch); });
  auto programs = own_cuda_programs({"capstone-gpu-host", "capstone-worker-cuda", "capstone-capture-worker", "capstone-replayer"}, arch, resources, say);
  CAPSTONE_TRY(std::vector<Artifact> artifacts, building_all.get());
  if (!programs) return fail(programs.error());
  const fs::path gpu_host_program = (*programs)[0];
  session.worker_program = (*programs)[1];
  session.capture_worker_program = (*programs)[2];
  session.replayer_program = (*programs)[3];
  session.baseline = std::move(artifacts.back());
  artifacts.pop_back();
  if (has_native && !session.baseline.result.ok)
    return fail("the problem's baseline.cu does not build: " + session.baseline.result.first_error->text,
                session.baseline.result.first_error->file, "see `capstone doctor` for missing libraries", ExitCode::kEnvironment);
  const double building = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  CAPSTONE_TRY(Oracle oracle, load_oracle(problem, resources, request.options.python));
  CAPSTONE_TRY(FileLock gpu_lock, take_gpu(session.gpu, say));
  CAPSTONE_TRY(session.gpu_host, GpuHost::start(gpu_host_program, session.trusted));
  const Json& device = session.gpu_host->device();
  const DevicePeaks peaks = peaks_of(attributes_of(device));
  session.sandbox.allow_reading(toolkit.root);  // the CUDA runtime that both programs load
  if (is_timed(request) || std::any_of(request.candidates.begin(), request.candidates.end(), [](const Candidate& e) { return is_python(e.source); })) {
    CAPSTONE_TRY(session.baselines, find_baselines(session, oracle));
  }

  Json environment = host_environment(resources);
  environment["device"] = session.gpu.name;
  environment["uuid"] = session.gpu.uuid;
  environment["driver"] = session.gpu.driver;
  environment["compute_capability"] = session.gpu.compute_capability;
  environment["nvcc"] = toolkit.version;
  environment["cuda_runtime"] = device.value("runtime", 0);
  environment["arch"] = arch;
  environment["sm_count"] = device.value("sm_count", 0);
  environment["l2_bytes"] = device.value("l2_bytes", std::size_t{0});
  environment["peaks"] = peaks.source;

  if (session.baselines.python) environment["torch"] = session.baselines.python->torch;
  if (is_timed(request) && !session.baselines.why_native.empty()) environment["native_because"] = session.baselines.why_native;
  if (is_timed(request)) {
    CAPSTONE_TRY(environment["copy_bytes_per_second"], session.gpu_host->copy_bandwidth());
  }

  std::vector<JudgedCandidate> built_candidates;
  std::vector<std::unique_ptr<Runner>> loaded(request.candidates.size());
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    JudgedCandidate c{blank_measurement(request, request.candidates[i], session.sandbox, environment), std::move(artifacts[i]), nullptr, nullptr, {}, {}};
    c.measurement.backend = "cuda";
    if (is_python(request.candidates[i].source)) { CAPSTONE_TRY(loaded[i], load_python(session, request.candidates[i], c)); }
    else c.measurement.build = c.artifact.result, c.measurement.build.log = printable(c.artifact.result.log);
    built_candidates.push_back(std::move(c));
  }

  // Gate one: sizes and seeds are drawn after every build, and after Python candidates were loaded.
  const auto built = std::chrono::steady_clock::now();
  DrawLimits draw{2e8, 256e6};
  CAPSTONE_TRY(auto plans, cases_for(request, draw));
  std::vector<JudgedCandidate> candidates;
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    JudgedCandidate& c = built_candidates[i];
    const bool can_run = !is_python(request.candidates[i].source) || loaded[i];
    if (can_run) CAPSTONE_CHECK(check_candidate(session, oracle, plans, c, std::move(loaded[i])));
    for (int arm = 1; can_run && arm < request.arms; ++arm) candidates.push_back(c);
    candidates.push_back(std::move(c));
  }

  const double checking = std::chrono::duration<double>(std::chrono::steady_clock::now() - built).count();

  std::vector<TimedArm> arms;
  std::vector<JudgedCandidate*> racing;  // arms[first + i]
  GateTwoOutcome outcome;
  std::size_t first = 0;            // candidate among the arms
  const std::size_t reference = has_native && !session.baselines.arms.empty() ? 1 : 0;
  for (bool again = true; again;) {
    arms.clear();
    auto add = [&arms](std::string name, std::function<StartedRunner()> start, bool is_python_arm) {
      TimedArm arm;
      arm.name = std::move(name);
      arm.start_worker = std::move(start);
      arm.trusted = true;
      arm.python = is_python_arm;
      arms.push_back(std::move(arm));
    };
    if (has_native) {
      add("native", [&session] { return session.start_worker(session.baseline.program, true); }, false);
      CAPSTONE_TRY(arms[0].wants, wants_of(problem, arms[0].start_worker));
    }
    for (std::size_t i = 0; i < session.baselines.arms.size(); ++i) {
      const std::string& name = session.baselines.arms[i];
      add(name, session.python_arm(name), true);
      if (i == 0) add("A/A", session.python_arm(name), true);
      else arms.back().optional = true;
    }
    if (session.baselines.arms.empty()) {
      add("A/A", arms[0].start_worker, false);
      arms.back().wants = arms[0].wants;
    }
    first = arms.size();
    racing.clear();
    for (JudgedCandidate& c : candidates) {
      if (c.measurement.gate_one != GateOne::kPassed || !is_timed(request)) continue;
      TimedArm arm;
      arm.name = c.measurement.candidate;
      arm.label = c.measurement.source;
      arm.start_worker = c.start(session);
      arm.trusted_clock = c.replayed != nullptr;
      arm.python = c.python.has_value();
      arm.wants = c.wants;
      if (c.replayed) c.replayed->close_capture_worker();
      arms.push_back(std::move(arm));
      racing.push_back(&c);
    }
    if (racing.empty()) break;
    const auto timeout = run_timeout(request) + (session.baselines.arms.empty() ? std::chrono::seconds(60) : std::chrono::seconds(300));  // torch.compile takes its time
    GateTwoSetup setup{&problem, &oracle, session.gpu_host.get(), request.options.budget_seconds, timeout, say, request.restarts, reference, first};
    CAPSTONE_TRY(outcome, gate_two(setup, arms));
    // A launch that changes its ways at the measured size is judged again, all arms together, where it can run.
    again = false;
    for (std::size_t k = 0; k < racing.size(); ++k)
      if (arms[first + k].failure && racing[k]->replayed && !racing[k]->replayed->refusal().empty() && request.options.execution == Execution::kAuto) {
        racing[k]->run_in_process(racing[k]->replayed->refusal());
        CAPSTONE_CHECK(check_candidate(session, oracle, plans, *racing[k]));
        again = true;
      }
  }
  for (JudgedCandidate& c : candidates) add_labels(c.measurement.labels, problem, c.artifact, c.replayed.get());
  auto finished = [&candidates] {
    std::vector<Measurement> measurements;
    for (JudgedCandidate& c : candidates) measurements.push_back(std::move(c.measurement));
    return measurements;
  };
  if (racing.empty()) return finished();

  CAPSTONE_TRY(Cost cost, cost_at(problem, problem.measure));
  const TimedArm& baseline_arm = arms[reference];
  const Interval a_over_a = bootstrap_ratio(log_ratios(baseline_arm, arms[reference + 1]), kResamples, fresh_seed());
  for (std::size_t k = 0; k < racing.size(); ++k) {
    Measurement& m = racing[k]->measurement;
    const TimedArm& arm = arms[first + k];
    m.environment["telemetry"] = outcome.telemetry;
    m.environment["telemetry"]["seconds"]["building"] = building;
    m.environment["telemetry"]["seconds"]["checking"] = checking;
    if (arm.failure) {
      m.gate_one = arm.failed_as;
      m.gate_two_reason = "a run at the measured size failed";
      m.cases.push_back(*arm.failure);
      continue;
    }
    Measured measured;
    measured.clock = "GPU-cold events, fresh inputs each sample";
    measured.sizes = sizes_json(problem.measure);
    measured.flops = cost.flops;
    measured.bytes = cost.bytes;
    measured.arms = {finished_arm(baseline_arm), finished_arm(arms[reference + 1])};
    for (std::size_t a = 0; a < first; ++a) {
      if (!arms[a].note.empty()) m.labels.push_back(fmt::format("baseline {} {}", arms[a].name, arms[a].note));
      if (std::string bound = bound_by_launches(arms, a); a == reference && !bound.empty()) m.labels.push_back(fmt::format("baseline {} is {}", arms[a].name, bound));
      if (a == reference || a == reference + 1 || arms[a].left_out) continue;
      measured.arms.push_back(finished_arm(arms[a]));
      measured.arms.back().speedup = bootstrap_ratio(log_ratios(arms[a], arm), kResamples, fresh_seed());
    }
    measured.arms.push_back(finished_arm(arm));
    Interval speedup = bootstrap_ratio(log_ratios(baseline_arm, arm), kResamples, fresh_seed());
    RatioVerdict verdict = decide(speedup, a_over_a, true);
    measured.speedup = speedup;
    measured.floor = verdict.floor;
    const double ms = measured.arms.back().median_ms.point;
    Roofline roof = roofline(cost, ms, peaks, problem.precision);
    measured.percent_of_peak = roof.percent;
    measured.peak = roof.peak;
    measured.bound_by = roof.bound_by;
    add_labels(m.labels, roof, ms);
    if (std::string bound = bound_by_launches(arms, &arm - arms.data()); !bound.empty()) m.labels.push_back(std::move(bound));
    if (std::string label = label_of_libraries(arm.libraries); !label.empty() && std::find(m.labels.begin(), m.labels.end(), label) == m.labels.end())
      m.labels.push_back(std::move(label));
    if (arm.kernels)
      for (std::string& label : labels_of_kernels(*arm.kernels)) m.labels.push_back(std::move(label));
    m.gate_two = verdict.verdict;
    if (m.gate_two == GateTwo::kUnresolved)
      m.gate_two_reason = fmt::format("the interval is still too wide after {:.0f} s; raise --budget", outcome.seconds);
    if (!arm.trusted_clock) compare_clocks(arm.python ? baseline_arm : arms[0], arm, m);
    if (!outcome.void_because.empty()) {
      m.gate_two = GateTwo::kUnresolved;
      m.gate_two_reason = outcome.void_because;
    }
    m.measured = std::move(measured);
  }
  return finished();
}

}  // namespace capstone
