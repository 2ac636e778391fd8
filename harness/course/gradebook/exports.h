#pragma once
// Marks on their way to a learning platform: into the very file that it exported, every other byte as it was.
#include <string>
#include <string_view>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// One person's mark as it leaves.
struct OutgoingMark {
  std::string submission;
  Person person;
  Origin origin;          ///< of the submission; without anything for a team, whose members stand for themselves
  double total = 0;       ///< of 100
  std::string comment;    ///< each criterion with its reason
};

/// Those of `rows` that are wholly marked. @param left_out  takes the others: "ada: not marked: depth, honesty"
std::vector<OutgoingMark> outgoing_marks(const std::vector<GradebookRow>& rows, const Rubric& rubric, const std::map<std::string, ResultSummary>& summaries,
                                         std::vector<std::string>& left_out);

struct FilledTable {
  std::string text;
  int filled = 0;
  std::vector<std::string> notes;       ///< marks that no row belongs to, rows that two marks belong to, rows that the platform locked, scaling
};

/// Canvas' gradebook as exported (Grades > Export). @param column  the assignment as its heading names it, with or without "(12345)"
/// @error not such a file; no such column: the hint lists the assignments.
Result<FilledTable> fill_canvas(const std::string& text, const std::string& file, const std::string& column, const std::vector<OutgoingMark>& marks);

/// Moodle's grading worksheet (Submissions > Download grading worksheet): `Grade`, and `Feedback comments` where it is there.
/// @error not such a file.
Result<FilledTable> fill_moodle(const std::string& text, const std::string& file, const std::vector<OutgoingMark>& marks);

/// Gradescope's results.json of one person, as an autograder leaves it.
Json gradescope_results(const GradebookRow& row, const Rubric& rubric);

/// name, id, email, each criterion, total, comment; RFC 4180, safe in spreadsheets.
std::string marks_csv(const std::vector<GradebookRow>& rows, const Rubric& rubric);

}  // namespace capstone
