#include "harness/base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace capstone {
namespace {

std::string proc(pid_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

// Reads the beginning of a file of /proc. Uses plain system calls: it runs during measurements, many times
// per second.
std::optional<std::string> text_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char buffer[8192];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  ::close(fd);
  if (n < 0) return std::nullopt;
  return std::string(buffer, static_cast<std::size_t>(n));
}

std::vector<pid_t> numbers_in(const char* folder) {
  std::vector<pid_t> numbers;
  DIR* all = ::opendir(folder);
  if (!all) return numbers;
  while (const dirent* entry = ::readdir(all)) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  ::closedir(all);
  return numbers;
}

// The start time of a process, in the operating system's ticks; empty if the process is gone.
std::optional<std::uint64_t> start_of(pid_t pid) {
  auto stat = text_of(proc(pid, "stat"));
  if (!stat) return std::nullopt;
  // Field 2, the name in parentheses, may contain any character. The start time is field 22.
  std::size_t at = stat->rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat->find(' ', at + 1);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoull(stat->c_str() + at + 1, nullptr, 10);
}

struct Resident {
  std::size_t anonymous = 0, shared = 0;
};  // [B]

// Without mappings of files and devices: with some drivers, a GPU's memory appears there.
Resident resident_of(pid_t pid) {
  auto status = text_of(proc(pid, "status"));
  auto value = [&](std::string_view key) -> std::size_t {
    const std::size_t at = status ? status->find(key) : std::string::npos;
    return at == std::string::npos ? 0 : std::strtoull(status->c_str() + at + key.size(), nullptr, 10) * 1024;
  };
  return {value("\nRssAnon:"), value("\nRssShmem:")};
}

using MemoryFiles = std::map<std::pair<dev_t, ino_t>, std::size_t>;  // file → its memory [B]

// What may wait in a socket: the kernel's usual buffer (net.core.wmem_default), and the message that no
// longer fitted.
constexpr std::size_t kSocketBytes = std::size_t{256} << 10;

// The memory that a process holds through file descriptors, mapped or not: memfd_create() and /dev/shm.
// `sockets` gets the names of its sockets.
void add_memory_files(const std::string& folder, MemoryFiles& into, std::set<std::string>& sockets) {
  DIR* all = ::opendir(folder.c_str());
  if (!all) return;
  while (const dirent* entry = ::readdir(all)) {
    char target[64];
    const ssize_t n = ::readlinkat(::dirfd(all), entry->d_name, target, sizeof target);
    const std::string_view name(target, n > 0 ? static_cast<std::size_t>(n) : 0);
    struct stat facts {};
    if (name.starts_with("socket:")) sockets.emplace(name);
    if ((name.starts_with("/memfd:") || name.starts_with("/dev/shm/")) &&
        ::fstatat(::dirfd(all), entry->d_name, &facts, 0) == 0)
      into[{facts.st_dev, facts.st_ino}] = static_cast<std::size_t>(facts.st_blocks) * 512;
  }
  ::closedir(all);
}

std::size_t total_of(const MemoryFiles& files) {
  std::size_t total = 0;
  for (const auto& [which, bytes] : files) total += bytes;
  return total;
}

// Some operating systems do not list a process's children (no CONFIG_PROC_CHILDREN).
bool children_are_listed() {
  static const bool listed = ::access("/proc/thread-self/children", F_OK) == 0;
  return listed;
}

void add_children(pid_t pid, const std::vector<pid_t>& threads, std::vector<pid_t>& into) {
  for (const pid_t thread : threads) {
    auto children = text_of(proc(pid, "task/") + std::to_string(thread) + "/children");
    const char* at = children ? children->c_str() : "";
    for (char* end = nullptr;; at = end) {
      const long child = std::strtol(at, &end, 10);
      if (end == at) break;
      into.push_back(static_cast<pid_t>(child));
    }
  }
}

}  // namespace

ProcessTree::ProcessTree(pid_t root) : root_(root), began_(start_of(root)) {}

bool ProcessTree::has_root() const { return start_of(root_) == began_; }

bool ProcessTree::ended() const {
  const auto stat = text_of(proc(root_, "stat"));
  const std::size_t name = stat ? stat->rfind(") ") : std::string::npos;
  if (name == std::string::npos || name + 2 >= stat->size() || !has_root()) return true;
  const char state = (*stat)[name + 2];
  return state == 'Z' || state == 'X';
}

ProcessTree::Usage ProcessTree::look_locked() {
  Usage usage;
  std::vector<pid_t> waiting{root_};
  if (!children_are_listed())  // then use the members of the group: all but those that left it
    for (const pid_t other : numbers_in("/proc"))
      if (other != root_ && ::getpgid(other) == root_) waiting.push_back(other);
  Resident resident;
  MemoryFiles files;
  std::set<std::string> sockets;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const pid_t pid = waiting[i];
    const std::vector<pid_t> threads = numbers_in(proc(pid, "task").c_str());
    usage.tasks += static_cast<int>(threads.size());
    const Resident its = resident_of(pid);
    resident.anonymous += its.anonymous;
    resident.shared += its.shared;
    add_memory_files(proc(pid, "fd"), files, sockets);
    if (auto start = start_of(pid)) seen_[pid] = *start;
    if (children_are_listed()) add_children(pid, threads, waiting);
  }
  if (total_of(files) > resident.shared) {  // some of it is not mapped; the files that we passed to it are
                                            // ours
    MemoryFiles ours;
    std::set<std::string> none_of_its;
    add_memory_files("/proc/self/fd", ours, none_of_its);
    for (const auto& [which, bytes] : ours) files.erase(which);
  }
  usage.memory =
      resident.anonymous + std::max(resident.shared, total_of(files)) + sockets.size() * kSocketBytes;
  return usage;
}

std::set<std::string> ProcessTree::libraries() {
  std::lock_guard lock(mutex_);
  look_locked();
  std::set<std::string> names;
  for (const auto& [pid, start] : seen_) {
    if (start_of(pid) != start) continue;
    std::ifstream maps(proc(pid, "maps"));
    for (std::string line; std::getline(maps, line);) {
      const std::size_t name = line.rfind('/');
      if (name == std::string::npos) continue;
      std::string file = line.substr(name + 1);
      if (file.ends_with(".so") || file.find(".so.") != std::string::npos) names.insert(std::move(file));
    }
  }
  return names;
}

ProcessTree::Usage ProcessTree::look() {
  std::lock_guard lock(mutex_);
  return look_locked();
}

void ProcessTree::kill() {
  std::lock_guard lock(mutex_);
  look_locked();
  // Kill the root last: when it is gone, orphans are no longer its children and cannot be found.
  for (const auto& [pid, start] : seen_)
    if (pid != root_ && start_of(pid) == start) ::kill(pid, SIGKILL);
  if (has_root()) ::kill(-root_, SIGKILL);
}

}  // namespace capstone
