#pragma once
// The pages of the desk. Every value that a person wrote is escaped by the template. Private to the desk.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/gradebook/marking.h"
#include "harness/workflows/divide_marking.h"
#include "templates/page.h"

namespace capstone::desk {

/// Who is looking.
struct Viewer {
  Grader grader;
  std::string form_token;
  bool owner() const { return grader.role == GraderRole::kOwner; }
};

/// A message at the top of a page.
struct Notice {
  std::string text;
  bool bad = false;
};

/// The class of pages in the left half: they have no script.
inline constexpr const char* kView = "view";

/// The frame around each page. @param viewer  null: not logged in. @param body  HTML that this room made
Result<std::string> page(const PageTemplates& templates, const std::string& title, const Viewer* viewer,
                         const std::vector<Notice>& notices, const std::string& body,
                         const std::string& body_class = {});

Result<std::string> login_body(const PageTemplates& templates);
Result<std::string> student_login_body(const PageTemplates& templates);
/// @param shown  HTML that this room made. @param verdict  whether there is a verdict.json to take
Result<std::string> student_body(const PageTemplates& templates, const std::string& form_token,
                                 const std::string& shown, bool verdict);

struct ListRow {
  std::string code, shown, problem, state, assigned, holder, marked, total;
  bool waits = false;
};
Result<std::string> list_body(const PageTemplates& templates, const Viewer& viewer,
                              const std::vector<ListRow>& rows, const std::vector<SecondMarking>& seconds);

Result<std::string> items_body(const PageTemplates& templates, const Viewer& viewer, const Rubric& rubric,
                               const std::vector<MarkItem>& items);

/// One person who has marks, with names: only the owner sees it.
struct PublishRow {
  std::string code, submission, person, total;
  std::string warnings;  ///< "not marked: depth"
  bool published = false, held_back = false;
  bool first = false;  ///< of its submission: publishing is chosen by submission
};
Result<std::string> publish_body(const PageTemplates& templates, const Viewer& viewer,
                                 const std::vector<PublishRow>& rows);

/// One sheet as a grader sees it.
struct SheetView {
  std::string code, base, shown, problem, state, why, late;  ///< base: its address
  bool second = false;                                       ///< for second marks
  GradebookRow row;
  const Rubric* rubric = nullptr;
  Json evidence;  ///< score_sheet.json for mentors, without names if they are hidden
  std::vector<MarkItem> items;
  std::map<std::string, Draft> drafts;
  std::optional<SheetClaim> held;  ///< by another grader
};
/// What a grader has seen of a criterion's present mark; a form sends it back.
std::string seen_text(const std::optional<Mark>& mark);
/// What stands in the fields of a criterion: the draft, else the present mark, else nothing.
Draft draft_shown(const std::map<std::string, Draft>& drafts, const std::string& criterion,
                  const std::optional<Mark>& mark);
Result<std::string> sheet_body(const PageTemplates& templates, const Viewer& viewer, const SheetView& sheet);

}  // namespace capstone::desk
