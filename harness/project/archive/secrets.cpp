// Recognizes keys by their form. The prefixes are those that the issuers publish for secret scanners.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "harness/base/text.h"
#include "harness/project/archive/privacy.h"

namespace capstone {
namespace {

struct KeyShape {
  std::string_view prefix, kind;
  std::size_t least;  // minimum number of characters after the prefix
  bool dashes;        // whether '-' and '_' may follow
};
constexpr std::array<KeyShape, 22> kKeys = {{
    {"sk-ant-", "Anthropic key", 20, true}, {"sk-proj-", "OpenAI key", 20, true},
    {"sk-or-", "OpenRouter key", 20, true}, {"sk-", "API key (sk-…)", 20, true},
    {"AKIA", "AWS access key", 16, false},  {"ASIA", "AWS access key", 16, false},
    {"ghp_", "GitHub token", 36, false},    {"gho_", "GitHub token", 36, false},
    {"ghu_", "GitHub token", 36, false},    {"ghs_", "GitHub token", 36, false},
    {"ghr_", "GitHub token", 36, false},    {"github_pat_", "GitHub token", 22, true},
    {"glpat-", "GitLab token", 20, true},   {"hf_", "Hugging Face token", 30, false},
    {"AIza", "Google key", 35, true},       {"gsk_", "Groq key", 40, false},
    {"nvapi-", "NVIDIA key", 30, true},     {"r8_", "Replicate token", 37, false},
    {"xoxb-", "Slack token", 20, true},     {"xoxp-", "Slack token", 20, true},
    {"pplx-", "Perplexity key", 40, false}, {"npm_", "npm token", 36, false},
}};

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool key_char(char c, bool dashes) { return alnum(c) || (dashes && (c == '-' || c == '_')); }
bool value_char(char c) {
  return alnum(c) || c == '-' || c == '_' || c == '+' || c == '/' || c == '.' || c == '=';
}

// Letters and digits mixed: "sk-learn-is-a-library-name" is not a key.
bool mixed(std::string_view text) {
  bool digit = false, letter = false;
  for (char c : text) {
    digit |= std::isdigit(static_cast<unsigned char>(c)) != 0;
    letter |= std::isalpha(static_cast<unsigned char>(c)) != 0;
  }
  return digit && letter;
}

// Shannon entropy of the characters [bit per character].
double entropy(std::string_view text) {
  std::array<int, 256> counts{};
  for (char c : text) ++counts[static_cast<unsigned char>(c)];
  double bits = 0;
  for (int count : counts) {
    if (count == 0) continue;
    double p = static_cast<double>(count) / static_cast<double>(text.size());
    bits -= p * std::log2(p);
  }
  return bits;
}

std::string masked(std::string_view secret) {
  return fmt::format("{}… ({} characters)", secret.substr(0, 4), secret.size());
}

std::optional<SecretHit> key_at(std::string_view line, std::size_t at) {
  if (at > 0 && (alnum(line[at - 1]) || line[at - 1] == '_' || line[at - 1] == '-')) return std::nullopt;
  for (const KeyShape& key : kKeys) {
    if (!line.substr(at).starts_with(key.prefix)) continue;
    std::size_t end = at + key.prefix.size();
    while (end < line.size() && key_char(line[end], key.dashes)) ++end;
    std::string_view tail = line.substr(at + key.prefix.size(), end - at - key.prefix.size());
    if (tail.size() >= key.least && mixed(tail) && entropy(tail) >= 2.5)
      return SecretHit{0, std::string(key.kind), masked(line.substr(at, end - at))};
  }
  return std::nullopt;
}

bool is_private_key(std::string_view line) {
  std::size_t at = line.find("-----BEGIN ");
  return at != std::string_view::npos && line.find("PRIVATE KEY", at) != std::string_view::npos;
}

constexpr std::array<std::string_view, 8> kSecretNames = {"api_key", "apikey",   "api-key", "secret",
                                                          "token",   "password", "passwd",  "access_key"};

// `name = "value"`, `name: value`, `"name": "value"` with a value that looks random. `lower` is the line in
// lower case.
std::optional<SecretHit> assignment_to(std::string_view name, std::string_view line, std::string_view lower) {
  std::size_t i = 0;
  auto skip = [&](std::string_view set) {
    while (i < line.size() && set.find(line[i]) != set.npos) ++i;
  };
  for (std::size_t at = lower.find(name); at != lower.npos; at = lower.find(name, i)) {
    i = at + name.size();
    skip("\"'] ");
    if (i >= line.size() || (line[i] != '=' && line[i] != ':')) continue;
    skip("=: \"'");
    std::size_t start = i;
    while (i < line.size() && value_char(line[i]))
      ++i;  // the search continues after the value, so the line
            // is read once
    std::string_view value = line.substr(start, i - start);
    if (value.size() >= 16 && value.size() <= 512 && mixed(value) && entropy(value) >= 3.5)
      return SecretHit{0, fmt::format("value of \"{}\"", name), masked(value)};
  }
  return std::nullopt;
}

std::optional<SecretHit> secret_in(std::string_view line) {
  if (is_private_key(line)) return SecretHit{0, "private key", "-----BEGIN … PRIVATE KEY-----"};
  for (std::size_t at = 0; at < line.size(); ++at)
    if (auto hit = key_at(line, at)) return hit;
  std::string lower(line);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (std::string_view name : kSecretNames)
    if (auto hit = assignment_to(name, line, lower)) return hit;
  return std::nullopt;
}

}  // namespace

std::vector<SecretHit> find_secrets(std::string_view text) {
  std::vector<SecretHit> hits;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    ++number;
    if (auto hit = secret_in(text.substr(at, end - at))) {
      hit->line = number;
      hits.push_back(std::move(*hit));
    }
    at = end + 1;
  }
  return hits;
}

}  // namespace capstone
