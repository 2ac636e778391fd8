#pragma once
// The worklog as a page: the student's prose, with numbers, tables and plots from the ledger.
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"
#include "rubric/finding.h"
#include "rubric/rubric.h"
#include "templates/plot.h"

namespace capstone {

struct ReportInput {
  const Project* project = nullptr;
  const LedgerView* ledger = nullptr;
  const Resources* resources = nullptr;  ///< page templates, rubric, path of gnuplot
  std::optional<Roof> roof;              ///< the device's peaks, if the caller knows them
  std::string generated;                 ///< UTC; shown at the foot of the page
  /// Plots that were drawn from the same ledger, to be used again; empty: they are drawn now and put here.
  std::vector<Plot>* plots = nullptr;
};

struct ReportFile {
  std::string name, bytes;
};

struct ReportFiles {
  std::vector<ReportFile> files;  ///< worklog.md, worklog.html, score_sheet.md, .html, .json
  /// The findings of review(), including those about numbers in the prose.
  std::vector<Finding> findings;
  const std::string& at(const std::string& name) const;  ///< throws std::out_of_range
};

/// Renders all pages that `capstone submit` includes. Reads the worklog from the project, and the prompts and
/// replies of attempts from llm/attempt-N/. A section that the student removed still appears, with a note.
/// @error a page template or the rubric is missing or broken; worklog.md does not exist.
Result<ReportFiles> render_report(const ReportInput& input);

enum class Audience { kStudent, kMentor };

/// Renders the score sheet with its evidence, questions and levels; only mentors see the suggested marks.
/// @return score_sheet.md, score_sheet.html and score_sheet.json
/// @error the page template is missing or broken.
Result<std::vector<ReportFile>> render_score_sheet(const ReportInput& input, const ScoreSheet& sheet,
                                                   Audience audience);

/// Writes the files below `folder`, each atomically (completely, or not at all).
/// @error a file cannot be written.
Result<void> write_report(const ReportFiles& report, const std::filesystem::path& folder);

}  // namespace capstone
