#pragma once
// The worklog: five sections of a student's prose around numbers that the ledger fills in.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/problem.h"
#include "rubric/finding.h"

namespace capstone {

inline constexpr int kWorklogSections = 5;

/// What a section is: its title, the questions that `init` asks, and the figures (tables, plots) that belong to it.
struct SectionSpec {
  int number = 0;                          ///< 1 … 5
  std::string_view title;
  std::string_view purpose;                ///< one sentence, shown in the scaffold as a comment
  std::vector<std::string_view> questions;
  std::vector<std::string_view> figures;  ///< marker names: `<!-- capstone:versions -->`
};
const std::array<SectionSpec, kWorklogSections>& worklog_sections();

/// 1 … 5 when a heading's text is a section's title (numbering, case and apostrophes do not matter), else 0.
int section_of_heading(std::string_view heading);

/// The name in `<!-- capstone:NAME -->`; empty when the HTML is not such a marker.
std::string marker_name(std::string_view html);

/// A question of the scaffold (`> Q: …`) as found in a worklog.
struct Question {
  std::string text;
  int line = 0;
  int words = 0;          ///< of the prose between this question and the next
  bool answered = false;  ///< any prose, list, table or code of the student's follows
};

/// A paragraph of the student's own prose.
struct Paragraph {
  int section = 0;        ///< 1 … 5; 0 before the first section
  int line = 0;
  std::string text;
  std::string column;     ///< a cell of the student's own table: the heading of its column
};

struct WorklogSection {
  bool present = false;
  std::string heading;    ///< as written
  int line = 0;
  int words = 0;          ///< the student's own: no questions, quotations, placeholders, tables, code
  std::vector<Question> questions;
  int unanswered() const;
};

struct Worklog {
  std::string text;                        ///< UTF-8, cut at kMarkdownLimit
  std::array<WorklogSection, kWorklogSections> sections;
  std::vector<Paragraph> paragraphs;       ///< in order; quotations and code are left out
  std::vector<std::string> markers;        ///< figures that the student kept in place
  std::vector<Finding> findings;           ///< too long, not UTF-8, removed, renamed, repeated or out of order
  const WorklogSection& section(int number) const { return sections.at(static_cast<std::size_t>(number - 1)); }
  int words() const;
};

/// Reads a worklog. Never fails: whatever is wrong with it is a finding.
Worklog parse_worklog(std::string_view bytes);

/// The worklog.md that `init` writes: five sections, questions that name this problem, markers for the figures.
std::string worklog_scaffold(const Problem& problem);

}  // namespace capstone
