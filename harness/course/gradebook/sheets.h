#pragma once
// Marks in files: the marking sheet that a mentor fills in, tables of marks, and the gradebook as a table.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// Reusable comments by name. As a reason, `@name` means the whole text.
using Comments = std::map<std::string, std::string>;

/// Reads a YAML mapping from name to text. A file that does not exist has no comments.
/// @error not such a mapping: file:line.
Result<Comments> read_comments(const std::filesystem::path& file);

/// The text of a mark's reason; one that is only `@name` is replaced by the comment. Any other text, also one
/// that begins with `@`, stays letter by letter.
/// @error unknown comment; the position is `where`, and the hint names the nearest comment.
Result<std::string> reason_of(const std::string& text, const std::string& where, const Comments& comments);

/// Reads points, with a decimal point or, as many countries write it, a decimal comma.
/// @error not a finite number; the position is `where`.
Result<double> points_of(const std::string& text, const std::string& where);

/// The marking sheet for one submission, in YAML. What was judged, where the files are, the machine's
/// evidence and the questions that it raises are YAML comments; each criterion has a place for its mark,
/// filled in if this version already has one.
/// @param evidence  the mentors' score_sheet.json of the submission, with `places` (lines that name files);
///                  null when there is none (a failed submission)
std::string marking_sheet(const GradebookRow& row, const Rubric& rubric, const Json& evidence,
                          const Comments& comments);

/// The marks in a filled-in sheet. Criteria without points are skipped. A reason is kept letter by letter:
/// `#`, `:` and `{{…}}` mean nothing in it.
/// @error not YAML; an unknown key; points that are not a number; an unknown comment (the hint names the
///        nearest). The position is file:line.
Result<std::vector<Mark>> read_sheet(const std::string& text, const std::string& file,
                                     const std::string& submission, const std::string& grader,
                                     const Comments& comments);

/// Reads a CSV table of marks with the columns name, criterion, points and reason, and optionally member and
/// grader. Cells are separated by commas, semicolons or tabs, points have a decimal point or a decimal comma,
/// and rows without points are skipped.
/// @error a missing column; points that are not a number; no reason; an unknown comment. The position is
///        file:line.
Result<std::vector<Mark>> read_marks(const std::string& text, const std::string& file,
                                     const std::string& grader, const Comments& comments);

/// A CSV table (RFC 4180) with one row per person. Cells that look like formulas are defused.
std::string gradebook_csv(const std::vector<GradebookRow>& rows, const Rubric& rubric);
Json gradebook_json(const std::vector<GradebookRow>& rows, const Rubric& rubric);

}  // namespace capstone
