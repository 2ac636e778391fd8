#pragma once
// Creates a new project.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/project/project.h"

namespace capstone {

struct InitOptions {
  Problem problem;                                 ///< as loaded from the catalogue or a path
  std::filesystem::path directory;                 ///< the project directory: missing, or an empty folder
  std::vector<Person> members;                     ///< may be empty: filled in later
  std::optional<std::filesystem::path> from_rung;  ///< a .cu file to start from; none: a stub
  std::string language;         ///< of a kernel.py instead, see python_languages(); empty: CUDA
  std::string worklog_text;     ///< content of worklog.md, see worklog_scaffold()
  std::string created;          ///< UTC; empty: now
  std::filesystem::path state;  ///< folder of machine_id()'s file; empty: Resources::cache
};

struct CreatedFile {
  std::string path;     ///< relative to the project
  std::string purpose;  ///< one line
};

struct InitReport {
  std::filesystem::path root;      ///< absolute
  std::vector<CreatedFile> files;  ///< in the order in which a new user should read them
};

/// Creates a project completely or not at all. Existing files are never overwritten.
/// @error the folder is not empty (the hint names what is in it); the rung cannot be read or has no launch();
///   the disk is full. In all cases nothing is left behind.
Result<InitReport> init_project(const InitOptions& options, const Resources& resources);

}  // namespace capstone
