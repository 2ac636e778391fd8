#pragma once
#include <filesystem>
#include <string>

namespace capstone {

/// Changes with every file that `source` may include from its own folder and the folders in it, whatever it
/// is called. What lies elsewhere an isolated build cannot read. Files over 4 MiB count by size and time. In
/// a folder of more than 1,024 entries nobody looks: the digest is then never the same twice, so that nothing
/// stale is taken from a cache.
std::string digest_of_neighbours(const std::filesystem::path& source);

}  // namespace capstone
