#pragma once
// The left half of a sheet: what was handed in, and what the machine found. Private to the desk.
#include <optional>
#include <string>
#include <vector>

#include "harness/course/gradebook/blind.h"
#include "harness/course/gradebook/marking.h"
#include "harness/course/result.h"
#include "harness/workflows/cohort.h"
#include "templates/page.h"

namespace capstone::desk {

/// A submission that is looked at. The folders are only read.
struct Looked {
  const workflows::Workspace* workspace = nullptr;
  std::string name, code;
  std::string base;  ///< the address of its sheet: "/sheet/CODE" or "/second/CODE"
  std::string digest;
  std::filesystem::path folder;    ///< COHORT/submissions/NAME
  std::filesystem::path project;   ///< empty: it could not be unpacked
  std::optional<NameMask> mask{};  ///< empty: names are shown
  bool second = false;             ///< for second marks: no comments
  std::string shown(std::string_view text) const { return mask ? mask->apply(text) : std::string(text); }
};

/// The rendered worklog: a whole page, without scripts. Kept in the submission's folder, by digest.
/// @error no project; the worklog cannot be read or rendered.
Result<std::string> worklog_html(const Looked& looked);

/// The files that can be read line by line: the worklog and the sources, sorted; relative to the project.
std::vector<std::string> files_of(const Looked& looked);

/// A file with its comments. @param open  this line has a form for a comment; 0: none
/// @error no such file; no text.
Result<std::string> source_body(const PageTemplates& templates, const Looked& looked, std::size_t file,
                                int open, const std::vector<LineComment>& comments, const std::string& grader,
                                const std::string& form_token);

/// The versions of the human kernel, each with the change to the one before.
Result<std::string> versions_body(const PageTemplates& templates, const Looked& looked);
/// The attempts of the model: prompt, reply, code.
Result<std::string> model_body(const PageTemplates& templates, const Looked& looked);
/// What was judged: verdicts, the first mismatch and the command that repeats it.
void add_judged(std::vector<Block>& blocks, const Looked& looked, const SubmissionResult& result);
/// The same, with findings, shared code. @param cohort  the folder with similarity.json
Result<std::string> machine_body(const PageTemplates& templates, const Looked& looked,
                                 const std::filesystem::path& cohort);

}  // namespace capstone::desk
