#include "cli/gpu_memory.h"

namespace capstone::cli {

void add_memory_option(CLI::App& command, double& gigabytes) {
  command.add_option("--memory", gigabytes, "GPU memory that an imported problem must fit (default: this GPU's; without a GPU 8)")->type_name("GB")->check(CLI::Range(1.0, 1000.0));
}

Result<double> memory_for(double gigabytes, Backend backend, const Resources& resources) {
  if (gigabytes > 0) return gigabytes * 1e9;
  if (choose_backend(backend, resources).backend != Backend::kCuda) return 8e9;
  CAPSTONE_TRY(const GpuIdentity gpu, find_gpu(resources));
  return gpu.memory_bytes;
}

}  // namespace capstone::cli
