#include "harness/project/reply/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>

namespace capstone {
namespace {

constexpr int kContext = 3;
constexpr std::size_t kMaxBytes = std::size_t{4} << 20;

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

// Line numbers instead of lines: the comparison in the inner loop is one of integers.
struct Interned {
  std::vector<int> a, b;
};
Interned intern(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::unordered_map<std::string_view, int> ids;
  auto number = [&](const std::vector<std::string_view>& lines) {
    std::vector<int> out;
    for (std::string_view line : lines) out.push_back(ids.emplace(line, static_cast<int>(ids.size())).first->second);
    return out;
  };
  Interned in;
  in.a = number(a);
  in.b = number(b);
  return in;
}

constexpr int kNone = -(1 << 29);   // a diagonal that cannot be reached

// Myers' greedy search forwards. furthest[k] is the largest x reached on diagonal k = x - y; a copy of it after each
// number of edits is what the way back is read from.
class Myers {
 public:
  Myers(std::span<const int> a, std::span<const int> b)
      : a_(a), b_(b), n_(static_cast<int>(a.size())), m_(static_cast<int>(b.size())) {}

  /// One Change an edited line, in order; nothing when there are more than kMaxEdits.
  std::optional<std::vector<Change>> run() {
    for (int d = 0; d <= kMaxEdits; ++d) {
      std::vector<int> next(static_cast<std::size_t>(2 * d + 1), kNone);
      for (int k = -d; k <= d; k += 2) {
        int x = d == 0 ? 0 : step(d, k).x;
        if (x == kNone) continue;
        while (x < n_ && x - k < m_ && a_[idx(x)] == b_[idx(x - k)]) ++x;
        next[idx(k + d)] = x;
        if (x == n_ && x - k == m_) return walk_back(d);
      }
      trace_.push_back(std::move(next));
    }
    return std::nullopt;
  }

 private:
  static std::size_t idx(int i) { return static_cast<std::size_t>(i); }
  struct Step {
    int x;
    bool inserted;
  };

  int reached(int d, int k) const { return k < -d || k > d ? kNone : trace_[idx(d)][idx(k + d)]; }

  // The better of deleting a line of `a` and inserting one of `b`, to arrive on diagonal k with d edits.
  Step step(int d, int k) const {
    int right = reached(d - 1, k - 1), down = reached(d - 1, k + 1);
    right = right == kNone || right == n_ ? kNone : right + 1;
    if (down != kNone && down - k > m_) down = kNone;
    return down >= right ? Step{down, true} : Step{right, false};
  }

  std::vector<Change> walk_back(int edits) const {
    std::vector<Change> changes;
    int k = n_ - m_;
    for (int d = edits; d > 0; --d) {
      Step last = step(d, k);
      k += last.inserted ? 1 : -1;
      int x = reached(d - 1, k);
      changes.push_back(last.inserted ? Change{x, 0, x - k, 1} : Change{x, 1, x - k, 0});
    }
    std::reverse(changes.begin(), changes.end());
    return changes;
  }

  std::span<const int> a_, b_;
  int n_, m_;
  std::vector<std::vector<int>> trace_;
};

// Neighbouring edits as one change.
std::vector<Change> merged(const std::vector<Change>& edits) {
  std::vector<Change> out;
  for (const Change& edit : edits) {
    if (!out.empty() && out.back().a + out.back().removed == edit.a && out.back().b + out.back().added == edit.b) {
      out.back().removed += edit.removed;
      out.back().added += edit.added;
    } else {
      out.push_back(edit);
    }
  }
  return out;
}

std::vector<Change> changes_between(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::size_t head = 0, shorter = std::min(a.size(), b.size());
  while (head < shorter && a[head] == b[head]) ++head;
  std::size_t tail = 0;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  Interned in = intern(a, b);
  std::span<const int> middle_a = std::span<const int>(in.a).subspan(head, a.size() - head - tail);
  std::span<const int> middle_b = std::span<const int>(in.b).subspan(head, b.size() - head - tail);
  auto edits = Myers(middle_a, middle_b).run();
  if (!edits)
    edits = std::vector<Change>{{0, static_cast<int>(middle_a.size()), 0, static_cast<int>(middle_b.size())}};
  for (Change& edit : *edits) {
    edit.a += static_cast<int>(head);
    edit.b += static_cast<int>(head);
  }
  return merged(*edits);
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
  std::vector<Change> changes = before.size() + after.size() > kMaxBytes
                                    ? std::vector<Change>{{0, static_cast<int>(a.size()), 0, static_cast<int>(b.size())}}
                                    : changes_between(a, b);
  std::string out = fmt::format("--- {}\n+++ {}\n", names.before, names.after);
  for (std::size_t first = 0; first < changes.size();) {
    std::size_t last = first + 1;
    while (last < changes.size() && changes[last].a - (changes[last - 1].a + changes[last - 1].removed) <= 2 * kContext)
      ++last;
    put_hunk(a, b, std::span<const Change>(changes).subspan(first, last - first), out);
    first = last;
  }
  return out;
}

}  // namespace capstone
