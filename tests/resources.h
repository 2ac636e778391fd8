#pragma once
// What tests that build, judge, explain or import whole kernels run with. Their targets define
// CAPSTONE_SHARE, CAPSTONE_LIBEXEC and CAPSTONE_TEST_CACHE.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "harness/base/resources.h"

namespace capstone::test {

inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

inline Resources suite_resources() {
  Resources resources;
  resources.share = CAPSTONE_SHARE;
  resources.libexec = CAPSTONE_LIBEXEC;
  resources.cache = CAPSTONE_TEST_CACHE;  // not deleted: the next run of the suite finds its builds
  const char* path = std::getenv("PATH");
  resources.path_variable = path != nullptr ? path : "/usr/bin:/bin";
  resources.version = "test";
  return resources;
}

/// With the headers that scripts/fetch_cuda_headers.sh left in the user's cache: they serve on a machine
/// without a Toolkit.
inline Resources suite_resources_and_headers() {
  Resources resources = suite_resources();
  const std::filesystem::path& cache = resources.cache;
  const std::string xdg = environment("XDG_CACHE_HOME"), named = environment("CAPSTONE_CACHE");
  const std::filesystem::path users =
      !named.empty() ? std::filesystem::path(named)
                     : (xdg.empty() ? std::filesystem::path(environment("HOME")) / ".cache"
                                    : std::filesystem::path(xdg)) /
                           "capstone";
  std::error_code ignored;
  for (const char* folder : {"cuda-headers", "cutlass-headers"}) {
    if (!std::filesystem::exists(users / folder, ignored)) continue;
    std::filesystem::create_directories(cache, ignored);
    std::filesystem::remove(cache / folder, ignored);
    std::filesystem::create_directory_symlink(users / folder, cache / folder, ignored);
  }
  return resources;
}

}  // namespace capstone::test
