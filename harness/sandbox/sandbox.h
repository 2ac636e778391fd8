#pragma once
// How untrusted processes are kept apart. Bubblewrap where it works; else the process limits alone, and the
// verdict says so.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/resources.h"

namespace capstone {

class Sandbox {
 public:
  /// Looks for bwrap (beside our own programs, then on PATH) and tries it once.
  static Sandbox detect(const Resources& resources);
  /// No isolation beyond limits; `why` goes into every verdict.
  static Sandbox none(const Resources& resources, std::string why);

  /// The command line that runs `argv` isolated: no network, own process and IPC namespaces, private /tmp and
  /// /dev/shm, read-only system, nothing of the user's home but the folder of argv[0] and `readable`.
  std::vector<std::string> wrap(std::vector<std::string> argv, bool gpu) const;
  /// The whole environment of an untrusted process.
  std::vector<std::pair<std::string, std::string>> environment(bool gpu) const;

  void allow_reading(std::filesystem::path path) { readable_.push_back(std::move(path)); }

  /// "bubblewrap", or "none: bwrap not found …"
  const std::string& description() const { return description_; }
  bool isolated() const { return !bwrap_.empty(); }

 private:
  std::filesystem::path bwrap_;
  std::filesystem::path bwrap_libraries_;  ///< set for the copy that the tarball brings along
  std::string description_;
  std::string visible_devices_;
  std::vector<std::filesystem::path> readable_;
};

}  // namespace capstone
