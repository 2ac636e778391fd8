#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace capstone {

using Sha256 = std::array<unsigned char, 32>;
Sha256 sha256(std::string_view bytes);

/// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

/// SHA-256 of a file's bytes. @error not readable.
Result<std::string> sha256_file(const std::filesystem::path& path);

/// One digest over several named parts, so that ("ab","c") and ("a","bc") differ.
class DigestBuilder {
 public:
  DigestBuilder& add(std::string_view name, std::string_view bytes);
  std::string hex() const { return sha256_hex(text_); }

 private:
  std::string text_;
};

}  // namespace capstone
