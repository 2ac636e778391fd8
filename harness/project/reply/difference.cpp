#include "harness/project/reply/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <dtl/dtl.hpp>
#include <iterator>
#include <span>

#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr int kContext = 3;

// Lines with their newline, so that a missing last one is a difference.
std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    std::size_t next = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(at, next - at));
    at = next;
  }
  return lines;
}

// before[a, a + removed) becomes after[b, b + added).
struct Change {
  int a = 0, removed = 0, b = 0, added = 0;
};

// The changes between the first and the last line that differ, neighbouring ones as one.
std::vector<Change> changes_between(const std::vector<std::string_view>& a,
                                    const std::vector<std::string_view>& b) {
  const auto [first_a, first_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto [last_a, last_b] =
      std::mismatch(a.rbegin(), std::reverse_iterator(first_a), b.rbegin(), std::reverse_iterator(first_b));
  const std::vector<std::string_view> middle_a(first_a, last_a.base()), middle_b(first_b, last_b.base());
  const int head = static_cast<int>(first_a - a.begin());
  if (middle_a.size() + middle_b.size() > kMaxChangedLines)
    return {{head, static_cast<int>(middle_a.size()), head, static_cast<int>(middle_b.size())}};
  dtl::Diff<std::string_view> diff(middle_a, middle_b, true);
  diff.compose();
  std::vector<Change> changes;
  Change open{head, 0, head, 0};
  auto close = [&] {
    if (open.removed || open.added) changes.push_back(open);
    open = {open.a + open.removed, 0, open.b + open.added, 0};
  };
  for (const auto& [line, where] : diff.getSes().getSequence()) {
    if (where.type == dtl::SES_DELETE) ++open.removed;
    if (where.type == dtl::SES_ADD) ++open.added;
    if (where.type != dtl::SES_COMMON) continue;
    close();
    ++open.a, ++open.b;
  }
  close();
  return changes;
}

// "12,3"; an empty range names the line before it.
std::string range(int start, int count) {
  if (count == 1) return std::to_string(start + 1);
  return fmt::format("{},{}", count == 0 ? start : start + 1, count);
}

void put_line(char mark, std::string_view line, std::string& out) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

// One hunk: the changes [first, last) with context around and between them.
void put_hunk(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b,
              std::span<const Change> changes, std::string& out) {
  const Change& first = changes.front();
  const Change& last = changes.back();
  int lead = std::min(first.a, kContext);
  int trail = std::min(static_cast<int>(a.size()) - last.a - last.removed, kContext);
  int start_a = first.a - lead, end_a = last.a + last.removed + trail;
  int start_b = first.b - lead, end_b = last.b + last.added + trail;
  out += fmt::format("@@ -{} +{} @@\n", range(start_a, end_a - start_a), range(start_b, end_b - start_b));
  int at = start_a;
  auto context_to = [&](int end) {
    for (; at < end; ++at) put_line(' ', a[static_cast<std::size_t>(at)], out);
  };
  for (const Change& change : changes) {
    context_to(change.a);
    for (; at < change.a + change.removed; ++at) put_line('-', a[static_cast<std::size_t>(at)], out);
    for (int i = 0; i < change.added; ++i) put_line('+', b[static_cast<std::size_t>(change.b + i)], out);
  }
  context_to(end_a);
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, const DifferenceNames& names) {
  if (before == after) return {};
  std::vector<std::string_view> a = split_lines(before), b = split_lines(after);
  const std::vector<Change> changes = changes_between(a, b);
  std::string out = fmt::format("--- {}\n+++ {}\n", names.before, names.after);
  for (std::size_t first = 0; first < changes.size();) {
    std::size_t last = first + 1;
    while (last < changes.size() &&
           changes[last].a - (changes[last - 1].a + changes[last - 1].removed) <= 2 * kContext)
      ++last;
    put_hunk(a, b, std::span<const Change>(changes).subspan(first, last - first), out);
    first = last;
  }
  return out;
}

std::string extent_of(std::string_view difference) {
  int added = 0, removed = 0;
  for (const std::string& line : split(std::string(difference), '\n')) {
    if (line.starts_with("+++ ") || line.starts_with("--- ")) continue;
    added += line.starts_with('+');
    removed += line.starts_with('-');
  }
  return fmt::format("{} {} added, {} removed", added, added == 1 ? "line" : "lines", removed);
}

}  // namespace capstone
