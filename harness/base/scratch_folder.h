#pragma once
// RAII temporary directory.
#include <filesystem>
#include <system_error>

#include "harness/base/files.h"

namespace capstone {

class ScratchFolder {
 public:
  /// Chooses a new name next to `place` (temporary_beside). The user of the folder creates it.
  explicit ScratchFolder(const std::filesystem::path& place) : path_(temporary_beside(place)) {}
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace capstone
