#pragma once
// Renders the student's Markdown with the ledger's numbers, as HTML and as Markdown.
#include <array>
#include <map>
#include <string>

#include "rubric/numbers.h"
#include "rubric/worklog.h"

namespace capstone {

struct ProseHtml {
  /// The text before the first section, without the title.
  std::string preamble;
  std::array<std::string, kWorklogSections> sections;  ///< the prose, with the figures at their markers
};

/// Renders a worklog's prose as HTML. Raw HTML and images are shown as text. Links to http, https, mailto and
/// places in the page stay links; all others become text. Placeholders are filled in, and doubtful numbers
/// are marked.
/// @param figures  trusted HTML by marker name. Each figure appears exactly once: at its marker, or at the
///                 end of its section if the student deleted the marker.
ProseHtml prose_to_html(const Worklog& worklog, const LedgerNumbers& numbers,
                        const std::map<std::string, std::string>& figures);

/// Renders the worklog as Markdown: fills in the placeholders and puts the figures (as Markdown) at their
/// markers. The rest stays as the student wrote it. Missing sections are appended with their figures.
std::string prose_to_markdown(const Worklog& worklog, const LedgerNumbers& numbers,
                              const std::map<std::string, std::string>& figures);

}  // namespace capstone
