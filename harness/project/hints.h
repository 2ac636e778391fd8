#pragma once
// The hints of a problem: three texts, from vague to exact. They do not lie in the problem's folder, whose
// digest verdicts are bound to and which `init` copies: the catalogue keeps them in problems/hints/ID.md. A
// problem from elsewhere may have a file hints.md in its folder.
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/resources.h"
#include "harness/model/hint.h"
#include "harness/model/problem.h"

namespace capstone {

/// Reads Markdown with the headings `## Hint 1` to `## Hint 3`, in this order; what stands before the first
/// is not part of a hint. A paragraph and an item of a list become one line each.
/// @param file  for errors
/// @error a heading is missing, another one, or out of order; a hint is empty. The place is file:line.
Result<std::vector<std::string>> parse_hints(std::string_view markdown, const std::string& file);

/// The hints of a project's problem: its own hints.md, else the catalogue's.
/// @return kHintLevels texts
/// @error there are none; as parse_hints().
Result<std::vector<std::string>> hints_of(const Problem& problem, const Resources& resources);

/// Which hint to show. Each one comes after the one before it.
/// @param asked  from 1; 0: the one after the last that was taken
/// @param taken  the highest that was taken; 0: none
/// @param last   the number of hints; after it, 0 means the last again
/// @error there is no such hint; the one before it was not taken.
Result<int> hint_to_show(int asked, int taken, int last);

}  // namespace capstone
