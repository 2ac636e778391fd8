#pragma once
// Finds kernels that share code, and worklogs that share prose, by fingerprints of normalised tokens. The
// result is evidence for a person to look at, never a penalty.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace capstone {

/// One selected hash of a source.
/// @source Schleimer, Wilkerson & Aiken, "Winnowing: local algorithms for document fingerprinting", SIGMOD
/// 2003.
struct Fingerprint {
  std::uint64_t hash = 0;
  int line = 0, last_line = 0;  ///< first and last line of the tokens that it covers, counted from 1
};
using Fingerprints = std::vector<Fingerprint>;  ///< in the order of the source

/// Fingerprints of a source after normalisation: comments and white space are removed, every name becomes one
/// token and every number another, so that renaming and reformatting change nothing. Keywords of CUDA and C++
/// are kept. A run of at least kGuaranteed equal tokens is always found; a run of fewer than kTokens never
/// is.
inline constexpr int kTokens = 12, kGuaranteed = 19;
Fingerprints fingerprints(std::string_view source);

/// Fingerprints of a worklog's prose: runs of kWords words, without case and punctuation, every number as one
/// word. Headings, questions and other quotations, and comments are left out. A run of 2 kWords - 1 equal
/// words is always found; a run of fewer than kWords never is.
inline constexpr int kWords = 6;
Fingerprints prose_fingerprints(std::string_view worklog);

/// Matching lines of two sources, both ends included.
struct Fragment {
  int first_from = 0, first_to = 0, second_from = 0, second_to = 0;
};

struct Likeness {
  double share = 0;     ///< [0, 1] shared part of the fingerprints of the source with fewer
  double of_first = 0;  ///< [0, 1] shared part of the first source's fingerprints
  std::vector<Fragment> fragments;
};
/// Compares two sources.
/// @param common  hashes to ignore: they come from the scaffold and the problem's files
Likeness compare_sources(const Fingerprints& first, const Fingerprints& second,
                         const std::set<std::uint64_t>& common);

struct NamedSource {
  std::string name;   ///< the submission's name; for other sources (scaffold, rungs, …) a description
  std::string group;  ///< the problem; only sources of the same group are compared
  std::string text;
  Fingerprints prints;  ///< of `text`
};

struct SourcePair {
  std::size_t first = 0, second = 0;  ///< positions in the list
  Likeness likeness;
};

/// The pairs with a share of at least `least` [0, 1], the most similar first. In a group of more than twelve
/// sources, hashes that more than a quarter of the sources have also count as common.
std::vector<SourcePair> alike(const std::vector<NamedSource>& sources, const std::set<std::uint64_t>& common,
                              double least);

}  // namespace capstone
