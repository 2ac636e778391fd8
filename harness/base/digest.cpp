#include "harness/base/digest.h"

#include <openssl/evp.h>

#include "harness/base/encode.h"
#include "harness/base/files.h"

namespace capstone {

Sha256 sha256(std::string_view bytes) {
  Sha256 digest{};
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

std::string sha256_hex(std::string_view bytes) { return hex(sha256(bytes)); }

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
