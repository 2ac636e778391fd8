#include "harness/workflows/catalogue.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone::workflows {

Result<Problem> catalogue_problem(const Workspace& workspace, const std::string& id) {
  const bool plain = !id.empty() && std::all_of(id.begin(), id.end(),
                                                [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!plain)
    return fail("not a problem id: '" + to_utf8(id) + "'", "capstone.yaml",
                "an id is letters, digits and underscores");
  std::error_code code;
  const fs::path folder = workspace.resources.problems() / id;
  if (!fs::exists(folder / "problem.yaml", code)) {
    std::vector<std::string> ids;
    for (const auto& entry : fs::directory_iterator(workspace.resources.problems(), code))
      if (fs::exists(entry.path() / "problem.yaml", code)) ids.push_back(entry.path().filename());
    auto near = nearest(id, ids);
    return fail("unknown problem '" + id + "'", "capstone.yaml",
                near ? "did you mean '" + *near + "'?" : "`capstone problems` lists them");
  }
  return find_problem(workspace.resources.problems(), folder.string());
}

}  // namespace capstone::workflows
