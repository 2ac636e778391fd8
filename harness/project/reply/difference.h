#pragma once
// Differences between two texts, line by line.
#include <cstddef>
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
/// The shortest one, up to kMaxChangedLines between the first and the last line that differ; beyond that
/// these lines are one replacement. libdtl finds the changes. The hunks are written here, because libdtl
/// writes "-1,1" for "-1" and has no "-0,0" and no mark for a missing last newline, which patch(1) needs.
/// @source  Wu, Manber, Myers and Miller 1990, "An O(NP) Sequence Comparison Algorithm".
std::string unified_diff(std::string_view before, std::string_view after, const DifferenceNames& names = {});
inline constexpr std::size_t kMaxChangedLines = 20000;  ///< of both texts together

/// How much a unified diff changes: "3 lines added, 1 removed".
std::string extent_of(std::string_view difference);

/// A patched text and what had to be said about it.
struct Patched {
  std::string text;
  int hunks = 0;
  std::vector<std::string> notes;  ///< "hunk 2 names line 40, its lines are at 43"
};

/// Applies a unified diff to `base`. Strict: each hunk's old lines must be in `base` exactly, at the line it
/// names or at one other place only. No fuzz, no partial result. Our own code, because language models get
/// the numbers of a hunk wrong: libdtl believes them, and patch(1) would also take lines that do not match.
/// @error no hunk; a hunk whose lines are nowhere, or at several places; more than one file.
Result<Patched> apply_patch(std::string_view base, std::string_view patch);

/// Whether a text reads as a unified diff.
bool looks_like_patch(std::string_view text);

}  // namespace capstone
