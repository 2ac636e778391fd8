#include "harness/analysis/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/analysis/explain/explain.h"
#include "harness/analysis/profile/machine_code.h"
#include "harness/analysis/profile/ncu.h"
#include "harness/analysis/profile/occupancy.h"
#include "harness/analysis/profile/verified_launch.h"
#include "harness/base/symbols.h"
#include "harness/base/text.h"
#include "harness/runtime/build/cuda.h"
#include "harness/timing/roofline.h"

namespace capstone {
namespace {

template <class T>
void take(std::optional<T>& into, const std::optional<T>& from) {
  if (!into) into = from;
}

void complete(KernelProfile& k, const KernelProfile& o) {
  take(k.launches, o.launches);
  take(k.blocks, o.blocks);
  take(k.threads, o.threads);
  take(k.sectors_per_load, o.sectors_per_load);
  take(k.sectors_per_store, o.sectors_per_store);
  take(k.sectors_per_request, o.sectors_per_request);
  take(k.wavefronts_over_ideal, o.wavefronts_over_ideal);
  take(k.lanes_per_instruction, o.lanes_per_instruction);
  take(k.registers, o.registers);
  take(k.static_shared_bytes, o.static_shared_bytes);
  take(k.dynamic_shared_bytes, o.dynamic_shared_bytes);
  take(k.spill_bytes, o.spill_bytes);
  take(k.stack_bytes, o.stack_bytes);
  if (k.machine_code_seen || !o.machine_code_seen) return;
  k.machine_code_seen = true;
  k.memory_instructions = o.memory_instructions;
  k.tensor_instructions = o.tensor_instructions;
}

void model_occupancy(KernelProfile& k, const std::string& arch) {
  const auto sm = sm_limits(arch);
  if (k.occupancy_limit_percent || !sm || !k.registers || !k.threads || !k.static_shared_bytes ||
      !k.dynamic_shared_bytes)
    return;
  const Occupancy possible =
      theoretical_occupancy(*sm, static_cast<int>(*k.threads), static_cast<int>(*k.registers),
                            static_cast<int>(*k.static_shared_bytes + *k.dynamic_shared_bytes));
  k.occupancy_limit_percent = possible.percent;
  k.occupancy_limiter = possible.limiter;
}

// Counts from the emulator, if the CPU can run the kernel.
Result<void> count_on_cpu(const ProfileRequest& request, const DevicePeaks& peaks, const Resources& resources,
                          const Narration& say, Profile& p) {
  Problem problem = *request.problem;
  problem.measure = request.sizes;  // the bound holds at the profiled size
  const auto explained = explain({&problem, request.source, problem.emulate, peaks, true}, resources, say);
  if (explained) {
    p.counted_at = to_string(request.problem->emulate);
    p.kernels = counts_of(*explained);
    p.predicted = explained->floor;
    return {};
  }
  if (explained.error().code != ExitCode::kEnvironment) return fail(explained.error());
  p.missing.push_back("no counts: " + explained.error().what +
                      (explained.error().where.empty() ? "" : " (" + explained.error().where + ")"));
  return {};
}

}  // namespace

std::vector<std::string> complete(std::vector<KernelProfile>& kernels,
                                  const std::vector<KernelProfile>& other, bool rest) {
  std::vector<bool> taken(other.size());
  std::vector<std::string> unknown;
  for (KernelProfile& kernel : kernels) {
    std::vector<std::size_t> same, alike;
    for (std::size_t i = 0; i < other.size(); ++i) {
      if (same_kernel(other[i].kernel, kernel.kernel)) same.push_back(i);
      if (base_name(other[i].kernel) == base_name(kernel.kernel)) alike.push_back(i);
    }
    const std::vector<std::size_t>& found = same.empty() ? alike : same;
    if (found.size() != 1) {
      unknown.push_back(kernel.kernel);
      continue;
    }
    complete(kernel, other[found[0]]);
    taken[found[0]] = true;
  }
  if (rest || !unknown.empty())
    for (std::size_t i = 0; i < other.size(); ++i)
      if (!taken[i]) kernels.push_back(other[i]);
  return unknown;
}

std::vector<KernelProfile> counts_of(const Explanation& explanation) {
  auto some = [](double value, bool known) { return known ? std::optional<double>(value) : std::nullopt; };
  std::vector<KernelProfile> kernels;
  for (const KernelCounts& counts : explanation.kernels) {
    const LineCounts total = counts.total();
    KernelProfile k;
    k.kernel = counts.function.empty() ? counts.kernel : counts.function;
    k.launches = double(counts.launches);
    k.blocks = double(counts.blocks);
    k.threads =
        some(double(counts.threads) / double(std::max<std::uint64_t>(counts.blocks, 1)), counts.blocks > 0);
    k.dynamic_shared_bytes = double(counts.dynamic_shared);
    k.sectors_per_request = some(total.global.units_per_request(), total.global.requests > 0);
    k.wavefronts_over_ideal = some(total.shared.excess(), total.shared.requests > 0);
    const Traffic both = total.both();
    k.lanes_per_instruction = some(both.lanes_per_request(), both.requests_of_lanes() > 0);
    kernels.push_back(std::move(k));
  }
  return kernels;
}

Result<Profile> profile(const ProfileRequest& request, const Resources& resources, const Narration& say) {
  Profile p;
  p.problem_id = request.problem->id;
  p.sizes = sizes_json(request.sizes);
  const auto gpu = find_gpu(resources);
  if (!request.ncu)
    p.because = "ncu was switched off";
  else if (!gpu)
    p.because = "no NVIDIA GPU here";
  else if (const auto toolkit = find_toolkit(resources); !toolkit)
    p.because = toolkit.error().what;
  if (gpu) {
    p.device = gpu->name;
    p.driver = gpu->driver;
  }
  if (p.because.empty()) {
    CAPSTONE_TRY(LaunchUnderNcu launch,
                 launch_under_ncu(*request.problem, request.source, request.sizes, *gpu, resources, say));
    p.because = launch.because;
    if (!launch.csv.empty()) {
      CAPSTONE_TRY(p.kernels, read_ncu(launch.csv, "ncu's output"));
      p.csv = std::move(launch.csv);
      p.ncu = launch.ncu;
      p.verified = true;
      p.checked_at = launch.checked_at;
    }
  }
  std::optional<DevicePeaks> peaks = request.device;
  if (!peaks && gpu) peaks = find_device(gpu->name);
  if (!peaks) {
    CAPSTONE_TRY(peaks, find_device_like("h100"));
  }
  if (p.ncu.empty()) CAPSTONE_CHECK(count_on_cpu(request, *peaks, resources, say, p));
  const std::string arch = !request.arch.empty() ? request.arch : gpu ? gpu->arch() : "sm_90a";
  if (const auto toolkit = find_toolkit(resources)) {
    say("compiling for " + arch);
    const Sandbox sandbox = Sandbox::detect(resources);
    CAPSTONE_TRY(const CompiledKernels compiled,
                 machine_code(*request.problem, request.source, arch, resources, &sandbox));
    p.arch = arch;
    if (!compiled.no_listing.empty()) p.missing.push_back("no machine code: " + compiled.no_listing);
    if (p.kernels.empty()) p.kernels = compiled.kernels;
    // The launch on the CPU used the `emulate` size. At the profiled size, launch() may choose another of its
    // kernels.
    else if (const auto unknown = complete(p.kernels, compiled.kernels, p.ncu.empty()); !unknown.empty())
      p.missing.push_back(
          fmt::format("the name does not tell which compiled kernel {} is: the possible ones are listed "
                      "after those that were launched",
                      join(unknown, ", ")));
  } else {
    p.missing.push_back("no registers and no machine code: " + toolkit.error().what);
  }
  for (KernelProfile& kernel : p.kernels) model_occupancy(kernel, arch);
  CAPSTONE_TRY(const Cost cost, cost_at(*request.problem, request.sizes));
  const Roofline roof = roofline(cost, p.time_ms().value_or(0), *peaks, request.problem->precision);
  p.floor_ms = roof.floor_ms;
  p.bound_by = roof.bound_by;
  p.peak = fmt::format("{}, {}", peaks->name, roof.peak);
  return p;
}

}  // namespace capstone
