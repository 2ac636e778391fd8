#pragma once
#include <filesystem>
#include <string>

#include "harness/base/error.h"

namespace capstone {

/// Where the installed files are and where we may keep files of our own. Made once by the command line
/// (which alone reads the environment) and handed down.
struct Resources {
  std::filesystem::path share;    ///< …/share/capstone: problems, templates, rubric, reference_kernels, harness
  std::filesystem::path libexec;  ///< …/libexec/capstone: workers, rewriter, emulator library, oracles
  std::filesystem::path cache;    ///< the user's cache: builds, fetched headers; created on demand
  std::string path_variable;      ///< PATH, for finding programs
  std::string version;            ///< of the tool
  bool ignore_toolkit = false;    ///< behave as if no CUDA Toolkit were installed (fetched headers only)
  std::string isolation;          ///< "bubblewrap", "landlock" or "none": only that; empty: the best that works
  std::string visible_devices;    ///< CUDA_VISIBLE_DEVICES, handed on to the GPU processes; empty: unset

  std::filesystem::path problems() const { return share / "problems"; }
  std::filesystem::path reference_kernels() const { return share / "reference_kernels"; }
  std::filesystem::path templates() const { return share / "templates"; }
};

/// Finds share/ and libexec/ beside the running program (build tree and installed tree look alike).
/// @error the program was moved away from its files; the hint names what was expected.
Result<Resources> locate_resources(const std::filesystem::path& executable, const std::filesystem::path& cache,
                                   const std::string& path_variable);

}  // namespace capstone
