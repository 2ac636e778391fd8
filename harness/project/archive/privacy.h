#pragma once
// Keys and names that must not leave the student's machine by accident.
#include <string>
#include <string_view>
#include <vector>

#include "harness/project/archive/submission.h"

namespace capstone {

/// Something that looks like a key or a password.
struct SecretHit {
  int line = 0;             ///< counted from 1
  std::string kind;         ///< "OpenAI or Anthropic key", "private key", …
  std::string shown;        ///< masked: "sk-pr… (51 characters)"
};

/// Finds keys by their published prefixes, private keys, and assignments of a random-looking value to a name such as
/// api_key, token or password. Linear; knows nothing of what a key opens, so it may be wrong either way.
std::vector<SecretHit> find_secrets(std::string_view text);

/// Masks host name, user name and home folder: `~`, `[user]`, `[host]`.
class IdentityMask {
 public:
  /// @param public_words  what the student hands in on purpose (name, id, e-mail): a user name among them is no secret.
  ///                      Names that are ordinary words ("user", "root", "gpu") are not masked alone either.
  IdentityMask(const Identity& identity, const std::vector<std::string>& public_words);

  /// The text with every occurrence masked; `count` is raised by their number.
  std::string apply(std::string_view text, int& count) const;

  /// One occurrence in a text that is not changed.
  struct Hit { int line = 0; std::string what; };  ///< what: "the home folder", "the user name", "the host name"
  std::vector<Hit> find(std::string_view text) const;

 private:
  struct Word { std::string text, mask, what; };
  const Word* match(std::string_view text, std::size_t at) const;
  std::vector<Word> words_;   ///< longest first
  std::string starts_;        ///< their first bytes
};

}  // namespace capstone
