#pragma once
// Marks on paper: the sheet that a mentor fills in, tables of marks, and the gradebook as a table.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// Texts that mentors use again: `@name` as a reason stands for the whole text.
using Comments = std::map<std::string, std::string>;

/// Reads a YAML mapping name → text. No file: no comments. @error not such a mapping: file:line.
Result<Comments> read_comments(const std::filesystem::path& file);

/// What a mark's reason says: `@name` stands for a comment. @error there is no such comment: at `where`, with the nearest name.
Result<std::string> reason_of(const std::string& text, const std::string& where, const Comments& comments);

/// The sheet for one submission: what the machine found and asks as comments, then a place for each mark, filled in as far as
/// marks are given for this version. YAML.
/// @param evidence  score_sheet.json of the submission, for mentors; null where there is none (a failed submission)
std::string marking_sheet(const GradebookRow& row, const Rubric& rubric, const Json& evidence, const Comments& comments);

/// The marks that a filled-in sheet gives: those whose points are not empty.
/// @error not YAML, an unknown key, points that are no number, a comment that does not exist: file:line, with the nearest.
Result<std::vector<Mark>> read_sheet(const std::string& text, const std::string& file, const std::string& submission, const std::string& grader,
                                     const Comments& comments);

/// A table of marks: columns name, criterion, points, reason, and member and grader if it has them.
/// @error file:line.
Result<std::vector<Mark>> read_marks(const std::string& text, const std::string& file, const std::string& grader, const Comments& comments);

/// One row a person, RFC 4180, safe in spreadsheets.
std::string gradebook_csv(const std::vector<GradebookRow>& rows, const Rubric& rubric);
Json gradebook_json(const std::vector<GradebookRow>& rows, const Rubric& rubric);

}  // namespace capstone
