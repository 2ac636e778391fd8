#pragma once
// A folder that appears whole or not at all. Private to harness/project.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

/// Built in a hidden temporary folder beside the target (inside it, when it exists already and is empty) and moved
/// into place by commit(). Destroyed without a commit, it leaves nothing behind.
class Staging {
 public:
  /// @error the target is a file, is not empty (the hint names what is in the way), or cannot be made.
  static Result<Staging> begin(const std::filesystem::path& target);
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&&) = delete;
  ~Staging();

  const std::filesystem::path& folder() const { return folder_; }

  /// Moves everything into place. @error something appeared there meanwhile; nothing of ours stays.
  /// @param last  the entry that makes the target what it is; moved after all others.
  Result<void> commit(const std::string& last);

 private:
  Staging() = default;
  Result<void> move_entries(const std::string& last);

  std::filesystem::path target_, folder_;
  bool target_existed_ = false;
  std::vector<std::filesystem::path> made_parents_;  ///< outermost first
};

}  // namespace capstone
