#pragma once
// The cache of builds: what is in it was built once, is found by its digest, and can be built again.
#include <chrono>
#include <cstdint>
#include <filesystem>

namespace capstone {

/// Notes that an entry of the cache, a file or a folder, is used now.
/// @return false where there is none.
bool use_cached(const std::filesystem::path& entry);

struct CacheLimits {
  std::uintmax_t bytes = std::uintmax_t{4} << 30;  ///< of all builds together
  std::chrono::hours unused{24 * 30};              ///< older ones go in any case
  std::chrono::hours kept{24};  ///< nothing that was used since then goes: another process may be using it
  std::chrono::hours rest{24};  ///< between two prunings
};

/// Removes builds from the cache, least recently used first, until the rest is within the limits. Does
/// nothing when it was pruned a short time ago. Several processes may prune and use the cache at once.
/// Headers that were fetched, and this machine's identity, are no builds.
/// @return how many entries were removed.
int prune_cache(const std::filesystem::path& cache, const CacheLimits& limits = {});

}  // namespace capstone
