#pragma once
// One judgement in steps, each with a typed input and output:
//   build   sources            → Built     what can run, or the verdict that it cannot
//   bind    problem and sizes  → Bound     the cases, drawn only now: no source can know them
//   check   Built, Bound       → Checked   gate one
//   time    Checked, Bound     → Timed     gate two's times
//   decide  Timed, Bound       → Measurement (decide.h)
//   inspect Measurement        → Measurement (inspect.h): instrumented builds may revoke a pass
// A backend knows how to build, check and time; binding and deciding are the same for all of them.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "harness/correctness/cases.h"
#include "harness/correctness/oracle.h"
#include "harness/judge/gate_two.h"
#include "harness/judge/judge.h"
#include "harness/runtime/sandbox/sandbox.h"
#include "harness/timing/device.h"

namespace capstone {

/// What a backend keeps of a candidate from one step to the next. Only the backend that made it looks inside.
class Program {
 public:
  virtual ~Program() = default;
};

/// A candidate after its build.
struct Built {
  Measurement record;                ///< who, how it was built; the verdict where that failed
  std::shared_ptr<Program> program;  ///< null: nothing can run
};

/// What every candidate of a judgement faces.
struct Bound {
  const Problem* problem = nullptr;
  std::vector<BoundCase> cases;  ///< of gate one
};

/// A candidate after gate one.
struct Checked {
  Measurement record;
  std::shared_ptr<Program> program;
  PrivateBytes wants;  ///< at the `measure` sizes
};

/// A candidate with its times.
struct TimedCandidate {
  Measurement record;
  std::optional<std::size_t> arm;   ///< in Race::arms; nothing: it was not timed on a GPU
  std::vector<double> emulated_ms;  ///< CPU times at the `emulate` size; they count for nothing
};

/// Gate two's arms, and what is known of the GPU that they ran on.
struct Race {
  std::vector<TimedArm> arms;
  GateTwoOutcome outcome;
  std::size_t reference =
      0;  ///< the arm whose time is gate two's measure; the one behind it is the same again
  std::size_t first_candidate = 0;
  DevicePeaks peaks;
  bool quick = false;  ///< times for a first look; no verdict follows from them
};

struct Timed {
  std::vector<TimedCandidate> candidates;
  Race race;  ///< no arms: nothing was timed on a GPU
};

/// What a step needs to know of its surroundings.
struct JudgeContext {
  const JudgeRequest* request;  ///< candidates: those of this backend
  const Resources* resources;
  const Narration* say;
  const Sandbox* sandbox;  ///< what untrusted processes run in

  const Problem& problem() const { return *request->problem; }
};

/// The oracle of a problem, loaded while candidates are built.
class OracleInWaiting {
 public:
  /// The request, the resources and the sandbox must outlive every copy.
  OracleInWaiting(const JudgeRequest& request, const Resources& resources, const Sandbox* sandbox = nullptr);
  /// @error see load_oracle()
  Result<const Oracle*> get() const;

 private:
  std::shared_future<Result<Oracle>> pending_;
};

/// CUDA, emulated CUDA, or PyTorch on the CPU.
class JudgeBackend {
 public:
  virtual ~JudgeBackend() = default;
  /// Builds every candidate. One Built each, in order. @error the machine's fault
  virtual Result<std::vector<Built>> build() = 0;
  /// The most that a drawn case may cost here.
  virtual DrawLimits draw_limits() const = 0;
  /// Gate one. `arms` Checked for each Built that can run, else one; in order. @error the machine's fault
  virtual Result<std::vector<Checked>> check(std::vector<Built> built, const Bound& bound) = 0;
  /// Gate two's times, where the request wants them and a candidate passed. @error the machine's fault
  virtual Result<Timed> time(std::vector<Checked> checked, const Bound& bound) = 0;
};

std::unique_ptr<JudgeBackend> make_cuda_backend(const JudgeContext& context, OracleInWaiting oracle);
/// `because`: why there is no GPU; empty where none was wanted.
std::unique_ptr<JudgeBackend> make_emulated_backend(const JudgeContext& context, OracleInWaiting oracle,
                                                    std::string because);
std::unique_ptr<JudgeBackend> make_python_backend(const JudgeContext& context, OracleInWaiting oracle,
                                                  std::string because);

/// Draws the cases of gate one, or takes the one to be replayed. Called after every build.
/// @error `vary` and `where` leave nothing to draw within the limits
Result<Bound> bind(const JudgeRequest& request, const DrawLimits& limits);

/// Whether gate two is wanted.
bool is_timed(const JudgeRequest& request);
/// How long one launch of gate one may take.
std::chrono::milliseconds run_timeout(const JudgeRequest& request);
/// Tool, system and CPU.
Json host_environment(const Resources& resources);
/// A record of a candidate about which nothing is known yet.
Measurement blank_measurement(const JudgeRequest& request, const Candidate& candidate, const Sandbox& sandbox,
                              const Json& environment);

}  // namespace capstone
