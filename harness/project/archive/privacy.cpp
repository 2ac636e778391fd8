#include "harness/project/archive/privacy.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "harness/base/text.h"

namespace capstone {
namespace {

// Account and machine names that are ordinary words. Masking them would damage the text and protect no one.
constexpr std::array<std::string_view, 27> kOrdinary = {
    "user",      "root",  "admin", "student", "test",   "guest",  "ubuntu", "debian",  "fedora",
    "localhost", "local", "gpu",   "cuda",    "nvidia", "server", "laptop", "desktop", "node",
    "login",     "host",  "home",  "work",    "dev",    "linux",  "docker", "kernel",  "main"};

bool ordinary(std::string_view name) {
  return name.size() < 3 || std::find(kOrdinary.begin(), kOrdinary.end(), name) != kOrdinary.end();
}

bool word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (static_cast<unsigned char>(c) & 0x80u);
}

// Whether `word` occurs in `text` between word boundaries.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    std::size_t end = at + word.size();
    if ((at == 0 || !word_char(text[at - 1])) && (end == text.size() || !word_char(text[end]))) return true;
  }
  return false;
}

}  // namespace

IdentityMask::IdentityMask(const Identity& identity, const std::vector<std::string>& public_words) {
  auto add = [&](std::string text, std::string mask, std::string what) {
    if (!text.empty()) words_.push_back({std::move(text), std::move(mask), std::move(what)});
  };
  std::string home = identity.home;
  while (home.size() > 1 && home.back() == '/') home.pop_back();
  if (home.size() > 1 && home.front() == '/') add(home, "~", "the home folder");
  bool is_public = std::any_of(public_words.begin(), public_words.end(), [&](const std::string& text) {
    return !identity.user.empty() && has_word(text, identity.user);
  });
  if (!ordinary(identity.user) && !is_public) add(identity.user, "[user]", "the user name");
  std::string shortened = identity.host.substr(0, identity.host.find('.'));
  if (!ordinary(identity.host)) add(identity.host, "[host]", "the host name");
  if (shortened != identity.host && !ordinary(shortened)) add(shortened, "[host]", "the host name");
  std::stable_sort(words_.begin(), words_.end(),
                   [](const Word& a, const Word& b) { return a.text.size() > b.text.size(); });
  for (const Word& word : words_) starts_ += word.text.front();
}

// A name counts between word boundaries. A home folder begins with a slash, so it needs only the boundary at
// its end.
const IdentityMask::Word* IdentityMask::match(std::string_view text, std::size_t at) const {
  for (const Word& word : words_) {
    if (!text.substr(at).starts_with(word.text)) continue;
    std::size_t end = at + word.text.size();
    bool starts = at == 0 || word.text.front() == '/' || !word_char(text[at - 1]);
    bool ends = end == text.size() || !word_char(text[end]);
    if (starts && ends) return &word;
  }
  return nullptr;
}

std::string IdentityMask::apply(std::string_view text, int& count) const {
  if (words_.empty()) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = std::min(text.find_first_of(starts_, at), text.size());
    out += text.substr(at, next - at);
    at = next;
    if (at == text.size()) break;
    const Word* word = match(text, at);
    out += word ? std::string_view(word->mask) : text.substr(at, 1);
    at += word ? word->text.size() : 1;
    count += word != nullptr;
  }
  return out;
}

std::vector<IdentityMask::Hit> IdentityMask::find(std::string_view text) const {
  std::vector<Hit> hits;
  int line = 1;
  for (std::size_t at = 0; at < text.size() && !words_.empty();) {
    const Word* word = starts_.find(text[at]) == std::string::npos ? nullptr : match(text, at);
    if (word && (hits.empty() || hits.back().line != line)) hits.push_back({line, word->what});
    line += text[at] == '\n';
    at += word ? word->text.size() : 1;
  }
  return hits;
}

}  // namespace capstone
