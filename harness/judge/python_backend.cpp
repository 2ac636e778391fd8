// Candidates in Python where there is no GPU: their PyTorch runs on the CPU. Gate one alone.
#include "harness/base/scratch_folder.h"
#include "harness/base/text.h"
#include "harness/judge/pipeline.h"
#include "harness/judge/python_candidate.h"
#include "harness/runtime/python/extensions.h"

namespace capstone {
namespace {

struct PythonProgram : Program {
  Python python;
  /// What one candidate compiles is not handed on to another judgement
  std::unique_ptr<ScratchFolder> builds;
  PythonWork work;
  std::unique_ptr<Runner> loaded;
};

class PythonBackend : public JudgeBackend {
 public:
  PythonBackend(const JudgeContext& context, OracleInWaiting oracle, std::string because)
      : context_(context), oracle_(std::move(oracle)), because_(std::move(because)) {}

  Result<std::vector<Built>> build() override {
    std::vector<Built> all;
    for (const Candidate& candidate : context_.request->candidates) {
      CAPSTONE_TRY(Built built, load(candidate));
      all.push_back(std::move(built));
    }
    return all;
  }

  DrawLimits draw_limits() const override { return {}; }

  Result<std::vector<Checked>> check(std::vector<Built> built, const Bound& bound) override {
    CAPSTONE_TRY(const Oracle* oracle, oracle_.get());
    std::vector<Checked> all;
    for (Built& each : built) {
      Checked checked{std::move(each.record), each.program, {}};
      if (each.program) {
        auto& program = static_cast<PythonProgram&>(*each.program);
        MemfdArena arena;
        // Triton's interpreter repeats itself, and poisons what it allocates.
        const std::size_t runs = checked.record.environment.contains("triton") ? 1 : 2;
        GateOneSetup setup{bound.problem,
                           oracle,
                           &arena,
                           std::vector<std::string>(runs),
                           starting_with(std::move(program.loaded),
                                         [&] { return start_python(program.work, *context_.sandbox); }),
                           run_timeout(*context_.request),
                           run_timeout(*context_.request),
                           *context_.say,
                           checked.record.candidate};
        CAPSTONE_CHECK(gate_one(setup, bound.cases, checked.record));
      }
      all.push_back(std::move(checked));
    }
    return all;
  }

  Result<Timed> time(std::vector<Checked> checked, const Bound&) override {
    Timed timed;
    for (Checked& each : checked) timed.candidates.push_back({std::move(each.record), std::nullopt, {}});
    return timed;
  }

 private:
  // What a build is for a .cu.
  Result<Built> load(const Candidate& candidate) const {
    const JudgeRequest& request = *context_.request;
    const Resources& resources = *context_.resources;
    Json environment = host_environment(resources);
    environment["device"] = "CPU (emulated CUDA)";
    Built built{blank_measurement(request, candidate, *context_.sandbox, environment), nullptr};
    Measurement& m = built.record;
    m.backend = Backend::kEmulated;
    m.execution = Execution::kInProcess;
    m.execution_reason = "a Python process cannot be recorded";
    m.gate_two_reason = because_.empty() ? "PyTorch on the CPU is never timed" : because_;
    auto python = find_python(request.options.python == "none" ? "auto" : request.options.python, resources,
                              request.options.python_path);
    if (!python) {
      if (python.error().code == ExitCode::kInterrupted) return fail(python.error());
      not_judgeable_here(m, python.error());
      return built;
    }
    m.environment["device"] = "CPU (PyTorch)";
    m.environment["torch"] = python->torch;
    auto program = std::make_shared<PythonProgram>();
    program->python = std::move(*python);
    program->builds = std::make_unique<ScratchFolder>(resources.cache / "python" / "candidate");
    program->work = {
        request.problem, &resources, &program->python, {}, candidate.source, program->builds->path(),
        false,           {}};
    (*context_.say)({Stage::kLoad, candidate.name});
    CAPSTONE_TRY(program->loaded, load_candidate(program->work, *context_.sandbox, m));
    if (!program->loaded) return built;
    if (builds_extensions(candidate.source))
      m.environment["device"] = "CPU (PyTorch; extensions in the emulator)";
    if (const std::string triton = text_at(program->loaded->hello(), "triton"); !triton.empty()) {
      m.environment["device"] = "CPU (Triton's interpreter)";
      m.environment["triton"] = to_utf8(printable(triton).substr(0, 40));
      m.gate_two_reason = "Triton kernels are interpreted on a CPU, not timed";
      if (!because_.empty()) m.gate_two_reason += ": " + because_;
    }
    built.program = std::move(program);
    return built;
  }

  JudgeContext context_;
  OracleInWaiting oracle_;
  std::string because_;  ///< why there is no GPU
};

}  // namespace

std::unique_ptr<JudgeBackend> make_python_backend(const JudgeContext& context, OracleInWaiting oracle,
                                                  std::string because) {
  return std::make_unique<PythonBackend>(context, std::move(oracle), std::move(because));
}

}  // namespace capstone
