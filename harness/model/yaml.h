#pragma once
// YAML as a tree that knows the position of every value. yaml-cpp parses; this builds the tree from its
// events, so that repeated keys are detected, and size, depth and aliases are limited while reading and not
// afterwards.
#include <string>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap } kind = Kind::kNull;
  int line = 1, column = 1;     ///< of the first character, from 1
  std::string text;             ///< scalars
  bool quoted = false;          ///< scalars: '…', "…", | or >; such text is never a number
  std::vector<YamlNode> items;  ///< lists
  struct Entry;
  std::vector<Entry> entries;  ///< maps, in file order; keys are scalars, each once

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
  /// The value under `key`, or null.
  const YamlNode* find(std::string_view key) const;
};

/// Key and value.
struct YamlNode::Entry {
  YamlNode first, second;
};

/// "a list", "a mapping", "`text`", "nothing": for messages.
std::string describe(const YamlNode& node);

struct YamlLimits {
  std::size_t bytes = 256u << 10;
  int depth = 16;
  int nodes = 20000;
};

/// Parses one document. Aliases and tags are refused: definitions do not need them, and aliases allow "YAML
/// bombs".
/// @param file  named in errors: file:line:column
/// @error syntax, repeated key, alias, tag, second document, a limit exceeded, not UTF-8
Result<YamlNode> parse_yaml(const std::string& bytes, const std::string& file, const YamlLimits& limits = {});

}  // namespace capstone
