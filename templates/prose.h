#pragma once
// The student's Markdown with the ledger's numbers in it, as HTML and as Markdown.
#include <array>
#include <map>
#include <string>

#include "rubric/numbers.h"
#include "rubric/worklog.h"

namespace capstone {

struct ProseHtml {
  std::string preamble;                                   ///< what stands before the first section, its title left out
  std::array<std::string, kWorklogSections> sections;     ///< prose with the figures where their markers stand
};

/// Renders a worklog's prose. Raw HTML is shown as text, images too; links lead to http, https, mailto or inside the page;
/// placeholders are filled in and suspect numbers marked. `figures`: HTML of our own by marker name; one whose marker the
/// student deleted stands at the end of its section, each exactly once.
ProseHtml prose_to_html(const Worklog& worklog, const LedgerNumbers& numbers, const std::map<std::string, std::string>& figures);

/// The worklog as Markdown with placeholders filled in and the figures (as Markdown) at their markers. Everything else stays
/// as the student wrote it; sections that are missing are appended with their figures.
std::string prose_to_markdown(const Worklog& worklog, const LedgerNumbers& numbers, const std::map<std::string, std::string>& figures);

}  // namespace capstone
