#pragma once
// Which files of a project are handed in.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/project/archive/submission.h"

namespace capstone {

struct CollectedFile {
  std::string path;                 ///< inside the project, '/' between parts
  std::filesystem::path source;     ///< where the bytes are: the same, or a link's target
  std::uintmax_t bytes = 0;
};

struct Collection {
  std::vector<CollectedFile> files;    ///< sorted by path
  std::vector<SkippedFile> skipped;    ///< sorted by path
};

/// Walks the project. Follows no link to a folder, and a link to a file only if that file is handed in itself.
/// @error a folder cannot be read; more files than allowed.
Result<Collection> collect_files(const std::filesystem::path& root, std::size_t max_files);

/// Why a path inside a project is not handed in; empty: it is. Looks at the name alone.
std::string why_left_out(const std::string& path, bool is_folder);

}  // namespace capstone
