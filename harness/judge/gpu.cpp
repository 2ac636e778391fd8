#include "harness/judge/gpu.h"

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/runtime/build/cuda.h"

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
               "--id=" + (resources.visible_devices.empty() ? std::string("0")
                                                            : split(resources.visible_devices, ',').front())};
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
  if (!find_toolkit(resources))
    return {Backend::kEmulated, "there is a GPU (" + gpu->name + ") but no nvcc to build for it"};
  return {Backend::kCuda, {}};
}

Result<FileLock> take_gpu(const GpuIdentity& gpu, const Narration& say) {
  std::error_code code;
  const fs::path file = "/tmp/capstone-" + gpu.uuid + ".lock";
  for (bool said = false;;) {
    auto lock = FileLock::acquire(file, false);
    if (lock) {
      fs::permissions(
          file, fs::perms::all & ~fs::perms::owner_exec & ~fs::perms::group_exec & ~fs::perms::others_exec,
          code);
      return lock;
    }
    if (lock.error().code != ExitCode::kEnvironment) return lock;
    if (interrupted()) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (!said) say({Stage::kWait, {}, gpu.name + ": another capstone command is using it"});
    said = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace capstone
