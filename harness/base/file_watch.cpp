#include "harness/base/file_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "harness/base/subprocess.h"

namespace capstone {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kSlice{100};  // how long an interrupt may go unnoticed

// Whether events come within the time; reads and forgets them.
bool events_within(int fd, milliseconds time) {
  pollfd entry{fd, POLLIN, 0};
  if (::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(0, time.count()))) <= 0) return false;
  char buffer[1 << 14];
  while (::read(fd, buffer, sizeof buffer) > 0) {
  }
  return true;
}

}  // namespace

Result<FileWatch> FileWatch::make() {
  const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0)
    return fail(std::string("cannot watch files: ") + std::strerror(errno), {},
                "the limit is in /proc/sys/fs/inotify/max_user_instances", ExitCode::kEnvironment);
  return FileWatch(fd);
}

FileWatch::FileWatch(FileWatch&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileWatch& FileWatch::operator=(FileWatch&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileWatch::~FileWatch() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> FileWatch::add(const std::filesystem::path& folder) {
  constexpr std::uint32_t kChanges = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR;
  if (::inotify_add_watch(fd_, folder.c_str(), kChanges) >= 0) return {};
  return fail(std::string("cannot watch this folder: ") + std::strerror(errno), folder.string(),
              errno == ENOSPC ? "the limit is in /proc/sys/fs/inotify/max_user_watches" : "",
              ExitCode::kEnvironment);
}

bool FileWatch::wait(milliseconds timeout, milliseconds quiet) {
  const Clock::time_point end = Clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (interrupted() || left.count() <= 0) return false;
    if (events_within(fd_, std::min(left, kSlice))) break;
  }
  while (!interrupted() && events_within(fd_, quiet)) {
  }
  return !interrupted();
}

}  // namespace capstone
