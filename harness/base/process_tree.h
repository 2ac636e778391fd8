#pragma once
// A process that we started and all below it, as /proc shows them.
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace capstone {

/// Safe to use from several threads. `root` must lead a process group of its own, must adopt orphans (PR_SET_CHILD_SUBREAPER),
/// and must not have been reaped.
class ProcessTree {
 public:
  struct Usage {
    std::size_t memory = 0;  ///< [B] resident, without what files and devices are mapped to
    int tasks = 0;           ///< processes and threads
  };

  explicit ProcessTree(pid_t root) : root_(root) {}

  /// What all of them use now. Remembers who they are.
  Usage look();

  /// Names, without folders, of the shared objects that any of them has in its memory now: "libc.so.6".
  std::set<std::string> libraries();

  /// Kills the group and whoever else was seen below the root: a process that left the group, too.
  void kill();

 private:
  Usage look_locked();
  pid_t root_;
  std::mutex mutex_;
  std::map<pid_t, std::uint64_t> seen_;  ///< process → when it started, which tells it from a later one of that number
};

}  // namespace capstone
