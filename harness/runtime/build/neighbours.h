#pragma once
#include <filesystem>
#include <string>

namespace capstone {

/// Changes with every file that `source` may include from its own folder and the folders in it, whatever it
/// is called. An isolated build cannot read other files. Files over 4 MiB count by size and time. A folder of
/// more than 1,024 entries is not read: the digest is then different each time, so that no stale build is
/// taken from a cache.
std::string digest_of_neighbours(const std::filesystem::path& source);

}  // namespace capstone
