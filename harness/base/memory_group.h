#pragma once
// Memory of a child as the kernel counts it: a cgroup (version 2) of its own, where this user may make one.
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "harness/base/packet.h"

namespace capstone {

/// One cgroup. All that its processes use counts: socket buffers, files in memory, what is on its way
/// through a socket. Over the limit the kernel kills them all. Removed on destruction, with what runs in it.
class MemoryGroup {
 public:
  /// Where groups can be made: the own cgroup, or the nearest one above it, that this user may write to and
  /// that hands the memory controller on. Empty: nowhere.
  ///
  /// @param mount   where the hierarchy of version 2 is mounted
  /// @param own     /proc/self/cgroup
  static std::filesystem::path delegated(const std::filesystem::path& mount, std::string_view own);
  /// The same for this process; looked up once.
  static const std::filesystem::path& delegated();

  /// Nothing where there is no delegated folder.
  static std::optional<MemoryGroup> create(const std::filesystem::path& delegated, std::size_t limit);

  MemoryGroup(MemoryGroup&& other) noexcept { *this = std::move(other); }
  MemoryGroup& operator=(MemoryGroup&& other) noexcept {
    std::swap(folder_, other.folder_);
    std::swap(entrance_, other.entrance_);
    return *this;
  }
  ~MemoryGroup();

  /// A process that writes "0" to this becomes a member.
  int entrance() const { return entrance_.get(); }
  /// Whether the kernel has killed for want of memory.
  bool exhausted() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  MemoryGroup(std::filesystem::path folder, Descriptor entrance)
      : folder_(std::move(folder)), entrance_(std::move(entrance)) {}
  std::filesystem::path folder_;
  Descriptor entrance_;
};

}  // namespace capstone
