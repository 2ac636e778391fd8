#pragma once
// A new project.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/project/project.h"

namespace capstone {

struct InitOptions {
  Problem problem;                                 ///< as loaded from the catalogue or a path
  std::filesystem::path directory;                 ///< where the project shall lie: missing, or an empty folder
  std::vector<Person> members;                     ///< may be empty: filled in later
  std::optional<std::filesystem::path> from_rung;  ///< a .cu to begin with; none: a stub
  std::string worklog_text;                        ///< worklog.md, see worklog_scaffold()
  std::string created;                             ///< UTC; empty: now
  std::filesystem::path state;                     ///< where machine_id() keeps its file; empty: Resources::cache
};

struct CreatedFile {
  std::string path;     ///< relative to the project
  std::string purpose;  ///< one line
};

struct InitReport {
  std::filesystem::path root;      ///< absolute
  std::vector<CreatedFile> files;  ///< in the order in which a newcomer should read them
};

/// Makes a project: all of it or nothing; what is there already is never overwritten.
/// @error the folder is not empty (the hint names what is in the way); the rung cannot be read or has no launch();
///        the disk is full. Nothing is left behind.
Result<InitReport> init_project(const InitOptions& options, const Resources& resources);

}  // namespace capstone
