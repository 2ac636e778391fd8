#pragma once
// Bytes in the forms that pages need. Private to this library.
#include <string>
#include <string_view>

namespace capstone {

std::string base64(std::string_view bytes);
/// "0aff" → two bytes.
std::string bytes_of_hex(std::string_view hex);
/// One part of a URL's path: letters, digits and . _ - ~ stay.
std::string percent_encoded(std::string_view text);

}  // namespace capstone
