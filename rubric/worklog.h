#pragma once
// The worklog: five sections of the student's prose, with numbers that the ledger fills in.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/problem.h"
#include "rubric/finding.h"

namespace capstone {

inline constexpr int kWorklogSections = 5;

/// One section: its title, the questions that `init` writes, and its figures (tables and plots).
struct SectionSpec {
  int number = 0;  ///< 1 … 5
  std::string_view title;
  std::string_view purpose;  ///< one sentence, shown in the scaffold as a comment
  std::vector<std::string_view> questions;
  std::vector<std::string_view> figures;  ///< marker names: `<!-- capstone:versions -->`
};
const std::array<SectionSpec, kWorklogSections>& worklog_sections();

/// The number (1 … 5) of the section that a heading starts; 0 when the heading is not a section's title.
/// Numbering, case and the kind of apostrophe do not matter.
int section_of_heading(std::string_view heading);

/// The NAME of a marker `<!-- capstone:NAME -->`; empty when the HTML is not a marker.
std::string marker_name(std::string_view html);

/// A question of the scaffold (`> Q: …`) as found in a worklog.
struct Question {
  std::string text;
  int line = 0;
  int words = 0;          ///< of the prose between this question and the next
  bool answered = false;  ///< the student wrote prose, a list, a table or code below it
  /// Answered by more than a phrase: at least four words, a number, a placeholder, a table or code; and not
  /// the same text that answers two more questions ("see code").
  bool content = false;
};

/// A paragraph that the student wrote.
struct Paragraph {
  int section = 0;  ///< 1 … 5; 0 before the first section
  int line = 0;
  std::string text;
  std::string column;          ///< for a cell of the student's table: the heading of its column
  std::string row = {};        ///< for such a cell: the first cell of its row
  std::string with_code = {};  ///< `text` with what its code spans say
};

struct WorklogSection {
  bool present = false;
  std::string heading;  ///< as written
  int line = 0;
  /// Written by the student; not counted: questions, quotations, placeholders, tables, code.
  int words = 0;
  std::vector<Question> questions;
  int unanswered() const;
};

struct Worklog {
  std::string text;  ///< UTF-8, cut at kMarkdownLimit
  std::array<WorklogSection, kWorklogSections> sections;
  std::vector<Paragraph> paragraphs;  ///< in order; quotations and code are left out
  std::vector<std::string> markers;   ///< names of the figures' markers in the text, in order
  /// Text too long or not UTF-8; sections removed, renamed, repeated, moved.
  std::vector<Finding> findings;
  const WorklogSection& section(int number) const {
    return sections.at(static_cast<std::size_t>(number - 1));
  }
  int words() const;
};

/// Reads a worklog. Never fails: every problem becomes a finding.
Worklog parse_worklog(std::string_view bytes);

/// Whether section 1 says that the prediction came after a measurement. It cannot judge the reason.
bool explains_late_prediction(const Worklog& worklog);

/// The worklog.md that `init` writes: a title that names the problem, then five sections with their questions
/// and the markers of their figures.
std::string worklog_scaffold(const Problem& problem);

}  // namespace capstone
