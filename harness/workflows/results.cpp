#include "harness/workflows/results.h"

#include "harness/analysis/ladder/ladder.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone::workflows {

Result<fs::path> results_file(const Workspace& workspace, const std::string& wanted,
                              const std::string& kind) {
  if (wanted.ends_with(".json")) return workspace.cwd / wanted;
  const auto devices = recorded_devices(workspace.resources, kind);
  const fs::path folder = workspace.resources.reference_kernels() / "results" / kind;
  for (const std::string& name : devices)
    if (name == results_name(wanted) || name.starts_with(results_name(wanted) + "_"))
      return folder / (name + ".json");
  return fail("no results were recorded on " + wanted, folder.string(),
              devices.empty() ? "record it: capstone ladder PROBLEM --record FILE.json"
                              : "recorded: " + join(devices, ", ") + "; or the path of a results file");
}

Result<void> expect_writable(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code))
    return fail("cannot write: this is a folder, not a file", path.string(), "give the name of a file in it");
  const fs::path beside = temporary_beside(path);
  if (auto written = write_file_atomic(beside, ""); !written) {
    Error error = written.error();
    error.where = path.string();
    return fail(error);
  }
  fs::remove(beside, code);
  return {};
}

}  // namespace capstone::workflows
