#pragma once
// The worklog as a page: the student's prose with every number, table and plot filled in from the ledger.
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
  const Resources* resources = nullptr;   ///< page templates, rubric, gnuplot's place
  std::optional<Roof> roof;               ///< the device's peaks, when the caller knows them
  std::string generated;                  ///< UTC; shown at the foot of the page
};

struct ReportFile { std::string name, bytes; };

struct ReportFiles {
  std::vector<ReportFile> files;          ///< worklog.md, worklog.html, score_sheet.md, .html, .json
  std::vector<Finding> findings;          ///< what review() says, numbers in prose included
  const std::string& at(const std::string& name) const;  ///< throws std::out_of_range
};

/// Renders everything that `capstone submit` hands in. The worklog is read from the project; attempts' prompts and
/// replies from llm/attempt-N/. Sections that the student removed appear all the same, with a note.
/// @error a page template or the rubric is missing or broken; worklog.md does not exist.
Result<ReportFiles> render_report(const ReportInput& input);

enum class Audience { kStudent, kMentor };

/// The score sheet: evidence, questions and levels; suggested marks for mentors only. Files score_sheet.md/.html/.json.
Result<std::vector<ReportFile>> render_score_sheet(const ReportInput& input, const ScoreSheet& sheet, Audience audience);

/// Writes each file whole or not at all below `folder`.
Result<void> write_report(const ReportFiles& report, const std::filesystem::path& folder);

}  // namespace capstone
