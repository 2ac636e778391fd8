#pragma once
// How untrusted processes are kept apart: bubblewrap where it works, else Landlock and seccomp
// (capstone-confine), else the process limits alone; the verdict says which.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/resources.h"
#include "harness/base/subprocess.h"

namespace capstone {

/// What an untrusted process may reach besides the system's programs and libraries. Absolute paths.
struct Access {
  std::vector<std::filesystem::path> read;   ///< files and folders
  std::vector<std::filesystem::path> write;  ///< folders of its own
  bool gpu = false;                          ///< the GPU's device nodes, /sys, /opt
};

enum class Isolation { kBubblewrap, kLandlock, kNone };

class Sandbox {
 public:
  /// Tries bwrap (on PATH, else the copy next to our own programs), then Landlock, each once with a program
  /// that does nothing. Resources::isolation chooses one of them instead.
  static Sandbox detect(const Resources& resources);
  /// No isolation beyond limits; `why` goes into every verdict.
  static Sandbox none(const Resources& resources, std::string why);

  /// `spec` isolated: no network, no environment but a fixed one and spec.env, the system read-only, of the
  /// rest only what `access` names and the absolute paths in spec.argv that exist. Of our own files
  /// (problems, reference kernels, oracles) only what is named itself, even where a folder above them is the
  /// system's. No other process can be seen (Landlock: reached).
  ProcessSpec confine(ProcessSpec spec, const Access& access) const;

  /// Every process may read this, too.
  void allow_reading(std::filesystem::path path) { readable_.push_back(std::move(path)); }

  Isolation kind() const { return kind_; }
  bool isolated() const { return kind_ != Isolation::kNone; }
  /// "bubblewrap", "Landlock + seccomp (bubblewrap: why not)", "none: why"; with "; memory counted by cgroup"
  /// where it is.
  const std::string& description() const { return description_; }

 private:
  explicit Sandbox(const Resources& resources);
  static Sandbox strongest(const Resources& resources);
  /// Whether a program runs in it; else why not.
  std::string probe() const;
  void use_bubblewrap(ProcessSpec& spec, const Access& access) const;
  std::vector<std::string> landlock_command(const ProcessSpec& spec, const Access& access) const;

  Isolation kind_ = Isolation::kNone;
  std::filesystem::path program_;  ///< bwrap or capstone-confine
  std::filesystem::path confine_;  ///< capstone-confine, which filters the system calls under bwrap, too
  std::filesystem::path bwrap_libraries_;  ///< set for the copy that the tarball brings along
  std::string description_;
  std::string visible_devices_;
  std::vector<std::filesystem::path> readable_;
  /// Our own files: not to be seen because a folder above them may be
  std::vector<std::filesystem::path> hidden_;
};

/// What would give this machine better isolation than `sandbox` has, in one line; empty for bubblewrap.
std::string isolation_advice(const Sandbox& sandbox, const Resources& resources);

}  // namespace capstone
