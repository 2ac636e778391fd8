#pragma once
// What a strict reader of a YAML file asks of its tree, with the messages that say where a file is wrong.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/model/yaml.h"

namespace capstone {

class StrictYaml {
 public:
  explicit StrictYaml(const std::filesystem::path& file) : file_(file.string()) {}

  /// An error at a node: file:line:column.
  tl::unexpected<Error> refuse(const YamlNode& at, std::string what, std::string hint = {}) const;
  /// @error not a mapping; a key that is neither required nor optional: the hint has the nearest; a required
  /// key is missing.
  Result<void> keys(const YamlNode& map, const std::vector<std::string>& required,
                    const std::vector<std::string>& optional = {}) const;
  /// @error not text, or empty.
  Result<std::string> text_of(const YamlNode& node, std::string_view name) const;
  /// The text below a key that the map has.
  Result<std::string> text(const YamlNode& map, const std::string& key) const;
  /// @error not a list with at least one text.
  Result<std::vector<std::string>> texts(const YamlNode& list, std::string_view name) const;
  /// A whole number. @error anything else, or outside of low to high.
  Result<int> whole(const YamlNode& node, std::string_view name, int low, int high) const;

 private:
  std::string file_;
};

}  // namespace capstone
