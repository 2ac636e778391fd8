#include "harness/base/memory_group.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "harness/base/text.h"

namespace capstone {
namespace fs = std::filesystem;
namespace {

std::string text_of(const fs::path& file) {  // files of the kernel's have no size
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has_word(const std::string& text, std::string_view word) {
  std::istringstream words(text);
  for (std::string one; words >> one;)
    if (one == word) return true;
  return false;
}

bool write_text(const fs::path& file, std::string_view text) {
  const Descriptor fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

fs::path mount_of_version_2() {
  std::istringstream mounts(text_of("/proc/self/mountinfo"));
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    const auto fields = split(line, ' ');  // number, parent, device, root, mount point, …
    if (fields.size() > 4) return fields[4];
  }
  return {};
}

}  // namespace

fs::path MemoryGroup::delegated(const fs::path& mount, std::string_view own) {
  if (mount.empty()) return {};
  for (const std::string& line : split(own, '\n')) {
    if (!line.starts_with("0::/")) continue;
    for (fs::path below = line.substr(4);; below = below.parent_path()) {
      const fs::path folder = below.empty() ? mount : mount / below;
      if (has_word(text_of(folder / "cgroup.subtree_control"), "memory") &&
          ::access(folder.c_str(), W_OK) == 0 && ::access((folder / "cgroup.procs").c_str(), W_OK) == 0)
        return folder;
      if (below.empty()) break;
    }
  }
  return {};
}

const fs::path& MemoryGroup::delegated() {
  static const fs::path folder = delegated(mount_of_version_2(), text_of("/proc/self/cgroup"));
  return folder;
}

std::optional<MemoryGroup> MemoryGroup::create(const fs::path& delegated, std::size_t limit) {
  static std::atomic<unsigned> count{0};
  if (delegated.empty()) return std::nullopt;
  fs::path folder = delegated / ("capstone-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
  std::error_code code;
  if (!fs::create_directory(folder, code)) return std::nullopt;
  Descriptor entrance(::open((folder / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  MemoryGroup group(std::move(folder), std::move(entrance));
  if (!group.entrance_ || !write_text(group.folder_ / "memory.max", std::to_string(limit)))
    return std::nullopt;
  write_text(group.folder_ / "memory.swap.max", "0");   // not everywhere
  write_text(group.folder_ / "memory.oom.group", "1");  // all or nothing, as at every other limit
  return group;
}

bool MemoryGroup::exhausted() const {
  std::istringstream events(text_of(folder_ / "memory.events"));
  std::string key;
  for (std::size_t value = 0; events >> key >> value;)
    if (key == "oom_kill" && value > 0) return true;
  return false;
}

MemoryGroup::~MemoryGroup() {
  if (folder_.empty()) return;
  write_text(folder_ / "cgroup.kill", "1");
  // A process that was killed leaves its group a moment later.
  for (int i = 0; i < 100 && ::rmdir(folder_.c_str()) != 0 && errno == EBUSY; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace capstone
