#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "harness/base/ascii.h"
#include "harness/base/text.h"
#include "harness/machine/search.h"

namespace capstone::machine {
namespace {

constexpr std::size_t kMostIdeaBytes = 2000;

// The text behind "3. ", "3) ", "- " or "* " at the begin of a line; headings and bold marks around the
// number are skipped. Empty: the line begins no item.
std::string_view item_in(std::string_view line, bool numbered) {
  std::size_t at = line.find_first_not_of(" #*_");
  if (at == std::string_view::npos) return {};
  if (!numbered) {
    at = line.find_first_not_of(' ');
    const bool bullet = line.size() > at + 2 && (line[at] == '-' || line[at] == '*') && line[at + 1] == ' ';
    return bullet ? trim(line.substr(at + 2)) : std::string_view();
  }
  const std::size_t begin = at;
  while (at < line.size() && std::isdigit(static_cast<unsigned char>(line[at]))) ++at;
  if (at == begin || at - begin > 3 || at >= line.size() || (line[at] != '.' && line[at] != ')')) return {};
  ++at;
  while (at < line.size() && (line[at] == '*' || line[at] == '_')) ++at;
  if (at < line.size() && line[at] != ' ') return {};
  return trim(line.substr(at));
}

std::vector<std::string> items_in(const std::string& reply, bool numbered) {
  std::vector<std::string> items;
  for (const std::string& line : split(reply, '\n')) {
    if (const std::string_view item = item_in(line, numbered); !item.empty())
      items.emplace_back(item);
    else if (!items.empty() && !trim(line).empty() && items.back().size() < kMostIdeaBytes)
      items.back() += " " + std::string(trim(line));
  }
  for (std::string& item : items)
    if (item.size() > kMostIdeaBytes) item = to_utf8(item.substr(0, kMostIdeaBytes)) + "…";
  return items;
}

std::set<std::string> words_of(const std::string& text) {
  constexpr std::size_t kShort = 3;
  std::set<std::string> words;
  std::string word;
  for (const char c : ascii_lower(text) + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      word += c;
      continue;
    }
    if (word.size() > kShort) words.insert(word);
    word.clear();
  }
  return words;
}

double likeness(const std::set<std::string>& first, const std::set<std::string>& second) {
  if (first.empty() || second.empty()) return 0;
  std::size_t both = 0;
  for (const std::string& word : first) both += second.count(word);
  return static_cast<double>(both) / static_cast<double>(first.size() + second.size() - both);
}

}  // namespace

std::vector<std::string> ideas_in(const std::string& reply, int most) {
  std::vector<std::string> items = items_in(reply, true);
  if (items.empty()) items = items_in(reply, false);
  if (items.size() > static_cast<std::size_t>(most)) items.resize(static_cast<std::size_t>(most));
  return items;
}

double likeness(const std::string& a, const std::string& b) {
  if (a == b) return 1;
  return likeness(words_of(a), words_of(b));
}

std::map<std::string, std::vector<IdeaFate>> fates_of(const Tree& tree) {
  struct Taken {
    std::string place;
    std::set<std::string> words;
  };
  std::vector<Taken> taken;
  std::map<std::string, std::vector<IdeaFate>> fates;
  for (const Node& node : tree) {
    if (node.kind != NodeKind::kIdeas) continue;
    std::vector<IdeaFate>& here = fates[node.name];
    for (const std::string& text : node.ideas) {
      IdeaFate fate{static_cast<int>(here.size()) + 1, text, {}};
      std::set<std::string> words = words_of(text);
      const auto same = std::find_if(taken.begin(), taken.end(), [&](const Taken& earlier) {
        return likeness(words, earlier.words) >= kSameIdea;
      });
      if (same != taken.end())
        fate.same_as = same->place;
      else
        taken.push_back({fmt::format("{}, idea {}", node.name, fate.number), std::move(words)});
      here.push_back(std::move(fate));
    }
  }
  return fates;
}

}  // namespace capstone::machine
