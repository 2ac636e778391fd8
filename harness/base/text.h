#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

/// Whether the bytes are well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view bytes);
/// The text with every malformed byte replaced by U+FFFD.
std::string to_utf8(std::string_view bytes);
/// UTF-8 that does nothing to a terminal: control characters other than newline and tab become U+FFFD.
std::string printable(std::string_view bytes);

/// The present moment in UTC, ISO 8601 with seconds: 2026-03-01T09:30:00Z.
std::string utc_now();

/// A time with a fitting unit and three significant digits: "41.2 µs", "1.23 ms", "4.5 s".
std::string format_time_ms(double milliseconds);
/// "2.08x", "0.51x"; three significant digits.
std::string format_speedup(double ratio);
/// "3.35 TB/s", "412 GB/s".
std::string format_bandwidth(double bytes_per_second);
/// "51.6 TFLOP/s".
std::string format_flops(double flops_per_second);
/// "1.50 GiB"
std::string format_bytes(double bytes);

}  // namespace capstone
