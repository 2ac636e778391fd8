#include "harness/judge/cuda_candidate.h"

#include <fmt/format.h>

#include "harness/base/symbols.h"
#include "harness/base/text.h"
#include "harness/judge/python_candidate.h"
#include "harness/judge/tensor_label.h"

namespace capstone {
namespace {

// Each case twice: what a kernel reads without having written it, and what two threads race for, differs
// between the two.
const std::vector<std::string> kRuns{"", ""};

Result<std::shared_ptr<ReplayedKernel>> capture(const CudaSession& session, const Artifact& artifact) {
  CAPSTONE_TRY(std::string code, read_file(artifact.device_code, std::size_t{1} << 30));
  auto bytes = std::as_bytes(std::span(code));
  ReplayedKernel::Programs programs;
  programs.capture_worker = [&session, library = artifact.program] {
    return Worker::start_runner({session.capture_worker_program.string(), library.string()}, session.sandbox,
                                session.limits, true);
  };
  programs.replayer = [&session] {
    return Worker::start_runner({session.replayer_program.string()}, session.trusted, session.limits, true);
  };
  return std::make_shared<ReplayedKernel>(std::move(programs),
                                          std::vector<std::byte>(bytes.begin(), bytes.end()));
}

// What a build is for a .cu. The program stays null where it cannot run; the record says why.
Result<std::shared_ptr<CudaProgram>> load_python(const CudaSession& session, const Candidate& candidate,
                                                 Measurement& m) {
  if (!session.baselines.pytorch) {
    not_judgeable_here(m, {session.baselines.why_native,
                           {},
                           "give --python the path of a python3 with PyTorch for CUDA",
                           ExitCode::kEnvironment});
    return nullptr;
  }
  session.say({Stage::kLoad, candidate.name});
  auto program = std::make_shared<CudaProgram>();
  program->builds = std::make_shared<ScratchFolder>(session.resources().cache / "python" / "candidate");
  program->python = session.python_work(session.baselines.pytorch->python);
  program->python->candidate = candidate.source;
  program->python->builds = program->builds->path();
  CAPSTONE_TRY(std::unique_ptr<Runner> loaded, load_candidate(*program->python, session.sandbox, m));
  if (!loaded) {
    m.gate_two_reason = "it does not load";
    return nullptr;
  }
  program->loaded = std::make_shared<std::unique_ptr<Runner>>(std::move(loaded));
  program->artifact.result = m.build;
  return program;
}

GateOneSetup setup_of(const CudaSession& session, const Oracle& oracle, const Checked& candidate) {
  const auto timeout = run_timeout(session.request());
  return {&session.problem(),
          &oracle,
          session.gpu_host.get(),
          kRuns,
          {},
          timeout,
          timeout,
          *session.context.say,
          candidate.record.candidate,
          is_timed(session.request()) && !cuda_program(candidate).python.has_value()};
}

// Gate one of captured launches. @return whether that is the verdict; else in-process execution is next
Result<bool> check_replayed(const CudaSession& session, const Oracle& oracle, const Bound& bound,
                            Checked& candidate) {
  Measurement& m = candidate.record;
  CudaProgram& program = cuda_program(candidate);
  GateOneSetup setup = setup_of(session, oracle, candidate);
  CAPSTONE_TRY(program.replayed, capture(session, program.artifact));
  program.replayed->start_capture_worker();
  setup.start_worker = program.start(session);
  CAPSTONE_TRY(candidate.wants, gate_one(setup, bound.cases, m));
  m.execution = Execution::kReplayed;
  if (m.gate_one != GateOne::kPassed) m.gate_two_reason = "gate one failed";
  if (m.gate_one == GateOne::kPassed || m.gate_one == GateOne::kTimedOut) return true;
  const std::string refusal = program.replayed->refusal();
  if (!refusal.empty()) m.gate_one = GateOne::kNotJudgeable;
  if (session.request().options.execution == Execution::kReplayed) return true;
  const CaseResult* failure = m.first_failure();
  run_in_process(candidate, !refusal.empty() ? refusal
                                             : "the recorded launch fails gate one: " +
                                                   (failure ? failure->problem : std::string()));
  return false;
}

Result<void> check_in_process(const CudaSession& session, const Oracle& oracle, const Bound& bound,
                              Checked& candidate) {
  Measurement& m = candidate.record;
  CudaProgram& program = cuda_program(candidate);
  m.cases.clear();
  m.labels.clear();
  m.gate_two_reason.clear();
  m.execution = Execution::kInProcess;
  if (program.python) m.execution_reason = "a Python process cannot be recorded";
  GateOneSetup setup = setup_of(session, oracle, candidate);
  setup.start_worker =
      starting_with(program.loaded ? std::move(*program.loaded) : nullptr, program.start(session));
  CAPSTONE_TRY(candidate.wants, gate_one(setup, bound.cases, m));
  if (m.gate_one != GateOne::kPassed) m.gate_two_reason = "gate one failed";
  return {};
}

}  // namespace

std::function<StartedRunner()> CudaProgram::start(const CudaSession& session) const {
  if (python) return [&session, work = *python] { return start_python(work, session.sandbox); };
  if (replayed) return [kernel = replayed] { return kernel->start(kernel); };
  return [&session, library = artifact.program] { return session.start_worker(library, false); };
}

Result<Built> load_candidate(const CudaSession& session, const Candidate& candidate, Artifact artifact,
                             const Json& environment) {
  Built built{blank_measurement(session.request(), candidate, session.sandbox, environment), nullptr};
  Measurement& m = built.record;
  m.backend = Backend::kCuda;
  if (is_python(candidate.source)) {
    CAPSTONE_TRY(built.program, load_python(session, candidate, m));
    return built;
  }
  m.build = artifact.result;
  m.build.log = printable(artifact.result.log);
  if (!artifact.result.ok) {
    m.gate_one = GateOne::kBuildFailed;
    m.gate_two_reason = "it does not build";
  }
  auto program = std::make_shared<CudaProgram>();
  program->artifact = std::move(artifact);
  built.program = std::move(program);
  return built;
}

Result<void> check_candidate(const CudaSession& session, const Oracle& oracle, const Bound& bound,
                             Checked& candidate) {
  const CudaProgram& program = cuda_program(candidate);
  if (!program.artifact.result.ok) return {};  // the record says so
  const Execution wanted = session.request().options.execution;
  if (program.python && wanted == Execution::kReplayed) {
    not_judgeable_here(candidate.record, {"cannot be replayed: a Python process cannot be recorded",
                                          {},
                                          "measure with --execution in-process; a kernel in Triton becomes "
                                          "a .cu by `capstone export kernel`",
                                          ExitCode::kEnvironment});
    candidate.record.gate_two_reason = "gate one failed";
    cuda_program(candidate).loaded.reset();  // it must not run while another candidate is timed
    return {};
  }
  if (wanted != Execution::kInProcess && candidate.record.execution_reason.empty() && !program.python) {
    CAPSTONE_TRY(const bool settled, check_replayed(session, oracle, bound, candidate));
    if (settled) return {};
  }
  return check_in_process(session, oracle, bound, candidate);
}

void run_in_process(Checked& candidate, const std::string& why) {
  cuda_program(candidate).replayed.reset();
  candidate.record.execution_reason = why;
}

void add_build_labels(const Problem& problem, Checked& candidate) {
  if (!candidate.program) return;
  const CudaProgram& program = cuda_program(candidate);
  std::vector<std::string>& labels = candidate.record.labels;
  if (program.artifact.tensor_instructions.valid())
    if (auto label = tensor_label(problem.precision, program.artifact.tensor_instructions.get()))
      labels.push_back(*std::move(label));
  if (!program.replayed || program.replayed->launched().empty()) return;
  for (const std::string& note : program.replayed->notes()) labels.push_back("note: " + note);
  std::vector<std::string> unused;
  for (const std::string& name : program.replayed->defined())
    if (!program.replayed->launched().contains(name)) unused.push_back(demangled(name));
  if (!unused.empty())
    labels.push_back(fmt::format("{} never launched in any case: {}",
                                 unused.size() == 1 ? "a kernel is" : "kernels are",
                                 join(unused, ", ").substr(0, 300)));
}

}  // namespace capstone
