#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstone {

/// Optimal-string-alignment distance (insert, delete, replace, swap of neighbours), case-insensitive.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate most similar to a mistyped word, if one is similar enough.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace capstone
