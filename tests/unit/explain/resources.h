#pragma once
// What tests that explain whole kernels run with.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "harness/base/resources.h"

namespace capstone::test {

inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// On a machine without a Toolkit the headers that scripts/fetch_cuda_headers.sh left in the user's cache serve.
inline void share_fetched_headers(const std::filesystem::path& cache) {
  const std::string xdg = environment("XDG_CACHE_HOME"), named = environment("CAPSTONE_CACHE");
  const std::filesystem::path users = !named.empty() ? std::filesystem::path(named) : (xdg.empty() ? std::filesystem::path(environment("HOME")) / ".cache" : std::filesystem::path(xdg)) / "capstone";
  std::error_code ignored;
  if (!std::filesystem::exists(users / "cuda-headers", ignored)) return;
  std::filesystem::create_directories(cache, ignored);
  std::filesystem::remove(cache / "cuda-headers", ignored);
  std::filesystem::create_directory_symlink(users / "cuda-headers", cache / "cuda-headers", ignored);
}

inline Resources explain_resources() {
  Resources r;
  r.share = CAPSTONE_SHARE;
  r.libexec = CAPSTONE_LIBEXEC;
  r.cache = CAPSTONE_TEST_CACHE;  // not deleted: the next run of the suite finds its builds
  r.path_variable = environment("PATH");
  r.version = "test";
  share_fetched_headers(r.cache);
  return r;
}

}  // namespace capstone::test
