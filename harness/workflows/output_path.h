#pragma once
// Where a command may write its output: never over what a student wrote.
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// The kinds of files that commands write. An existing file is replaced only by one of the same kind.
enum class Output {
  kPage,
  kArchive,
  kBundle,
  kCheckIn,
  kPrompt,
  kBench,
  kLadders,
  kSelftest,
  kCalibration,
  kRecords,
  kCurve,
  kNcuTable,
  kDemo,
  kExportedKernel
};

/// The file that an option names, relative to the current folder. Existing files stay as they are.
/// @error it is part of a project (capstone.yaml, worklog.md, .capstone/, problem/, human/kernel.*,
/// llm/attempt-*);
/// @error a file that is not of this kind is there already.
Result<std::filesystem::path> output_path(const Workspace& workspace, const std::string& name, Output kind);

/// The folder that an option names, for the report's files.
/// @error it is part of a project as above; @error it holds a worklog.md but no score sheet: not a report of
/// capstone's.
Result<std::filesystem::path> report_folder(const Workspace& workspace, const std::string& name);

}  // namespace capstone::workflows
