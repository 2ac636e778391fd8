#pragma once
// Kernels side by side where they say the same.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/course/similarity.h"
#include "harness/base/error.h"

namespace capstone {

/// One finding with the lines that both have.
struct SimilarityFinding {
  std::string first, second;      ///< as people call them
  std::string first_text, second_text;
  Likeness likeness;
};
struct SimilarityReport {
  std::vector<SimilarityFinding> pairs;      ///< of students
  std::vector<SimilarityFinding> origins;    ///< a student's kernel and what it may have begun from; share of the student's
};

/// @error a page template is missing.
Result<std::string> similarity_page(const SimilarityReport& report, const std::filesystem::path& templates);

}  // namespace capstone
