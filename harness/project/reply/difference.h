#pragma once
// Differences between two texts, line by line.
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

struct DifferenceNames {
  std::string before = "before";
  std::string after = "after";
};

/// The unified diff that turns `before` into `after`, three lines of context; empty when they are equal.
///
/// Shortest by Myers' algorithm up to kMaxEdits changed lines; beyond that, and above 4 MiB, the changed middle is
/// shown as one replacement: true, though not the shortest.
/// @source  Myers 1986, "An O(ND) Difference Algorithm and Its Variations".
std::string unified_diff(std::string_view before, std::string_view after, const DifferenceNames& names = {});
inline constexpr int kMaxEdits = 2000;

/// A patched text and what had to be said about it.
struct Patched {
  std::string text;
  int hunks = 0;
  std::vector<std::string> notes;   ///< "hunk 2 names line 40, its lines are at 43"
};

/// Applies a unified diff to `base`. Strict: each hunk's old lines must be in `base` exactly, at the line it names or,
/// language models being bad at counting, at one other place only. No fuzz, no partial result.
/// @error no hunk; a hunk whose lines are nowhere, or at several places; more than one file.
Result<Patched> apply_patch(std::string_view base, std::string_view patch);

/// Whether a text reads as a unified diff.
bool looks_like_patch(std::string_view text);

}  // namespace capstone
