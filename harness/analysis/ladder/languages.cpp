#include "harness/analysis/ladder/languages.h"

#include <algorithm>

#include "harness/analysis/ladder/ladder.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/emulator/rewriter/cxx_tokens.h"
#include "harness/model/strict_yaml.h"

namespace capstone {
namespace {

constexpr const char* kDefinition = "ladder.yaml";

std::vector<fs::path> language_folders(const Resources& resources) {
  std::error_code code;
  std::vector<fs::path> folders;
  for (const auto& session : fs::directory_iterator(resources.reference_kernels(), code))
    for (const auto& folder : fs::directory_iterator(session.path(), code))
      if (is_language_ladder(folder.path())) folders.push_back(folder.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

Result<LadderDefinition> read_definition(const fs::path& file) {
  CAPSTONE_TRY(const std::string text, read_file(file));
  CAPSTONE_TRY(const YamlNode root, parse_yaml(text, file.string()));
  const StrictYaml yaml(file);
  CAPSTONE_CHECK(yaml.keys(root, {"problem", "library"}, {"also"}));
  LadderDefinition definition;
  CAPSTONE_TRY(definition.problem, yaml.text(root, "problem"));
  CAPSTONE_TRY(definition.library, yaml.text(root, "library"));
  if (const YamlNode* also = root.find("also")) {
    CAPSTONE_TRY(definition.also, yaml.texts(*also, "also"));
  }
  return definition;
}

// What a source imports or includes says what it is written in; the first that fits counts.
std::string language_of(bool python, std::string_view code) {
  const auto mentions = [&](std::string_view what) { return code.find(what) != code.npos; };
  if (!python) return mentions("#include <cute/") || mentions("#include <cutlass/") ? "CUTLASS" : "CUDA C++";
  if (mentions("import tilelang")) return "TileLang";
  if (mentions("import cutlass")) return "CuTe-DSL";
  if (mentions("import triton")) return "Triton";
  return "Python";
}

// The tokens of C++ know their comments.
std::string without_comments(bool python, std::string_view source) {
  return python ? without_python_comments(source) : std::string(source);
}

}  // namespace

bool is_python_rung(const fs::path& file) { return file.extension() == ".py"; }

bool is_language_ladder(const fs::path& folder) {
  std::error_code code;
  return fs::is_regular_file(folder / kDefinition, code);
}

Result<LadderDefinition> ladder_definition(const Resources& resources, const std::string& ladder) {
  for (const fs::path& folder : language_folders(resources))
    if (folder.filename() == ladder) return read_definition(folder / kDefinition);
  return LadderDefinition{ladder, {}, {}};
}

std::vector<std::string> language_ladders(const Resources& resources, const std::string& session) {
  std::vector<std::string> names;
  for (const fs::path& folder : language_folders(resources))
    if (session.empty() || folder.parent_path().filename().string().starts_with(session + "_"))
      names.push_back(folder.filename());
  return names;
}

std::string without_python_comments(std::string_view source) {
  std::string code;
  std::string_view quote;  // that ends the string we are in; empty: none
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (quote.empty() && c == '#') {
      i = std::min(source.find('\n', i), source.size());
      if (i < source.size()) code += '\n';
      continue;
    }
    if (quote.empty() && (c == '"' || c == '\'')) {
      const bool three = source.substr(i, 3) == std::string(3, c);
      quote = source.substr(i, three ? 3 : 1);
      code += quote;
      i += quote.size() - 1;
    } else if (!quote.empty() && c == '\\') {
      code += source.substr(i, 2);
      ++i;
    } else if (!quote.empty() &&
               (source.substr(i, quote.size()) == quote || (c == '\n' && quote.size() == 1))) {
      const std::size_t length = c == '\n' ? 1 : quote.size();
      code += source.substr(i, length);
      i += length - 1;
      quote = {};
    } else {
      code += c;
    }
  }
  return code;
}

std::vector<std::string> code_lines(const fs::path& file, std::string_view source) {
  const bool python = is_python_rung(file);
  std::vector<std::string> lines;
  for (const std::string& line : split(without_comments(python, source), '\n'))
    if (const std::string_view words = trim(line); !words.empty() && (python || !words.starts_with("//")))
      lines.push_back(line);
  return lines;
}

Written written(const fs::path& file, std::string_view source) {
  const bool python = is_python_rung(file);
  const std::string code = without_comments(python, source);
  Written all{language_of(python, code), static_cast<int>(code_lines(file, source).size()), 0};
  for (const CxxToken& token : cxx_tokens(code)) all.tokens += token.kind != CxxTokenKind::kComment;
  return all;
}

}  // namespace capstone
