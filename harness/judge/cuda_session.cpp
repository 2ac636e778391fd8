#include "harness/judge/cuda_session.h"

#include <fmt/format.h>

#include <chrono>
#include <future>

#include "harness/base/parallel.h"
#include "harness/base/text.h"
#include "harness/judge/baselines.h"
#include "harness/judge/python_candidate.h"

namespace capstone {
namespace {

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

// All candidates, then the native baseline (none where its path is empty), in parallel: nvcc takes seconds
// for each and one core.
Result<std::vector<Artifact>> build_sources(const CudaSession& session, const fs::path& native,
                                            const std::string& arch) {
  const JudgeRequest& request = session.request();
  std::vector<std::optional<Result<Artifact>>> built(request.candidates.size() + 1);
  parallel_for(static_cast<std::int64_t>(built.size()), 1, threads_or_all(0),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
                   const bool ours = i == request.candidates.size();
                   const std::string name = ours ? "native" : request.candidates[i].name;
                   const fs::path& source = ours ? native : request.candidates[i].source;
                   if (source.empty() || is_python(source))
                     built[i] = Artifact{};
                   else
                     built[i] = build_cuda({request.problem, source, session.context.resources,
                                            ours ? nullptr : &session.sandbox, name, 900},
                                           arch, ours ? request.problem->link : std::vector<std::string>{});
                 }
               });
  std::vector<Artifact> artifacts;
  for (auto& each : built) {
    CAPSTONE_TRY(Artifact artifact, std::move(*each));
    artifacts.push_back(std::move(artifact));
  }
  return artifacts;
}

fs::path native_source(const CudaSession& session) {
  if (!session.has_native()) return {};
  const fs::path& other = session.request().baseline;
  return other.empty() ? session.problem().folder / "baseline.cu" : other;
}

}  // namespace

CudaSession::CudaSession(const JudgeContext& surroundings)
    : context(surroundings),
      sandbox(*surroundings.sandbox),
      trusted(Sandbox::none(*surroundings.resources, "trusted")) {
  limits.memory = std::size_t{16} << 30;  // of the host; what the driver maps of the device does not count
  limits.start = std::chrono::seconds(60);
}

PythonWork CudaSession::python_work(const Python& python) const {
  PythonWork work;
  work.problem = &problem();
  work.resources = context.resources;
  work.python = &python;
  work.builds = resources().cache / "python" / "arms";
  work.cuda = true;
  work.toolkit = toolkit.root;
  return work;
}

std::function<StartedRunner()> CudaSession::python_arm(const std::string& name) const {
  PythonWork work = python_work(baselines.pytorch->python);
  work.arm = name;
  work.parent = baselines.pytorch->parent;
  if (auto first = baselines.pytorch->first.find(name); first != baselines.pytorch->first.end())
    work.first = first->second;
  return [this, work] { return start_python(work, trusted); };
}

StartedRunner CudaSession::start_worker(const fs::path& library, bool ours) const {
  return Worker::start_runner({worker_program.string(), library.string()}, ours ? trusted : sandbox, limits,
                              true);
}

Result<std::vector<Artifact>> build_all(CudaSession& session, fs::path& gpu_host_program) {
  CAPSTONE_TRY(session.gpu, find_gpu(session.resources()));
  const std::string arch = session.gpu.arch();
  CAPSTONE_TRY(session.toolkit, find_toolkit(session.resources()));
  session.pytorch = start_pytorch(session);
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::string> names;
  for (const Candidate& candidate : session.request().candidates) names.push_back(candidate.name);
  session.say({Stage::kBuild,
               {},
               fmt::format("{}{} with nvcc", join(names, ", "),
                           session.has_native() ? " and the native baseline" : "")});
  const fs::path native = native_source(session);
  auto building = std::async(std::launch::async, [&] { return build_sources(session, native, arch); });
  auto programs = own_cuda_programs(
      {"capstone-gpu-host", "capstone-worker-cuda", "capstone-capture-worker", "capstone-replayer"}, arch,
      session.resources(), *session.context.say);
  CAPSTONE_TRY(std::vector<Artifact> artifacts, building.get());
  if (!programs) return fail(programs.error());
  gpu_host_program = (*programs)[0];
  session.worker_program = (*programs)[1];
  session.capture_worker_program = (*programs)[2];
  session.replayer_program = (*programs)[3];
  session.native = std::move(artifacts.back());
  artifacts.pop_back();
  if (session.has_native() && !session.native.result.ok)
    return fail("the problem's baseline.cu does not build: " + session.native.result.first_error->text,
                session.native.result.first_error->file, "see `capstone doctor` for missing libraries",
                ExitCode::kEnvironment);
  session.building = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return artifacts;
}

Result<void> open_device(CudaSession& session, const fs::path& gpu_host_program, const Oracle& oracle) {
  CAPSTONE_TRY(session.gpu_lock, take_gpu(session.gpu, *session.context.say));
  CAPSTONE_TRY(session.gpu_host, GpuHost::start(gpu_host_program, session.trusted));
  session.peaks = peaks_of(attributes_of(session.gpu_host->device()));
  session.sandbox.allow_reading(session.toolkit.root);  // the CUDA runtime that both programs load
  if (is_timed(session.request()) && session.has_native())
    session.native_wants = std::async(std::launch::async, [&session] {
                             return wants_of(session.problem(), [&session] {
                               return session.start_worker(session.native.program, true);
                             });
                           }).share();
  CAPSTONE_TRY(session.baselines, find_baselines(session, oracle));
  return {};
}

Result<Json> describe(CudaSession& session) {
  const Json& device = session.gpu_host->device();
  Json environment = host_environment(session.resources());
  environment["device"] = session.gpu.name;
  environment["uuid"] = session.gpu.uuid;
  environment["driver"] = session.gpu.driver;
  environment["compute_capability"] = session.gpu.compute_capability;
  environment["nvcc"] = session.toolkit.version;
  environment["cuda_runtime"] = device.value("runtime", 0);
  environment["arch"] = session.gpu.arch();
  environment["sm_count"] = device.value("sm_count", 0);
  environment["l2_bytes"] = device.value("l2_bytes", std::size_t{0});
  environment["peaks"] = session.peaks.source;
  if (session.baselines.pytorch) environment["torch"] = session.baselines.pytorch->python.torch;
  if (!is_timed(session.request())) return environment;
  if (!session.baselines.why_native.empty()) environment["native_because"] = session.baselines.why_native;
  CAPSTONE_TRY(environment["copy_bytes_per_second"], session.gpu_host->copy_bandwidth());
  return environment;
}

}  // namespace capstone
