#include "harness/judge/judge.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/runtime/build/cuda.h"
#include "harness/judge/backends.h"
#include "harness/judge/python_entries.h"
#include "harness/judge/reference_oracle.h"
#include "harness/judge/sanitize.h"

namespace capstone {

std::string GpuIdentity::arch() const {
  std::string digits;
  for (char c : compute_capability)
    if (c != '.') digits += c;
  // From Hopper on, the instructions worth having (wgmma, tcgen05) exist only under the `a` target.
  bool specific = digits.size() >= 2 && std::stoi(digits) >= 90;
  return "sm_" + digits + (specific ? "a" : "");
}

namespace {

std::optional<fs::path> find_smi(const Resources& resources) {
  return find_program("nvidia-smi", resources.path_variable + ":/usr/lib/wsl/lib:/usr/local/nvidia/bin");
}

}  // namespace

std::vector<std::string> visible_gpus(const Resources& resources) {
  if (!resources.visible_devices.empty()) return split(resources.visible_devices, ',');
  auto smi = find_smi(resources);
  if (!smi) return {};
  ProcessSpec spec;
  spec.argv = {smi->string(), "--query-gpu=index", "--format=csv,noheader"};
  spec.timeout = std::chrono::seconds(20);
  auto result = run_process(spec);
  std::vector<std::string> gpus;
  if (result && result->ok())
    for (const std::string& line : split(result->out, '\n'))
      if (!trim(line).empty()) gpus.emplace_back(trim(line));
  return gpus;
}

Result<GpuIdentity> find_gpu(const Resources& resources) {
  auto smi = find_smi(resources);
  if (!smi)
    return fail("no NVIDIA GPU here: nvidia-smi, which comes with the driver, was not found", {},
                "use --backend emulated, or measure on a machine with a GPU (capstone measure --on ssh:HOST)",
                ExitCode::kEnvironment);
  ProcessSpec spec;
  spec.argv = {smi->string(), "--query-gpu=name,uuid,driver_version,compute_cap,memory.total",
               "--format=csv,noheader,nounits",
               "--id=" + (resources.visible_devices.empty() ? std::string("0") : split(resources.visible_devices, ',').front())};
  spec.timeout = std::chrono::seconds(20);
  CAPSTONE_TRY(auto result, run_process(spec));
  auto fields = split(split(result.out, '\n').front(), ',');
  if (!result.ok() || fields.size() < 5)
    return fail("nvidia-smi sees no GPU", std::string(trim(result.out + result.err)).substr(0, 200),
                "check the driver with `nvidia-smi`; or use --backend emulated", ExitCode::kEnvironment);
  GpuIdentity facts;
  facts.name = trim(fields[0]);
  facts.uuid = trim(fields[1]);
  facts.driver = trim(fields[2]);
  facts.compute_capability = trim(fields[3]);
  facts.memory_bytes = std::strtod(fields[4].c_str(), nullptr) * 1024 * 1024;
  return facts;
}

BackendChoice choose_backend(Backend wanted, const Resources& resources) {
  if (wanted != Backend::kAuto) return {wanted, {}};
  auto gpu = find_gpu(resources);
  if (!gpu) return {Backend::kEmulated, "no NVIDIA GPU here"};
  if (!find_toolkit(resources)) return {Backend::kEmulated, "there is a GPU (" + gpu->name + ") but no nvcc to build for it"};
  return {Backend::kCuda, {}};
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

Result<std::vector<CasePlan>> cases_for(const JudgeRequest& request, const DrawLimits& limits) {
  if (request.replay) return std::vector<CasePlan>{*request.replay};
  return plan_cases(*request.problem, request.options.hidden_cases, limits);
}

bool is_timed(const JudgeRequest& request) { return request.timing && !request.replay; }

Measurement blank_measurement(const JudgeRequest& request, const Candidate& candidate, const Sandbox& sandbox, const Json& environment) {
  Measurement m;
  m.candidate = candidate.name;
  m.source = candidate.source.string();
  m.problem_id = request.problem->id;
  m.problem_digest = request.problem->digest;
  m.isolation = sandbox.description();
  m.environment = environment;
  return m;
}

namespace {

// After a verdict of a GPU: what the instrumented builds for the CPU say about the same sources.
Result<void> check_on_cpu(const JudgeRequest& request, const Resources& resources, const Narration& say, std::vector<Measurement>& measurements) {
  CAPSTONE_TRY(Oracle oracle, load_oracle(*request.problem, resources, request.options.python));
  const Sandbox sandbox = Sandbox::detect(resources);
  std::vector<PassedCandidate> passed;
  for (std::size_t i = 0; i < measurements.size(); ++i)
    if (measurements[i].gate_one == GateOne::kPassed && !is_python(request.candidates[i].source)) passed.push_back({request.candidates[i].source, &measurements[i]});
  CAPSTONE_CHECK(sanitize({request.problem, &oracle, &resources, &sandbox, run_timeout(request), say, request.replay}, passed));
  for (const PassedCandidate& candidate : passed) {
    if (candidate.into->gate_one == GateOne::kPassed) continue;
    candidate.into->gate_two = GateTwo::kNotJudged;
    candidate.into->gate_two_reason = "gate one failed";
  }
  return {};
}

}  // namespace

std::chrono::milliseconds run_timeout(const JudgeRequest& request) {
  return std::chrono::milliseconds(static_cast<long>(request.options.timeout_seconds * 1000));
}

Result<std::vector<Measurement>> judge(const JudgeRequest& request, const Resources& resources, const Narration& say) {
  auto begun = std::chrono::steady_clock::now();
  BackendChoice choice = choose_backend(request.options.backend, resources);
  CAPSTONE_TRY(auto measurements, choice.backend == Backend::kCuda ? judge_cuda(request, resources, say)
                                                                   : judge_emulated(request, resources, say, choice.because));
  if (choice.backend == Backend::kCuda && request.options.check_races) CAPSTONE_CHECK(check_on_cpu(request, resources, say, measurements));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  for (Measurement& m : measurements) m.seconds = seconds;
  return measurements;
}

}  // namespace capstone
