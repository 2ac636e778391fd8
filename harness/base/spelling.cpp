#include "harness/base/spelling.h"

#include <algorithm>
#include <cctype>

namespace capstone {

int edit_distance(std::string_view a, std::string_view b) {
  auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      int replace = d[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  int least = 1 << 20;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(word, candidate);
    // A prefix counts as similar: `layernorm` probably means `layernorm_fwd` if only that exists.
    bool prefix = word.size() >= 3 && candidate.size() > word.size() &&
                  edit_distance(word, std::string_view(candidate).substr(0, word.size())) == 0;
    bool inside = word.size() >= 4 && candidate.find(word) != std::string::npos;
    if (prefix || inside) distance = std::min(distance, 1);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  // Up to a third of the word may be wrong, or two letters of a short word, but never all of it.
  int length = static_cast<int>(word.size());
  int allowed = std::min(std::max(2, length / 3), length - 1);
  return least <= allowed ? best : std::nullopt;
}

}  // namespace capstone
