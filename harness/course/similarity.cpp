#include "harness/course/similarity.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "harness/base/ascii.h"
#include "harness/base/text.h"
#include "harness/emulator/rewriter/cxx_tokens.h"

namespace capstone {
namespace {

constexpr int kWindow = kGuaranteed - kTokens + 1;
constexpr std::size_t kFewForCommon = 12;

struct Token {
  std::uint64_t value;
  int line;
};

std::uint64_t hash_of(std::string_view text) {  // FNV-1a
  std::uint64_t h = 14695981039346656037u;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

// Words that carry structure and are kept. Every other name becomes the same token.
bool is_kept(std::string_view word) {
  static const std::unordered_set<std::string_view> words{"if",
                                                          "else",
                                                          "for",
                                                          "while",
                                                          "do",
                                                          "return",
                                                          "break",
                                                          "continue",
                                                          "switch",
                                                          "case",
                                                          "const",
                                                          "constexpr",
                                                          "static",
                                                          "struct",
                                                          "template",
                                                          "typename",
                                                          "inline",
                                                          "auto",
                                                          "void",
                                                          "int",
                                                          "float",
                                                          "double",
                                                          "half",
                                                          "bool",
                                                          "char",
                                                          "unsigned",
                                                          "long",
                                                          "sizeof",
                                                          "asm",
                                                          "volatile",
                                                          "extern",
                                                          "float2",
                                                          "float4",
                                                          "int4",
                                                          "half2",
                                                          "int64_t",
                                                          "size_t",
                                                          "__global__",
                                                          "__device__",
                                                          "__shared__",
                                                          "__restrict__",
                                                          "__launch_bounds__",
                                                          "__syncthreads",
                                                          "__syncwarp",
                                                          "__ldg",
                                                          "__shfl_sync",
                                                          "__shfl_xor_sync",
                                                          "__shfl_down_sync",
                                                          "__ballot_sync",
                                                          "atomicAdd",
                                                          "threadIdx",
                                                          "blockIdx",
                                                          "blockDim",
                                                          "gridDim",
                                                          "warpSize",
                                                          "dim3",
                                                          "fmaf",
                                                          "fmaxf",
                                                          "expf",
                                                          "__expf",
                                                          "rsqrtf",
                                                          "sqrtf",
                                                          "tanhf",
                                                          "erff",
                                                          "wmma",
                                                          "min",
                                                          "max"};
  return words.contains(word);
}

// Adds the tokens of `text`, which begins at line `first`.
void add_tokens(std::string_view text, int first, std::vector<Token>& tokens) {
  for (const CxxToken& token : cxx_tokens(text)) {
    const int line = first + token.line - 1;
    const auto add = [&](std::string_view stands_for) { tokens.push_back({hash_of(stands_for), line}); };
    switch (token.kind) {
      case CxxTokenKind::kComment:
        break;
      case CxxTokenKind::kDirective:  // scaffold; but the further lines of a macro may hold a whole kernel
        if (const std::size_t end = token.text.find('\n'); end != std::string_view::npos)
          add_tokens(token.text.substr(end + 1), line + 1, tokens);
        break;
      case CxxTokenKind::kString:
        add("\"");
        break;
      case CxxTokenKind::kCharacter:
        add("'");
        break;
      case CxxTokenKind::kNumber:
        add("0");
        break;
      case CxxTokenKind::kIdentifier:
        add(is_kept(token.text) ? token.text : "name");
        break;
      case CxxTokenKind::kPunctuator:
        for (std::size_t i = 0; i < token.text.size(); ++i) add(token.text.substr(i, 1));
        break;
    }
  }
}

bool says_nothing(const std::unordered_map<std::uint64_t, std::size_t>& owners, std::size_t sources,
                  std::uint64_t hash) {
  auto found = owners.find(hash);
  return sources > kFewForCommon && found != owners.end() && found->second * 4 > sources;
}

}  // namespace

namespace {

// @param length  tokens in a hash
// @param window  of each so many hashes in a row, one is kept
Fingerprints winnowed(const std::vector<Token>& tokens, std::size_t length, std::size_t window) {
  Fingerprints grams;
  for (std::size_t i = 0; i + length <= tokens.size(); ++i) {
    std::uint64_t h = 14695981039346656037u;
    for (std::size_t k = 0; k < length; ++k) h = (h ^ tokens[i + k].value) * 1099511628211u;
    h ^= h >> 29;  // mixes all tokens, so that the last token alone does not order the hashes of a window
    grams.push_back({h * 0x9E3779B97F4A7C15u, tokens[i].line, tokens[i + length - 1].line});
  }
  Fingerprints chosen;
  std::size_t last = grams.size();
  for (std::size_t begin = 0; begin < grams.size() && (begin == 0 || begin + window <= grams.size());
       ++begin) {
    const std::size_t end = std::min(grams.size(), begin + window);
    std::size_t least = begin;
    for (std::size_t i = begin; i < end; ++i)
      if (grams[i].hash <= grams[least].hash) least = i;  // of equal hashes the rightmost, as in the paper
    if (least != last) chosen.push_back(grams[last = least]);
  }
  return chosen;
}

// The student's own lines: no questions and other quotations, no headings, no comments.
std::string own_prose(std::string_view worklog) {
  std::string text;
  bool comment = false;
  for (const std::string& line : split(worklog, '\n')) {
    const std::string_view words = trim(line);
    comment |= words.starts_with("<!--");
    if (!comment && !words.starts_with('>') && !words.starts_with('#')) text += line;
    text += '\n';
    if (words.ends_with("-->")) comment = false;
  }
  return text;
}

}  // namespace

Fingerprints fingerprints(std::string_view source) {
  std::vector<Token> tokens;
  add_tokens(source, 1, tokens);
  return winnowed(tokens, kTokens, kWindow);
}

Fingerprints prose_fingerprints(std::string_view worklog) {
  const std::string text = ascii_lower(own_prose(worklog));
  std::vector<Token> tokens;
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const auto is_word = [&](std::size_t i) {
      return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 ||
                                 static_cast<unsigned char>(text[i]) >= 0x80);
    };
    std::size_t end = at;
    while (is_word(end)) ++end;
    if (end == at) {
      line += text[at++] == '\n';
      continue;
    }
    const std::string_view word = std::string_view(text).substr(at, end - at);
    const bool number = word.find_first_not_of("0123456789") == std::string_view::npos;
    tokens.push_back({hash_of(number ? "0" : word), line});
    at = end;
  }
  return winnowed(tokens, kWords, kWords);
}

Likeness compare_sources(const Fingerprints& first, const Fingerprints& second,
                         const std::set<std::uint64_t>& common) {
  Likeness like;
  std::map<std::uint64_t, std::vector<const Fingerprint*>> there;
  std::set<std::uint64_t> own;
  for (const Fingerprint& f : second)
    if (!common.contains(f.hash)) there[f.hash].push_back(&f);
  std::set<std::uint64_t> shared;
  for (const Fingerprint& f : first) {
    if (common.contains(f.hash)) continue;
    own.insert(f.hash);
    auto match = there.find(f.hash);
    if (match == there.end()) continue;
    shared.insert(f.hash);
    const Fingerprint* other = match->second.front();
    // If the hash occurs several times in the second source, prefer the place that continues the last
    // fragment.
    if (!like.fragments.empty()) {
      Fragment& open = like.fragments.back();
      for (const Fingerprint* candidate : match->second)
        if (candidate->line >= open.second_from && candidate->line <= open.second_to + 2) {
          other = candidate;
          break;
        }
      if (f.line <= open.first_to + 2 && other->line >= open.second_from &&
          other->line <= open.second_to + 2) {
        open.first_to = std::max(open.first_to, f.last_line);
        open.second_to = std::max(open.second_to, other->last_line);
        continue;
      }
    }
    like.fragments.push_back({f.line, f.last_line, other->line, other->last_line});
  }
  const std::size_t fewer = std::min(own.size(), there.size());
  if (fewer == 0) return {};
  like.share = static_cast<double>(shared.size()) / static_cast<double>(fewer);
  like.of_first = static_cast<double>(shared.size()) / static_cast<double>(own.size());
  return like;
}

std::vector<SourcePair> alike(const std::vector<NamedSource>& sources, const std::set<std::uint64_t>& common,
                              double least) {
  std::vector<SourcePair> pairs;
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < sources.size(); ++i) groups[sources[i].group].push_back(i);
  for (const auto& [group, members] : groups) {
    std::unordered_map<std::uint64_t, std::size_t> owners;
    std::vector<std::set<std::uint64_t>> hashes(members.size());
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (const Fingerprint& f : sources[members[m]].prints)
        if (!common.contains(f.hash)) hashes[m].insert(f.hash);
      for (std::uint64_t hash : hashes[m]) ++owners[hash];
    }
    std::set<std::uint64_t> silent = common;
    for (const auto& [hash, count] : owners)
      if (says_nothing(owners, members.size(), hash)) silent.insert(hash);
    // Counts shared hashes through an index of their holders, so that pairs without a shared hash cost
    // nothing.
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> holders;
    for (std::size_t m = 0; m < members.size(); ++m) {
      std::erase_if(hashes[m], [&](std::uint64_t hash) { return silent.contains(hash); });
      for (std::uint64_t hash : hashes[m]) holders[hash].push_back(m);
    }
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> shared;
    for (const auto& [hash, who] : holders)
      for (std::size_t i = 0; i < who.size(); ++i)
        for (std::size_t j = i + 1; j < who.size(); ++j) ++shared[std::minmax(who[i], who[j])];
    for (const auto& [pair, count] : shared) {
      const std::size_t fewer = std::min(hashes[pair.first].size(), hashes[pair.second].size());
      if (static_cast<double>(count) < least * static_cast<double>(fewer)) continue;
      const std::size_t a = members[pair.first], b = members[pair.second];
      pairs.push_back({a, b, compare_sources(sources[a].prints, sources[b].prints, silent)});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const SourcePair& a, const SourcePair& b) {
    return a.likeness.share > b.likeness.share;
  });
  return pairs;
}

}  // namespace capstone
