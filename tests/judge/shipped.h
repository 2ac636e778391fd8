#pragma once
// The problems that the judge's tests judge. Their target defines CAPSTONE_SOURCES.
#include <filesystem>
#include <string>

#include "harness/model/problem.h"

namespace capstone::test {

/// A problem that ships with the project.
inline Problem problem_of(const std::string& id) {
  return load_problem(std::filesystem::path(CAPSTONE_SOURCES) / "problems" / id).value();
}

}  // namespace capstone::test
