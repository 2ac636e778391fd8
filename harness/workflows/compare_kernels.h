#pragma once
// Which kernels of a cohort share code (with each other, with rungs and examples, with the project's own
// model) and which worklogs share prose.
#include "harness/workflows/cohort.h"
#include "templates/similarity_page.h"

namespace capstone::workflows {

struct KernelComparison {
  std::size_t kernels = 0;  ///< that were compared
  SimilarityReport report;
  std::filesystem::path page;  ///< similarity.html with the aligned fragments
};

/// Compares kernels with each other, each with what it may have started from, and worklogs with each other.
/// Writes similarity.json and
/// similarity.html into the cohort's folder.
/// @param least  smallest share to report [%]
Result<KernelComparison> compare_kernels(const Workspace& workspace, OpenCohort& cohort, double least);

}  // namespace capstone::workflows
