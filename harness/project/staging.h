#pragma once
// A folder that appears completely or not at all. Private to harness/project.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

/// Built in a hidden temporary folder next to the target (inside it, if it exists and is empty) and moved
/// into place by commit(). If it is destroyed without a commit, nothing is left behind.
class Staging {
 public:
  /// @error the target is a file, is not empty (the hint lists its content), or cannot be created.
  static Result<Staging> begin(const std::filesystem::path& target);
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&&) = delete;
  ~Staging();

  const std::filesystem::path& folder() const { return folder_; }

  /// Moves everything into place.
  /// @param last  the entry that makes the target a project; moved after all others.
  /// @error something appeared in the target meanwhile; our files are removed.
  Result<void> commit(const std::string& last);

 private:
  Staging() = default;
  Result<void> move_entries(const std::string& last);

  std::filesystem::path target_, folder_;
  bool target_existed_ = false;
  std::vector<std::filesystem::path> made_parents_;  ///< outermost first
};

}  // namespace capstone
