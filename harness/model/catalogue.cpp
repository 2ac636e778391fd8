// Lists problem folders, finds the one that a name means, and computes the digest of its content.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/parallel.h"
#include "harness/model/expression.h"
#include "harness/model/problem.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxFiles = 256;
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

bool ends_with_any(const std::string& name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view e) { return name.ends_with(e); });
}

bool is_part_of_definition(const std::string& name) {
  if (name.empty() || name[0] == '.' || name[0] == '#' || name == "__pycache__" || name == "launch.h")
    return false;
  return !ends_with_any(name, {"~", ".bak", ".orig", ".rej", ".swp", ".tmp"});
}

tl::unexpected<Error> unreadable(const fs::path& path, const std::error_code& code) {
  return fail("cannot read folder: " + code.message(), path.string(), "check the path and its permissions",
              ExitCode::kUsage);
}

/// Relative name → path of every file of a definition, sorted by name.
Result<std::map<std::string, fs::path>> definition_files(const fs::path& folder) {
  std::map<std::string, fs::path> files;
  std::error_code code;
  fs::recursive_directory_iterator it(folder, code), end;
  if (code) return unreadable(folder, code);
  while (it != end) {
    const bool counts = is_part_of_definition(it->path().filename().string());
    if (!counts && it->is_directory(code)) it.disable_recursion_pending();
    if (counts && it->is_regular_file(code))
      files[it->path().lexically_relative(folder).generic_string()] = it->path();
    if (files.size() > kMaxFiles)
      return fail(fmt::format("a problem folder holds more than {} files", kMaxFiles), folder.string(),
                  "keep only the definition in it");
    it.increment(code);
    if (code) return unreadable(folder, code);
  }
  return files;
}

/// Names of the folders below `root` that hold a problem.yaml, sorted.
Result<std::vector<std::string>> problem_ids(const fs::path& root) {
  std::vector<std::string> ids;
  std::error_code code;
  fs::directory_iterator it(root, code), end;
  if (code)
    return fail("no problem catalogue: " + code.message(), root.string(),
                "check that capstone is installed completely", ExitCode::kEnvironment);
  while (it != end) {
    std::error_code ignored;
    if (fs::exists(it->path() / "problem.yaml", ignored)) ids.push_back(it->path().filename().string());
    it.increment(code);
    if (code) return unreadable(root, code);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// In a catalogue, unlike in a project's pinned copy, the folder has the problem's name.
Result<Problem> load_from_catalogue(const fs::path& folder) {
  CAPSTONE_TRY(Problem problem, load_problem(folder));
  if (problem.id != folder.filename().string())
    return fail(
        fmt::format("problem `{}` is in a folder called `{}`", problem.id, folder.filename().string()),
        (folder / "problem.yaml").string(), "rename the folder or change `id`");
  return problem;
}

bool is_path(const std::string& name) {
  std::error_code ignored;
  return name.find('/') != std::string::npos || fs::exists(fs::path(name) / "problem.yaml", ignored);
}

}  // namespace

Result<std::string> digest_of_definition(const fs::path& folder) {
  CAPSTONE_TRY(const auto files, definition_files(folder));
  DigestBuilder digest;
  std::size_t total = 0;
  for (const auto& [name, path] : files) {
    CAPSTONE_TRY(const std::string bytes, read_file(path, kMaxBytes));
    total += bytes.size();
    if (total > kMaxBytes)
      return fail(fmt::format("a problem folder holds more than {} MiB", kMaxBytes >> 20), folder.string(),
                  "keep only the definition in it");
    digest.add(name, bytes);
  }
  return digest.hex();
}

Result<std::vector<Problem>> load_catalogue(const fs::path& root) {
  CAPSTONE_TRY(const auto ids, problem_ids(root));
  std::vector<std::optional<Result<Problem>>> loaded(ids.size());
  parallel_for(static_cast<std::int64_t>(ids.size()), 1, threads_or_all(0),
               [&](std::int64_t i, std::int64_t) {
                 const auto at = static_cast<std::size_t>(i);
                 loaded[at] = load_from_catalogue(root / ids[at]);
               });
  std::vector<Problem> problems;
  for (auto& one : loaded) {
    CAPSTONE_TRY(Problem problem, std::move(*one));
    problems.push_back(std::move(problem));
  }
  return problems;
}

Result<Problem> find_problem(const fs::path& catalogue_root, const std::string& name) {
  if (is_path(name)) return load_problem(name);
  CAPSTONE_TRY(const auto ids, problem_ids(catalogue_root));
  if (std::find(ids.begin(), ids.end(), name) != ids.end()) return load_from_catalogue(catalogue_root / name);
  return fail(fmt::format("no problem `{}`", name), catalogue_root.string(), did_you_mean(name, ids));
}

}  // namespace capstone
