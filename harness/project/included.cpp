#include "harness/project/included.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxBytes = 16u << 20, kMaxName = 400, kMaxFiles = 1000;

struct Named {
  std::set<std::string> files;  // every text in quotes, and in angle brackets after #include
  bool computed = false;        // a directive's name is made by a macro
};

// The text between two marks; empty if the second one is not in the same line, or too far.
std::string_view between(std::string_view line, std::size_t open, char close) {
  const std::size_t end = line.find(close, open + 1);
  if (end == std::string_view::npos || end - open > kMaxName) return {};
  return line.substr(open + 1, end - open - 1);
}

Named names_in(const std::string& source) {
  Named named;
  // A line that ends in a backslash goes on in the next one.
  for (const std::string& each : split(replace_all(replace_all(source, "\\\r\n", ""), "\\\n", ""), '\n')) {
    const std::string_view line = each;
    for (std::size_t at = 0; (at = line.find('"', at)) != std::string_view::npos; ++at)
      if (auto text = between(line, at, '"'); !text.empty()) named.files.emplace(text);
    std::string_view directive = trim(line);
    if (!directive.starts_with("#")) continue;
    directive = trim(directive.substr(1));
    for (std::string_view word : {"include_next", "include", "import", "embed"}) {
      if (!directive.starts_with(word)) continue;
      const std::string_view what = trim(directive.substr(word.size()));
      if (what.starts_with("<"))
        named.files.emplace(between(what, 0, '>'));
      else if (!what.starts_with("\""))
        named.computed = true;
      break;
    }
  }
  return named;
}

std::vector<fs::path> files_next_to(const fs::path& source) {
  std::vector<fs::path> files;
  std::error_code code;
  fs::recursive_directory_iterator at(source.parent_path(), code), end;
  for (; !code && at != end && files.size() < kMaxFiles; at.increment(code))
    if (std::error_code ignored; at->is_regular_file(ignored)) files.push_back(at->path());
  return files;
}

class Inclusion {
 public:
  Inclusion(fs::path root, fs::path source) : root_(std::move(root)), source_(std::move(source)) {}

  Result<std::vector<IncludedFile>> files() {
    CAPSTONE_TRY(const std::string text, read_file(source_, kMaxBytes));
    seen_.insert(source_.lexically_normal());
    if (source_.extension() == ".py")
      CAPSTONE_CHECK(add_modules(text));
    else
      CAPSTONE_CHECK(follow(source_, text));
    std::vector<IncludedFile> files;
    for (const auto& [path, digest] : digests_) files.push_back({path, digest});
    return files;
  }

 private:
  Result<void> follow(const fs::path& from, const std::string& text) {
    const Named named = names_in(text);
    for (const std::string& name : named.files)
      for (const fs::path& folder : {from.parent_path(), source_.parent_path()})
        CAPSTONE_CHECK(add(folder / name));
    if (named.computed)
      for (const fs::path& file : files_next_to(source_)) CAPSTONE_CHECK(add(file));
    return {};
  }

  Result<void> add_modules(const std::string& text) {
    for (const fs::path& file : files_next_to(source_))
      if (file.extension() == ".py" && text.find(file.stem().string()) != std::string::npos)
        CAPSTONE_CHECK(add(file));
    return {};
  }

  // A file of the project that was not seen yet, and what it includes.
  Result<void> add(const fs::path& named) {
    const fs::path file = named.lexically_normal();
    const std::string path = file.lexically_relative(root_).generic_string();
    std::error_code code;
    if (path.empty() || path.starts_with("..") || digests_.size() >= kMaxFiles ||
        !fs::is_regular_file(file, code) || !seen_.insert(file).second)
      return {};
    CAPSTONE_TRY(const std::string text, read_file(file, kMaxBytes));
    digests_[path] = sha256_hex(text);
    return source_.extension() == ".py" ? add_modules(text) : follow(file, text);
  }

  fs::path root_, source_;
  std::set<fs::path> seen_;
  std::map<std::string, std::string> digests_;  // by path in the project
};

}  // namespace

Result<std::vector<IncludedFile>> included_files(const fs::path& root, const fs::path& source) {
  return Inclusion(root.lexically_normal(), source.lexically_normal()).files();
}

}  // namespace capstone
