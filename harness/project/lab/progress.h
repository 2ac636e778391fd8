#pragma once
// lab.json, which makes a folder a lab's folder and keeps what the student did in it. It is a plain file:
// labs are for practice and count for nothing.
#include <filesystem>
#include <optional>
#include <string>

#include "harness/base/error.h"

namespace capstone {

struct LabProgress {
  std::string lab;              ///< "L4-2"
  std::string started;          ///< UTC
  std::string exercise_sha256;  ///< of kernel.cu as it was made
  int hints = 0;                ///< the highest that was shown
  struct Pass {
    std::string time, source_sha256;
    bool operator==(const Pass&) const = default;
  };
  std::optional<Pass> passed;  ///< the first time
  std::string given_up;        ///< UTC; empty: not
  bool operator==(const LabProgress&) const = default;

  /// Passed, but only after the solution was shown.
  bool helped() const { return passed && !given_up.empty() && given_up <= passed->time; }
  /// "passed", "passed after giving up", "gave up", "begun"
  std::string state() const;
};

std::filesystem::path progress_file(const std::filesystem::path& folder);
/// @error no lab's folder; not what write_progress() writes.
Result<LabProgress> read_progress(const std::filesystem::path& folder);
Result<void> write_progress(const std::filesystem::path& folder, const LabProgress& progress);

/// The lab's folder that a folder is or lies in; nothing: it lies in none.
std::optional<std::filesystem::path> lab_folder(std::filesystem::path folder);

}  // namespace capstone
