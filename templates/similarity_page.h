#pragma once
// A page that shows the shared code of kernels, and the shared prose of worklogs, side by side.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/course/similarity.h"

namespace capstone {

/// Two kernels and the lines that they share.
struct SimilarityFinding {
  std::string first, second;  ///< names to show
  std::string first_text, second_text;
  Likeness likeness;
};
struct SimilarityReport {
  std::vector<SimilarityFinding> pairs;    ///< two students' kernels
  std::vector<SimilarityFinding> origins;  ///< a student's kernel and a possible source of it
  std::vector<SimilarityFinding> prose;    ///< two students' worklogs
};

/// @error a page template is missing.
Result<std::string> similarity_page(const SimilarityReport& report, const std::filesystem::path& templates);

}  // namespace capstone
