#include "harness/workflows/rungs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/spelling.h"

namespace capstone::workflows {
namespace {

// "03_shared_tile" → "shared_tile"
std::string bare_name(const std::string& rung) {
  const std::size_t end = rung.find('_');
  return end == rung.npos ? std::string() : rung.substr(end + 1);
}

// Which other problem has a rung of about that name: "`02_online` is a rung of softmax".
std::optional<std::string> rung_elsewhere(const Workspace& workspace, const std::string& wanted,
                                          const char* command) {
  std::error_code code;
  std::vector<std::string> names, owners;
  for (const auto& file : fs::recursive_directory_iterator(workspace.resources.reference_kernels(), code)) {
    if (file.path().extension() != ".cu") continue;
    const std::string stem = file.path().stem();
    for (const std::string& name : {stem, bare_name(stem)}) {
      names.push_back(name);
      owners.push_back(file.path().parent_path().filename());
    }
  }
  auto meant = nearest(wanted, names);
  if (!meant) return std::nullopt;
  const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), *meant) - names.begin());
  return fmt::format(fmt::runtime(std::string("`{0}` is a rung of {1}: ") + command), *meant, owners[at]);
}

}  // namespace

bool is_called(const std::string& rung, const std::string& wanted) {
  const std::string number = rung.substr(0, rung.find('_'));
  return wanted == rung || wanted == bare_name(rung) || wanted == number || "0" + wanted == number;
}

Result<fs::path> find_rung(const Workspace& workspace, const std::string& problem, const std::string& wanted,
                           const char* command) {
  std::error_code code;
  fs::path as_path = workspace.cwd / wanted;
  if (wanted.ends_with(".cu") && fs::is_regular_file(as_path, code)) return as_path;
  if (wanted.ends_with(".cu"))
    return fail("no such source file", as_path.string(),
                "the path of a .cu file, or a rung by number or name");
  std::vector<fs::path> rungs;
  for (const auto& folder : fs::directory_iterator(workspace.resources.reference_kernels(), code))
    for (const auto& file : fs::directory_iterator(folder.path() / problem, code))
      if (file.path().extension() == ".cu") rungs.push_back(file.path());
  std::sort(rungs.begin(), rungs.end(),
            [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
  std::vector<std::string> names;
  for (const fs::path& rung : rungs) {
    const std::string stem = rung.stem();
    if (is_called(stem, wanted)) return rung;
    names.push_back(stem);
    names.push_back(bare_name(stem));
  }
  std::string hint = "rungs of this problem:";
  for (const fs::path& rung : rungs) hint += " " + rung.stem().string();
  if (auto defined = find_problem(workspace.resources.problems(), problem);
      defined && defined->graded && rungs.size() == 1)
    hint += " (students are given the first one of a problem that counts)";
  if (auto meant = nearest(wanted, names))
    hint = "did you mean `" + *meant + "`?  " + hint;
  else if (auto elsewhere = rung_elsewhere(workspace, wanted, command))
    hint = *elsewhere + "; " + hint;
  return fail("no rung named " + wanted + " for " + problem, workspace.resources.reference_kernels().string(),
              rungs.empty() ? "this problem ships no reference kernels; give the path of a .cu file" : hint);
}

}  // namespace capstone::workflows
