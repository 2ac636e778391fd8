#pragma once
// Chooses the files of a project that are handed in.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/project/archive/submission.h"

namespace capstone {

struct CollectedFile {
  std::string path;              ///< inside the project; '/' separates the parts
  std::filesystem::path source;  ///< where the bytes are: this path, or the target of the link
  std::uintmax_t bytes = 0;
};

struct Collection {
  std::vector<CollectedFile> files;  ///< sorted by path
  std::vector<SkippedFile> skipped;  ///< sorted by path
};

/// Walks the project. Links to folders are not followed; a link to a file only if that file is handed in
/// itself.
/// @error a folder cannot be read; more files than allowed.
Result<Collection> collect_files(const std::filesystem::path& root, std::size_t max_files);

/// The reason why a path inside a project is not handed in; empty if it is. Looks only at the name.
std::string why_left_out(const std::string& path, bool is_folder);

}  // namespace capstone
