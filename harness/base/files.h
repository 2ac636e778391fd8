#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace capstone {

namespace fs = std::filesystem;

/// The whole file as bytes. @error missing or unreadable; larger than `limit` bytes.
Result<std::string> read_file(const fs::path& path, std::size_t limit = std::size_t{1} << 30);

/// Replaces `path` completely or not at all: temporary file next to it, fsync, rename, fsync of the folder. A
/// full disk or a read-only folder leaves the old file unchanged.
Result<void> write_file_atomic(const fs::path& path, std::string_view bytes, unsigned mode = 0644);

/// Writes a file that must not exist yet; creates parent folders. @error it exists already.
Result<void> write_new_file(const fs::path& path, std::string_view bytes);

/// A path next to `path` that no other thread or running process uses. Write there first, then rename to
/// `path`.
fs::path temporary_beside(const fs::path& path);

/// Like mkdir -p, with an Error.
Result<void> make_folders(const fs::path& path);

/// An exclusive lock on a file, held until destruction; the operating system frees it if this process dies.
class FileLock {
 public:
  /// @param wait  false: fail at once if another process holds the lock.
  static Result<FileLock> acquire(const fs::path& path, bool wait);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace capstone
