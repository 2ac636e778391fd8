#include "harness/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace capstone {
namespace {

std::string reason() { return std::strerror(errno); }

Error cannot(const std::string& verb, const fs::path& path) {
  std::string hint;
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  if (errno == EACCES || errno == EROFS || errno == EPERM)
    hint = "you cannot write to the folder; choose another one or fix its permissions";
  else if (errno == ENOSPC || errno == EDQUOT)
    hint = "this disk is full; free some space and run the command again; nothing was lost";
  else if (errno == EFBIG)
    hint =
        "the limit on file size was reached (ulimit -f); raise it and run the command again; nothing was "
        "lost";
  else if (errno == ENOENT || errno == ENOTDIR)
    hint = "check the path";
  return {"cannot " + verb + ": " + reason(), path.string(), hint,
          full ? ExitCode::kEnvironment : ExitCode::kUsage};
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void sync_folder(const fs::path& folder) {
  int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// Writes the bytes to a temporary file next to `path` and syncs it. If that fails, the file is removed.
Result<fs::path> write_temporary(const fs::path& path, std::string_view bytes, unsigned mode) {
  const fs::path temporary = temporary_beside(path);
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return fail(cannot("write", path));
  const bool ok = write_all(fd, bytes) && ::fsync(fd) == 0;
  Error error = cannot("write", path);
  ::close(fd);
  if (ok) return temporary;
  ::unlink(temporary.c_str());
  return fail(error);
}

// Gives a file its final name if the name is free: two processes at once cannot both succeed. False: see
// errno.
bool place_new(const fs::path& temporary, const fs::path& path) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // Some file systems cannot do that in one step. Creating a second link to the file is just as exclusive.
  if (::link(temporary.c_str(), path.c_str()) != 0) return false;
  ::unlink(temporary.c_str());
  return true;
}

}  // namespace

fs::path temporary_beside(const fs::path& path) {
  static std::atomic<unsigned> count{0};
  fs::path temporary = path;
  temporary += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  return temporary;
}

Result<std::string> read_file(const fs::path& path, std::size_t limit) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(cannot("read", path));
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd);
    return fail("cannot read: this is a folder, not a file", path.string());
  }
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Error error = cannot("read", path);
      ::close(fd);
      return fail(error);
    }
    if (n == 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > limit) {
      ::close(fd);
      return fail("file is larger than " + std::to_string(limit) + " bytes", path.string());
    }
  }
  ::close(fd);
  return text;
}

Result<void> write_file_atomic(const fs::path& path, std::string_view bytes, unsigned mode) {
  CAPSTONE_TRY(const fs::path temporary, write_temporary(path, bytes, mode));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = cannot("write", path);
    ::unlink(temporary.c_str());
    return fail(error);
  }
  sync_folder(path.parent_path());
  return {};
}

Result<void> write_new_file(const fs::path& path, std::string_view bytes) {
  CAPSTONE_CHECK(make_folders(path.parent_path()));
  CAPSTONE_TRY(const fs::path temporary, write_temporary(path, bytes, 0644));
  if (!place_new(temporary, path)) {
    Error error =
        errno == EEXIST
            ? Error{"file exists already and is never overwritten", path.string(), {}, ExitCode::kUsage}
            : cannot("write", path);
    ::unlink(temporary.c_str());
    return fail(error);
  }
  sync_folder(path.parent_path());
  return {};
}

Result<void> make_folders(const fs::path& path) {
  if (path.empty()) return {};
  std::error_code code;
  fs::create_directories(path, code);
  if (code) {
    errno = code.value();
    return fail(cannot("create the folder", path));
  }
  return {};
}

Result<FileLock> FileLock::acquire(const fs::path& path, bool wait) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return fail(cannot("lock", path));
  while (::flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
    if (errno == EINTR && wait) continue;
    bool busy = errno == EWOULDBLOCK;
    Error error = cannot("lock", path);
    ::close(fd);
    if (busy)
      error = {"another capstone command is working here", path.string(),
               "wait until it has finished, then run this again", ExitCode::kEnvironment};
    return fail(error);
  }
  return FileLock(fd);
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}
FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace capstone
