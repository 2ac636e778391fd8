// Where CUDA's headers are, and CUTLASS's. A Toolkit comes first; else the headers that
// scripts/fetch_cuda_headers.sh put into the cache.
#include "harness/base/subprocess.h"
#include "harness/runtime/build/build.h"

namespace capstone {
namespace fs = std::filesystem;

namespace {
bool has_headers(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "cuda_runtime.h", ignored);
}
}  // namespace

Result<fs::path> find_cuda_headers(const Resources& resources) {
  std::vector<fs::path> candidates;
  if (!resources.ignore_toolkit) {
    if (auto nvcc = find_program("nvcc", resources.path_variable)) {
      std::error_code ignored;
      const fs::path real = fs::canonical(*nvcc, ignored);
      candidates.push_back((ignored ? *nvcc : real).parent_path().parent_path() / "include");
    }
    candidates.emplace_back("/usr/local/cuda/include");
    candidates.emplace_back("/usr/include");  // Debian's nvidia-cuda-toolkit
  }
  candidates.push_back(resources.cache / "cuda-headers" / "13.0");
  for (const fs::path& candidate : candidates)
    if (has_headers(candidate)) return candidate;
  return fail("CUDA's headers were not found: neither a CUDA Toolkit nor fetched headers",
              candidates.back().string(),
              "run " + (resources.share / "scripts" / "fetch_cuda_headers.sh").string() +
                  " (downloads 2.4 MB from PyPI), or install the CUDA Toolkit",
              ExitCode::kEnvironment);
}

Result<fs::path> find_cutlass_headers(const Resources& resources) {
  const fs::path folder =
      resources.cutlass.empty() ? resources.cache / "cutlass-headers" / kCutlassVersion : resources.cutlass;
  std::error_code ignored;
  if (fs::exists(folder / "cutlass/version.h", ignored)) return folder;
  const std::string script = (resources.share / "scripts" / "fetch_cuda_headers.sh").string();
  return fail("CUTLASS's headers were not found", folder.string(),
              resources.cutlass.empty()
                  ? "run " + script +
                        " --cutlass (downloads 6.4 MB from PyPI), or name their folder in "
                        "CAPSTONE_CUTLASS"
                  : "CAPSTONE_CUTLASS must name the folder that holds cute/ and cutlass/",
              ExitCode::kEnvironment);
}

}  // namespace capstone
