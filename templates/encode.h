#pragma once
// Encodings that pages need. Private to this library.
#include <string>
#include <string_view>

namespace capstone {

std::string base64(std::string_view bytes);
/// The bytes of a hexadecimal text: "0aff" gives two bytes.
std::string bytes_of_hex(std::string_view hex);
/// Encodes one part of a URL's path. Letters, digits and . _ - ~ are kept.
std::string percent_encoded(std::string_view text);

}  // namespace capstone
