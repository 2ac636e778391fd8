#pragma once
// The files of a problem's definition, ready to be written. Private to harness/project.
#include <string>
#include <vector>

#include "harness/model/problem.h"

namespace capstone {

/// One file to create; its path is relative to the project.
struct ProjectFile {
  std::string path;
  std::string bytes;
  std::string purpose;  ///< one line for the output of `init`
};

/// Lists every file of the definition and the generated launch.h, under problem/.
/// @error a file that cannot be read.
Result<std::vector<ProjectFile>> copy_of_definition(const Problem& problem);

}  // namespace capstone
