#include "harness/workflows/cohort.h"

#include <cctype>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/submissions.h"

namespace capstone::workflows {

fs::path OpenCohort::project_of(const std::string& submission) const {
  return project_root(folder_of(submission) / "submission");
}

Json OpenCohort::evidence_of(const std::string& submission) const {
  auto text = read_file(folder_of(submission) / "score_sheet.json", 64u << 20);
  Json json = text ? parse_json(*text) : Json();
  if (!json.is_object()) json = Json::object();
  // For the marking sheet: a mentor opens these next to it.
  json["places"] = Json::array();
  std::error_code code;
  const auto name_place = [&](const char* what, const fs::path& file) {
    if (fs::exists(file, code)) json["places"].push_back(what + to_utf8(file.string()));
  };
  name_place("worklog: ", folder_of(submission) / "worklog.html");
  name_place("score sheet: ", folder_of(submission) / "score_sheet.html");
  if (const fs::path project = project_of(submission); !project.empty()) {
    name_place("kernel: ", project / "human" / "kernel.py");
    name_place("kernel: ", project / "human" / "kernel.cu");
    json["places"].push_back("what changed: cd " + to_utf8(project.string()) + " && capstone diff v1 v2");
  }
  return json;
}

std::string file_name_of(const std::string& grader) {
  std::string name;
  for (char c : grader)
    name += std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80 ? c : '-';
  return name == grader && !name.empty() ? name : name + "-" + sha256_hex(grader).substr(0, 6);
}

Result<OpenCohort> open_cohort(const Workspace& workspace, const std::string& folder) {
  const fs::path place = (workspace.cwd / folder).lexically_normal();
  std::error_code code;
  if (!fs::exists(place / "gradebook.sqlite", code))
    return fail("no gradebook here", place.string(),
                "it is made by `capstone grade SUBMISSIONS --out COHORT`; name that folder with --cohort");
  CAPSTONE_TRY(Rubric rubric, load_rubric(place / "rubric.yaml"));
  CAPSTONE_TRY(Gradebook book, Gradebook::open(place));
  return OpenCohort{place, std::move(rubric), std::move(book)};
}

}  // namespace capstone::workflows
