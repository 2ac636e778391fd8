#include "harness/base/digest.h"

#include <openssl/evp.h>

#include <array>

#include "harness/base/files.h"

namespace capstone {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> raw{};
  unsigned length = 0;
  EVP_Digest(bytes.data(), bytes.size(), raw.data(), &length, EVP_sha256(), nullptr);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(64);
  for (unsigned char byte : raw) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

Result<std::string> sha256_file(const std::filesystem::path& path) {
  CAPSTONE_TRY(auto text, read_file(path));
  return sha256_hex(text);
}

DigestBuilder& DigestBuilder::add(std::string_view name, std::string_view bytes) {
  text_ += std::to_string(name.size()) + ':' + std::string(name) + std::to_string(bytes.size()) + ':';
  text_ += sha256_hex(bytes);
  return *this;
}

}  // namespace capstone
