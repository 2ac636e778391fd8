#pragma once
// The texts of a new project's files. Private to harness/project.
#include <string>

#include "harness/model/problem.h"

namespace capstone {

std::string project_readme(const Problem& problem);
std::string model_readme(const Problem& problem);
std::string git_ignore();
std::string git_attributes();

}  // namespace capstone
