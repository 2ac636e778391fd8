#include "harness/workflows/syllabus.h"

#include "harness/base/files.h"
#include "harness/workflows/output_path.h"
#include "templates/syllabus_page.h"

namespace capstone::workflows {

Result<fs::path> write_syllabus_page(const Course& course, const std::vector<SessionSheet>& sheets,
                                     const std::string& file, const Workspace& workspace) {
  CAPSTONE_TRY(const fs::path path, output_path(workspace, file, Output::kPage));
  CAPSTONE_TRY(const std::string page, syllabus_page(course, sheets, workspace.resources.templates()));
  CAPSTONE_CHECK(write_file_atomic(path, page));
  return path;
}

}  // namespace capstone::workflows
