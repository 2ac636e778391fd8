#include "harness/project/definition_copy.h"

#include <algorithm>
#include <map>

#include "harness/base/files.h"

namespace capstone {
namespace {

std::string purpose_of(const std::string& name) {
  static const std::map<std::string, std::string> kPurposes = {
      {"problem.yaml", "the contract: signature, sizes, tolerance, cost"},
      {"statement.md", "what to compute and what to look out for; read this first"},
      {"reference.py", "the reference in PyTorch; you and the model both get it"},
      {"oracle.cpp", "computes the correct result in float64; gate one compares with it"},
      {"baseline.cu", "the baseline of gate two"},
      {"hints.md", "three hints; `capstone hint` shows them one after the other, and records it"},
      {"launch.h", "declares the function that your kernel defines, with shapes in comments"},
  };
  auto known = kPurposes.find(name);
  return known == kPurposes.end() ? "part of the problem's definition" : known->second;
}

bool is_leftover(const std::string& name) {
  return name.starts_with('.') || name.starts_with('#') || name.ends_with('~') || name == "__pycache__" ||
         name == "launch.h";
}

}  // namespace

Result<std::vector<ProjectFile>> copy_of_definition(const Problem& problem) {
  std::vector<ProjectFile> files;
  std::error_code code;
  fs::recursive_directory_iterator entry(problem.folder, code), end;
  while (!code && entry != end) {
    const std::string name = entry->path().filename().string();
    if (is_leftover(name)) {
      if (entry->is_directory(code)) entry.disable_recursion_pending();
    } else if (entry->is_regular_file(code)) {
      const std::string relative = entry->path().lexically_relative(problem.folder).generic_string();
      CAPSTONE_TRY(std::string bytes, read_file(entry->path(), std::size_t{16} << 20));
      files.push_back({"problem/" + relative, std::move(bytes), purpose_of(relative)});
    }
    entry.increment(code);
  }
  if (code) return fail("cannot read the problem: " + code.message(), problem.folder.string());
  files.push_back({"problem/launch.h", launch_header(problem), purpose_of("launch.h")});
  std::sort(files.begin(), files.end(),
            [](const ProjectFile& a, const ProjectFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace capstone
