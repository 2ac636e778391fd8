#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace capstone {

namespace fs = std::filesystem;

/// The whole file as bytes. @error missing or unreadable; @error larger than `limit` bytes.
Result<std::string> read_file(const fs::path& path, std::size_t limit = std::size_t{1} << 30);

/// Replaces `path` whole or not at all: temporary file beside it, fsync, rename, fsync of the folder.
/// A full disk or a read-only folder leaves the old file as it was.
Result<void> write_file_atomic(const fs::path& path, std::string_view bytes, unsigned mode = 0644);

/// Writes a file that must not exist yet; creates parent folders. @error it exists already.
Result<void> write_new_file(const fs::path& path, std::string_view bytes);

/// A name beside `path` that no other thread or running process uses: where something is made that takes `path`'s place when whole.
fs::path temporary_beside(const fs::path& path);

/// mkdir -p with an Error.
Result<void> make_folders(const fs::path& path);

/// An exclusive lock on a file, held until destruction; freed by the kernel if we die.
class FileLock {
 public:
  /// @param wait  false: fail at once when another process holds it.
  static Result<FileLock> acquire(const fs::path& path, bool wait);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace capstone
