#include "harness/base/encode.h"

#include <fmt/format.h>
#include <openssl/evp.h>

namespace capstone {

std::string hex(std::span<const unsigned char> bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

std::string base64(std::span<const unsigned char> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends it with a NUL
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string base64(std::string_view bytes) {
  return base64(std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

}  // namespace capstone
