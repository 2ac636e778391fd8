#pragma once
// Encodes bytes as text.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace capstone {

/// Two lower-case hexadecimal digits per byte.
std::string hex(std::span<const unsigned char> bytes);
/// Base64 with padding and without line breaks (RFC 4648, section 4).
std::string base64(std::span<const unsigned char> bytes);
std::string base64(std::string_view bytes);

}  // namespace capstone
