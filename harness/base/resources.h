#pragma once
#include <filesystem>
#include <string>

#include "harness/base/error.h"

namespace capstone {

/// Where the installed files are and where capstone may write its own files. Created once by the command line
/// (the only part that reads the environment) and passed down.
struct Resources {
  std::filesystem::path share;  ///< …/share/capstone: problems, templates, rubric, reference_kernels, harness
  std::filesystem::path libexec;  ///< …/libexec/capstone: workers, rewriter, emulator library, oracles
  std::filesystem::path cache;    ///< the user's cache: builds, fetched headers; created on demand
  std::string path_variable;      ///< PATH, used to find programs
  std::string version;            ///< of capstone
  bool ignore_toolkit = false;    ///< behave as if no CUDA Toolkit were installed (only fetched headers)
  std::filesystem::path cutlass;  ///< the folder of cute/ and cutlass/; empty: the fetched ones
  std::string isolation;          ///< "bubblewrap", "landlock" or "none": use only that; empty: use the
                                  ///< strongest that works
  std::string visible_devices;    ///< CUDA_VISIBLE_DEVICES, passed to the GPU processes; empty: unset

  std::filesystem::path problems() const { return share / "problems"; }
  std::filesystem::path reference_kernels() const { return share / "reference_kernels"; }
  std::filesystem::path templates() const { return share / "templates"; }
};

/// Finds share/ and libexec/ next to the running program (build tree and installed tree have the same
/// layout).
/// @error the program was moved away from its files; the hint says what was expected.
Result<Resources> locate_resources(const std::filesystem::path& executable,
                                   const std::filesystem::path& cache, const std::string& path_variable);

}  // namespace capstone
