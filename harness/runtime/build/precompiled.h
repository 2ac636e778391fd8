#pragma once
// Preprocessed text whose headers are compiled once for many sources.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

/// The headers that a text includes by `#include <…>` at the beginning of a line, in its order.
std::vector<std::string> included_first(std::string_view text);

struct HeadersAndRest {
  std::string begin;    ///< the first line, which names the source
  std::string headers;  ///< all that comes before the source
  std::string rest;     ///< begins with the line marker that enters the source
};
/// Splits what capstone-rewrite wrote where `source` begins. Nothing, if that place is not found or a file of
/// the source's folder lies before it: the headers would not be those of other sources.
std::optional<HeadersAndRest> split_headers(std::string_view text, std::string_view source);

/// Text for `g++ -x c++-cpp-output` that reads the headers from what `g++ -x c++-header -fpreprocessed` made
/// of them.
std::string with_precompiled(const HeadersAndRest& parts, const std::filesystem::path& precompiled);

}  // namespace capstone
