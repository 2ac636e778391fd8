#pragma once
// A child process and all its descendants, as /proc shows them.
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace capstone {

/// Safe to use from several threads. `root` must lead its own process group, must adopt orphans
/// (PR_SET_CHILD_SUBREAPER), and must not have been reaped.
class ProcessTree {
 public:
  struct Usage {
    std::size_t memory = 0;  ///< [B] resident, without mappings of files and devices; and sockets
    int tasks = 0;           ///< processes and threads
  };

  explicit ProcessTree(pid_t root);

  /// Whether the root has ended, reaped or not. It need not be a child of this process.
  bool ended() const;

  /// Current use of the whole tree. Also remembers the processes for kill().
  Usage look();

  /// File names, without folders, of the shared objects that any of these processes has mapped now:
  /// "libc.so.6".
  std::set<std::string> libraries();

  /// Kills the group and every other process that was seen below the root, also processes that left the
  /// group.
  void kill();

 private:
  Usage look_locked();
  /// Whether the root's number is still its own.
  bool has_root() const;
  pid_t root_;
  std::optional<std::uint64_t> began_;  ///< the root's start time
  std::mutex mutex_;
  std::map<pid_t, std::uint64_t> seen_;  ///< process → start time, which distinguishes it from a later
                                         ///< process with the same number
};

}  // namespace capstone
