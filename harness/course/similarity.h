#pragma once
// Which kernels share code: fingerprints of normalised CUDA tokens. Evidence for a person to look at, never a penalty.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace capstone {

/// The selected hashes of one source.
/// @source Schleimer, Wilkerson & Aiken, "Winnowing: local algorithms for document fingerprinting", SIGMOD 2003.
struct Fingerprint {
  std::uint64_t hash = 0;
  int line = 0, last_line = 0;   ///< of the tokens that it stands for, from 1
};
using Fingerprints = std::vector<Fingerprint>;   ///< in the order of the source

/// Comments and white space are gone, names are one token, numbers another: renaming and reformatting change nothing. Words of CUDA and C++ stay.
/// Any run of kGuaranteed equal tokens is found; shorter than kTokens never.
inline constexpr int kTokens = 12, kGuaranteed = 19;
Fingerprints fingerprints(std::string_view source);

/// Lines of two sources that say the same, both ends included.
struct Fragment { int first_from = 0, first_to = 0, second_from = 0, second_to = 0; };

struct Likeness {
  double share = 0;                  ///< [0, 1] of the fingerprints of the one with fewer
  double of_first = 0;               ///< [0, 1] of the first one's
  std::vector<Fragment> fragments;
};
/// @param common  hashes that say nothing: scaffold and problem files
Likeness compare_sources(const Fingerprints& first, const Fingerprints& second, const std::set<std::uint64_t>& common);

struct NamedSource {
  std::string name;          ///< of the submission; for an origin what it is
  std::string group;         ///< only sources of one group (problem) are compared
  std::string text;
  Fingerprints prints;       ///< of `text`
};

struct SourcePair {
  std::size_t first = 0, second = 0;     ///< in the list
  Likeness likeness;
};

/// Pairs whose share is at least `least`, the most alike first. Hashes that more than a quarter of a group of more than twelve has are common, too.
std::vector<SourcePair> alike(const std::vector<NamedSource>& sources, const std::set<std::uint64_t>& common, double least);

}  // namespace capstone
