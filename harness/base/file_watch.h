#pragma once
#include <chrono>
#include <filesystem>

#include "harness/base/error.h"

namespace capstone {

/// Waits for changes in folders (inotify). It watches folders, not files: many editors save a file by writing
/// a new one and renaming it, which ends a watch on the file itself.
class FileWatch {
 public:
  /// @error the system has no inotify instance left; the hint names the limit.
  static Result<FileWatch> make();
  FileWatch(FileWatch&& other) noexcept;
  FileWatch& operator=(FileWatch&& other) noexcept;
  ~FileWatch();

  /// Also watches the files directly in `folder`. A folder that was removed and made again is watched again.
  /// @error the folder does not exist, or the limit of watches is reached.
  Result<void> add(const std::filesystem::path& folder);

  /// Waits until a file in one of the folders was written, renamed or removed, and then until nothing more
  /// has happened for `quiet`: one save of an editor is one change.
  /// @return false: the time is over, or the process was interrupted.
  bool wait(std::chrono::milliseconds timeout,
            std::chrono::milliseconds quiet = std::chrono::milliseconds(60));

 private:
  explicit FileWatch(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace capstone
