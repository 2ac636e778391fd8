#pragma once
// The key with which this installation signs what it has judged. A process that cannot read the file cannot
// sign; the owner of the machine can: docs/design/signatures.md.
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace capstone {

class JudgeKey {
 public:
  /// The key of `state_folder`/judge-key, made on first use. Only its owner may read the file.
  /// @error the folder cannot be written; no randomness; the file holds no key.
  static Result<JudgeKey> of(const std::filesystem::path& state_folder);

  /// 64 hexadecimal digits. The first kShortKey of them name the key to people.
  const std::string& public_key() const { return public_key_; }
  /// @return 128 hexadecimal digits
  Result<std::string> sign(std::string_view text) const;

 private:
  std::array<unsigned char, 32> secret_{};
  std::string public_key_;
};

inline constexpr std::size_t kShortKey = 16;

/// Whether the text is a public key as JudgeKey::public_key() writes it.
bool is_public_key(std::string_view text);

/// Whether `signature` is that of the owner of `public_key` under `text`.
bool is_signed_by(std::string_view public_key, std::string_view signature, std::string_view text);

}  // namespace capstone
