#pragma once
// Exports marks to learning platforms: fills the file that the platform exported and leaves every other byte
// unchanged.
#include <string>
#include <string_view>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// One person's mark, ready for export.
struct OutgoingMark {
  std::string submission;
  Person person;
  /// Of the submission; empty for a team, because it names only the member who uploaded.
  Origin origin;
  double total = 0;     ///< marks out of 100
  std::string comment;  ///< each criterion with its reason
};

/// The rows in which every criterion is marked.
/// @param left_out  receives a line for each of the other rows: "ada, Ada: not marked: depth, honesty"
std::vector<OutgoingMark> outgoing_marks(const std::vector<GradebookRow>& rows, const Rubric& rubric,
                                         const std::map<std::string, ResultSummary>& summaries,
                                         std::vector<std::string>& left_out);

struct FilledTable {
  std::string text;
  int filled = 0;
  /// Marks without a row, rows with two marks, locked rows, scaled marks.
  std::vector<std::string> notes;
};

/// Fills a gradebook that Canvas exported (Grades > Export).
/// @param column  the assignment as its heading names it, with or without the number "(12345)"
/// @error not a gradebook of Canvas; no such column (the hint lists the assignments).
Result<FilledTable> fill_canvas(const std::string& text, const std::string& file, const std::string& column,
                                const std::vector<OutgoingMark>& marks);

/// Fills a grading worksheet of Moodle (Submissions > Download grading worksheet): the column `Grade`, and
/// `Feedback comments` if there is one, as HTML: a paragraph for each line.
/// @error not a grading worksheet of Moodle.
Result<FilledTable> fill_moodle(const std::string& text, const std::string& file,
                                const std::vector<OutgoingMark>& marks);

/// The results.json for one person, in the form that Gradescope expects from an autograder.
Json gradescope_results(const GradebookRow& row, const Rubric& rubric);

/// A CSV table (RFC 4180): name, id, email, each criterion, total, comment. Cells that look like formulas are
/// defused.
std::string marks_csv(const std::vector<GradebookRow>& rows, const Rubric& rubric);

}  // namespace capstone
