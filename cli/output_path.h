#pragma once
// Where a command may write what it was asked to: never over what a student wrote.
#include "cli/context.h"

namespace capstone::cli {

/// What an option of ours writes. A file that stands there already is only replaced when it is of the same kind.
enum class Output { kPage, kArchive, kBundle, kCheckIn, kPrompt, kBench, kLadders, kSelftest, kCalibration, kRecords, kCurve, kNcuTable };

/// The file that an option names, seen from the current folder. What stands there stays.
/// @error it is a file that some project is made of (capstone.yaml, worklog.md, .capstone/, problem/, human/kernel.*,
/// llm/attempt-*); @error there is a file already that is not of this kind.
Result<std::filesystem::path> output_path(const Context& context, const std::string& name, Output kind);

/// The folder that an option names, for the report's files.
/// @error it is a project, or belongs to one as above; @error it holds a worklog.md and no score sheet beside it: no report of ours.
Result<std::filesystem::path> report_folder(const Context& context, const std::string& name);

}  // namespace capstone::cli
