#pragma once
// Finds keys and names that must not leave the student's machine by accident.
#include <string>
#include <string_view>
#include <vector>

#include "harness/project/archive/submission.h"

namespace capstone {

/// Something that looks like a key or a password.
struct SecretHit {
  int line = 0;       ///< counted from 1
  std::string kind;   ///< "OpenAI or Anthropic key", "private key", …
  std::string shown;  ///< masked: "sk-pr… (51 characters)"
};

/// Finds keys by their published prefixes, private keys, and assignments of a random-looking value to a name
/// such as api_key, token or password. Takes linear time. This is a guess: it can miss a key and it can
/// report a harmless value.
std::vector<SecretHit> find_secrets(std::string_view text);

/// Masks host name, user name and home folder: `~`, `[user]`, `[host]`.
class IdentityMask {
 public:
  /// @param public_words  what the student hands in on purpose (name, id, e-mail). A user name among them is
  ///   not masked. Names that are ordinary words ("user", "root", "gpu") are not masked either.
  IdentityMask(const Identity& identity, const std::vector<std::string>& public_words);

  /// Returns the text with every occurrence masked; adds their number to `count`.
  std::string apply(std::string_view text, int& count) const;

  /// One occurrence in a text that must stay unchanged.
  struct Hit {
    int line = 0;
    std::string what;
  };  ///< what: "the home folder", "the user name", "the host name"
  std::vector<Hit> find(std::string_view text) const;

 private:
  struct Word {
    std::string text, mask, what;
  };
  const Word* match(std::string_view text, std::size_t at) const;
  std::vector<Word> words_;  ///< longest first
  std::string starts_;       ///< the first byte of each word
};

}  // namespace capstone
