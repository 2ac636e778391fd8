#include "harness/workflows/student_tokens.h"

#include <algorithm>

#include "harness/base/csv.h"
#include "harness/base/files.h"
#include "harness/course/gradebook/students.h"

namespace capstone::workflows {

Result<std::size_t> write_student_tokens(const Workspace& workspace, OpenCohort& cohort,
                                         const StudentTokensRequest& request) {
  CAPSTONE_TRY(const auto graders, Marking(cohort.book).graders());
  if (!graders.empty() && std::none_of(graders.begin(), graders.end(), [&](const Grader& one) {
        return one.name == request.by && one.role == GraderRole::kOwner;
      }))
    return fail("'" + request.by + "' is no owner", {}, "an owner makes tokens: --grader OWNER");
  const fs::path file = workspace.cwd / request.out;
  std::error_code code;
  if (fs::exists(file, code))
    return fail("the file exists", file.string(),
                "name another one with --out: tokens are not stored, so that a list cannot be made again");
  CAPSTONE_TRY(const auto made,
               StudentAccess(cohort.book).make_tokens(cohort.rubric, request.names, request.again));
  if (made.empty()) return std::size_t{0};
  std::string text = csv_row({"name", "id", "email", "submission", "url"});
  for (const StudentToken& each : made)
    text += csv_row({each.person.name, each.person.id, each.person.email, each.submission,
                     request.url + "/student#" + each.token});
  if (auto written = write_file_atomic(file, text, 0600); !written) {
    Error error = written.error();
    error.hint = "the tokens are lost: run the command again with --again and another --out";
    return fail(std::move(error));
  }
  return made.size();
}

}  // namespace capstone::workflows
