// Applies a unified diff as language models write it: right lines, wrong numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "harness/base/text.h"
#include "harness/project/reply/difference.h"

namespace capstone {
namespace {

struct Hunk {
  int named = 0;                         // line of the old text, from 1
  std::vector<std::string_view> before;  // context and removed lines
  std::vector<std::string_view> after;   // context and added lines
};

bool is_hunk_header(std::string_view line) { return line.starts_with("@@"); }

int old_line(std::string_view header) {
  std::size_t minus = header.find('-');
  int value = 0;
  if (minus != std::string_view::npos)
    std::from_chars(header.data() + minus + 1, header.data() + header.size(), value);
  return value;
}

void add_line(std::string_view line, Hunk& hunk) {
  char mark = line.empty() ? ' ' : line.front();
  std::string_view text = line.empty() ? line : line.substr(1);
  if (mark == ' ' || mark == '-') hunk.before.push_back(text);
  if (mark == ' ' || mark == '+') hunk.after.push_back(text);
}

bool is_line_of_hunk(std::string_view line) {
  return line.empty() || line.front() == ' ' || line.front() == '-' || line.front() == '+';
}

// Blank lines at the end of a hunk belong to the Markdown around it unless the base has them; see fit().
Result<std::vector<Hunk>> parse(const std::vector<std::string>& lines) {
  std::vector<Hunk> hunks;
  int files = 0;
  bool inside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    bool header = line.starts_with("--- ") && i + 1 < lines.size() && lines[i + 1].starts_with("+++ ");
    if (header) {
      ++files;
      ++i;
      inside = false;
    } else if (is_hunk_header(line)) {
      hunks.push_back({old_line(line), {}, {}});
      inside = true;
    } else if (inside && is_line_of_hunk(line)) {
      add_line(line, hunks.back());
    } else if (!line.starts_with("\\")) {
      inside = false;  // "diff --git", "index", prose
    }
  }
  if (hunks.empty()) return fail("the patch has no hunk (@@ … @@)");
  if (files > 1) return fail(fmt::format("the patch changes {} files, not one", files));
  return hunks;
}

bool matches(const std::vector<std::string>& base, std::size_t at,
             const std::vector<std::string_view>& lines) {
  if (at + lines.size() > base.size()) return false;
  return std::equal(lines.begin(), lines.end(), base.begin() + static_cast<std::ptrdiff_t>(at));
}

void drop_last_blank(Hunk& hunk) {
  hunk.before.pop_back();
  hunk.after.pop_back();
}

constexpr std::size_t kMaxComparisons = std::size_t{1} << 26;  // of lines, to place one hunk

// Where a hunk's old lines are: at the line it names, else at the one place after `from` that has them.
Result<std::size_t> find_place(const std::vector<std::string>& base, const Hunk& hunk, std::size_t from,
                               int number) {
  std::size_t named = static_cast<std::size_t>(std::max(hunk.named - 1, 0));
  if (hunk.before.empty()) {
    std::size_t after = static_cast<std::size_t>(std::max(hunk.named, 0));
    if (after >= from && after <= base.size()) return after;
    return fail(fmt::format("hunk {} adds lines at line {}, which is not there", number, hunk.named));
  }
  if (named >= from && matches(base, named, hunk.before)) return named;
  if (hunk.before.size() * base.size() > kMaxComparisons)
    return fail(
        fmt::format("hunk {} is not at the line it names and is too large to be searched for", number));
  std::optional<std::size_t> found;
  for (std::size_t at = from; at + hunk.before.size() <= base.size(); ++at) {
    if (!matches(base, at, hunk.before)) continue;
    if (found)
      return fail(fmt::format("the old lines of hunk {} are at several places", number),
                  fmt::format("lines {} and {}", *found + 1, at + 1));
    found = at;
  }
  if (found) return *found;
  return fail(fmt::format("the old lines of hunk {} are not in the code it changes", number),
              fmt::format("\"{}\"", trim(hunk.before.front())));
}

// As find_place(); a blank last line that the base does not have is taken for the end of the Markdown block.
Result<std::size_t> fit(const std::vector<std::string>& base, Hunk& hunk, std::size_t from, int number) {
  Result<std::size_t> place = find_place(base, hunk, from, number);
  while (!place && !hunk.before.empty() && !hunk.after.empty() && hunk.before.back().empty() &&
         hunk.after.back().empty()) {
    drop_last_blank(hunk);
    place = find_place(base, hunk, from, number);
  }
  return place;
}

}  // namespace

bool looks_like_patch(std::string_view text) {
  bool hunk = text.starts_with("@@ -") || text.find("\n@@ -") != std::string_view::npos;
  return hunk && (text.find("\n+") != std::string_view::npos || text.find("\n-") != std::string_view::npos);
}

Result<Patched> apply_patch(std::string_view base, std::string_view patch) {
  std::vector<std::string> old = split(base, '\n');
  std::vector<std::string> lines = split(patch, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  CAPSTONE_TRY(auto hunks, parse(lines));
  Patched out;
  std::size_t from = 0;
  for (Hunk& hunk : hunks) {
    ++out.hunks;
    CAPSTONE_TRY(std::size_t place, fit(old, hunk, from, out.hunks));
    if (!hunk.before.empty() && static_cast<int>(place) + 1 != hunk.named)
      out.notes.push_back(
          fmt::format("hunk {} names line {}; its lines are at {}", out.hunks, hunk.named, place + 1));
    for (; from < place; ++from) out.text += old[from] + '\n';
    for (std::string_view line : hunk.after) out.text.append(line) += '\n';
    from = place + hunk.before.size();
  }
  for (; from < old.size(); ++from) out.text += old[from] + (from + 1 < old.size() ? "\n" : "");
  return out;
}

}  // namespace capstone
