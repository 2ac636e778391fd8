#pragma once
// From a submission's source to something a worker runs.
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/model/problem.h"
#include "harness/model/record.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

/// What a build for the CPU is instrumented for.
enum class BuildVariant {
  kFast,          ///< outputs only
  kAsan,          ///< accesses out of bounds at their line (AddressSanitizer), undefined arithmetic
                  ///< (UndefinedBehaviorSanitizer)
  kInstrumented,  ///< every access is seen: races, exact bounds, uninitialised reads, counts a line
};

struct BuildRequest {
  const Problem* problem =
      nullptr;                   ///< null: a whole program with a main() of its own (emulated backend only)
  std::filesystem::path source;  ///< the .cu; its folder is on the include path, and nothing else of the
                                 ///< user's but include_folders
  const Resources* resources = nullptr;
  const Sandbox* sandbox = nullptr;  ///< what the compilers run in; nullptr: the source is our own
  std::string label = "kernel";      ///< "human", "llm", "native": for messages
  int cuda_arch = 0;  ///< value of __CUDA_ARCH__ on the emulated backend; 0: 900, or 1000 or 800 when only
                      ///< that can be judged
  BuildVariant variant = BuildVariant::kFast;  ///< emulated backend only
  std::vector<std::filesystem::path> include_folders =
      {};                                     ///< emulated backend only; the compiler may read them
  std::vector<std::string> definitions = {};  ///< emulated backend only: "NAME" or "NAME=VALUE"
  std::vector<std::filesystem::path> more_sources = {};  ///< of a whole program: compiled and linked, too
  std::string standard = "c++17";                        ///< emulated backend only
  bool openmp = false;                                   ///< emulated backend only
};

struct Artifact {
  BuildResult result;
  std::filesystem::path program;      ///< emulated: the worker program; cuda: the .so; empty when !result.ok
  std::filesystem::path device_code;  ///< cuda: the fat binaries inside the .so
  /// cuda: "HMMA, IMMA", as far as the machine code has any. Listing it takes a second, in the background;
  /// not valid for the tool's own baselines
  std::shared_future<std::string> tensor_instructions{};
};

/// Builds for the CPU: preprocess → rewrite → compile → link with the emulator and the generated adapter.
/// Cached by the digest of source, local includes, adapter, flags, compiler version and emulator. Without a
/// problem there is no adapter: the program runs the source's own main(). A kernel that does not compile is
/// not an Error: result.ok is false and first_error is at the user's line. "Not judgeable on the CPU" (an
/// instruction, a library call) is also in the result: `not_judgeable` below.
/// @error no compiler, no CUDA headers (hint: how to get them), disk full.
struct EmulatedArtifact : Artifact {
  std::string not_judgeable;  ///< named reason with file:line, when the CPU cannot judge it; else empty
  /// Why it was built for another architecture than sm_90 although none was requested; and that tcgen05 was
  /// never run on hardware. Else empty.
  std::string arch_note;
};
Result<EmulatedArtifact> build_emulated(const BuildRequest& request);

/// The objects of the emulator that are compiled with CUDA's headers and linked into every program; they stay
/// in the cache.
/// @error no compiler, no CUDA headers, disk full.
Result<std::vector<std::filesystem::path>> build_emulator_objects(const Resources& resources);

/// What nvcc says about a source that is judged on the CPU: g++ accepts code that nvcc rejects, such as a
/// host variable in a kernel.
struct NvccCheck {
  std::string version;                   ///< "13.0"; empty: the source was not compiled
  std::string why_not;                   ///< then the reason
  std::optional<CompilerMessage> error;  ///< the first one
  std::vector<std::string> warnings;     ///< "kernel.cu:11: a __device__ variable …"
  std::string command, log;
};
/// Compiles the source with nvcc as far as PTX; nothing is assembled or linked. Kept in the cache.
/// @error the machine's fault; that there is no nvcc is none.
Result<NvccCheck> check_with_nvcc(const BuildRequest& request);

/// Where the CUDA headers are: a Toolkit's include folder, else the ones fetched into the cache.
/// @error neither: hint names scripts/fetch_cuda_headers.sh.
Result<std::filesystem::path> find_cuda_headers(const Resources& resources);

/// CUTLASS's release whose headers scripts/fetch_cuda_headers.sh --cutlass fetches.
inline constexpr const char* kCutlassVersion = "4.2.0";
/// The folder with cute/ and cutlass/: the one that Resources names, else the one that was fetched.
/// @error neither holds cutlass/version.h: hint names scripts/fetch_cuda_headers.sh --cutlass.
Result<std::filesystem::path> find_cutlass_headers(const Resources& resources);

/// Builds a .so for the GPU with nvcc: -O3 -lineinfo -arch=native-with-a, -cudart shared, per-thread default
/// stream, the adapter linked in. A source that comes to a header of CuTe or CUTLASS gets the folder of these
/// and --expt-relaxed-constexpr; where they are not there, its first error says so. `libraries` are linked
/// for our own baselines only ("cublas", "cudnn").
Result<Artifact> build_cuda(const BuildRequest& request, const std::string& arch,
                            const std::vector<std::string>& libraries);

}  // namespace capstone
