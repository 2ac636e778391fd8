#include "harness/workflows/publish.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/roster.h"
#include "templates/cohort_pages.h"

namespace capstone::workflows {
namespace {

bool has_marks(const GradebookRow& row) {
  return std::any_of(row.marks.begin(), row.marks.end(), [](const auto& mark) { return mark.has_value(); });
}

PublicationItem item_of(const GradebookRow& row, const Rubric& rubric, bool incomplete) {
  PublicationItem item{row, !row.published, false, {}};
  std::vector<std::string> unmarked, earlier;
  for (std::size_t i = 0; i < row.marks.size(); ++i) {
    if (!row.marks[i])
      unmarked.push_back(rubric.criteria[i].id);
    else if (row.marks[i]->earlier_version)
      earlier.push_back(rubric.criteria[i].id);
  }
  if (!unmarked.empty()) item.warnings.push_back("not marked: " + join(unmarked, ", "));
  if (!earlier.empty()) item.warnings.push_back("marks for an earlier version: " + join(earlier, ", "));
  item.held_back = !item.warnings.empty() && !incomplete;
  if (row.state == name_of(GradingState::kNeedsMentor))
    item.warnings.push_back("a person has to look at it first: " + row.why);
  return item;
}

// Whether the request is about this row, which has something to publish.
bool is_asked_for(const GradebookRow& row, const PublicationRequest& request) {
  const auto& names = request.names;
  return has_marks(row) &&
         (names.empty() || std::find(names.begin(), names.end(), row.submission) != names.end());
}

bool same_marks(const GradebookRow& a, const GradebookRow& b) {
  return std::equal(
      a.marks.begin(), a.marks.end(), b.marks.begin(), b.marks.end(), [](const auto& x, const auto& y) {
        return x.has_value() == y.has_value() && (!x || (x->points == y->points && x->reason == y->reason));
      });
}

// The files of one submission's people. What an earlier publication wrote there is replaced.
Result<void> write_feedback(const Workspace& workspace, const OpenCohort& cohort,
                            const std::vector<GradebookRow>& people, std::vector<fs::path>& files) {
  const fs::path folder = cohort.folder_of(people.front().submission) / "feedback";
  CAPSTONE_CHECK(make_folders(folder));
  std::set<fs::path> old;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (entry.path().filename().string().starts_with("marks")) old.insert(entry.path());
  const bool alike = std::all_of(people.begin(), people.end(),
                                 [&](const GradebookRow& row) { return same_marks(row, people.front()); });
  for (const GradebookRow& person : people) {
    GradebookRow row = person;
    if (alike && people.size() > 1) {
      std::vector<std::string> names;
      for (const GradebookRow& each : people) names.push_back(each.person.name);
      row.person = {join(names, ", "), {}, {}};
    }
    const std::string& key = person.person.id.empty() ? person.person.name : person.person.id;
    const fs::path base = folder / (alike ? "marks" : "marks-" + file_name_of(key));
    CAPSTONE_TRY(const std::string page, marks_page(row, cohort.rubric, workspace.resources.templates()));
    for (const auto& [ending, text] :
         {std::pair<const char*, std::string>{".md", marks_text(row, cohort.rubric, true)},
          {".html", page}}) {
      fs::path file = base;
      file += ending;
      CAPSTONE_CHECK(write_file_atomic(file, text));
      old.erase(file);
      files.push_back(file);
    }
    if (alike) break;
  }
  for (const fs::path& file : old) fs::remove(file, code);
  return {};
}

}  // namespace

Result<std::vector<PublicationItem>> plan_publication(const OpenCohort& cohort,
                                                      const PublicationRequest& request) {
  for (const std::string& name : request.names) CAPSTONE_CHECK(cohort.book.require(name));
  CAPSTONE_TRY(const auto rows, cohort.book.rows(cohort.rubric));
  std::vector<PublicationItem> items;
  for (const GradebookRow& row : rows)
    if (is_asked_for(row, request)) items.push_back(item_of(row, cohort.rubric, request.incomplete));
  return items;
}

Result<Publication> publish_marks(const Workspace& workspace, OpenCohort& cohort,
                                  const PublicationRequest& request, const std::string& by) {
  Publication done;
  CAPSTONE_TRY(done.items, plan_publication(cohort, request));
  std::set<std::string> submissions;
  const auto chosen = [&](const GradebookRow& row) {
    return is_asked_for(row, request) && !item_of(row, cohort.rubric, request.incomplete).held_back;
  };
  if (std::none_of(done.items.begin(), done.items.end(), [](const auto& item) { return !item.held_back; }))
    return fail(done.items.empty() ? "there are no marks to publish"
                                   : "nothing was published: no one is marked completely for this version",
                cohort.folder.string(),
                done.items.empty() ? "capstone mark --next"
                                   : "mark the rest; or --incomplete publishes what is there");
  CAPSTONE_TRY(done.people, cohort.book.publish(cohort.rubric, by, chosen));
  CAPSTONE_TRY(const auto seen, cohort.book.published_rows(cohort.rubric));
  for (const PublicationItem& item : done.items)
    if (!item.held_back) submissions.insert(item.row.submission);
  for (const std::string& submission : submissions) {
    std::vector<GradebookRow> people;
    for (const GradebookRow& row : seen)
      if (row.submission == submission && has_marks(row)) people.push_back(row);
    if (!people.empty()) CAPSTONE_CHECK(write_feedback(workspace, cohort, people, done.files));
  }
  return done;
}

Result<std::vector<std::string>> choose_submission(OpenCohort& cohort, const std::string& name,
                                                   const std::string& archive, const std::string& reason,
                                                   const std::string& grader) {
  CAPSTONE_CHECK(cohort.book.require(name));
  CAPSTONE_TRY(const auto in_force, cohort.book.rulings());
  std::vector<Ruling> rulings;
  if (of_kind(in_force, Ruling::Kind::kDropped).contains(name))
    rulings.push_back({Ruling::Kind::kRestored, name, {}, reason, grader, {}, {}});
  if (!archive.empty()) rulings.push_back({Ruling::Kind::kArchive, name, archive, reason, grader, {}, {}});
  CAPSTONE_CHECK(cohort.book.rule(rulings));
  CAPSTONE_TRY(const auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(const auto summaries, cohort.book.summaries());
  std::vector<RosterRow> people;
  for (const GradebookRow& row : rows)
    if (row.submission == name)
      people.push_back({row.person.name, row.person.id, row.person.email, 0, {}, {}});
  std::map<std::string, Claimant> others;
  for (const GradebookRow& row : rows)
    if (row.submission != name) {
      Claimant& other = others[row.submission];
      other.submission = row.submission;
      other.members.push_back(row.person);
    }
  std::vector<Claimant> claimants;
  for (auto& [submission, claimant] : others) claimants.push_back(std::move(claimant));
  std::set<std::string> same;
  for (const auto& matched : match_roster(people, claimants).submissions)
    same.insert(matched.begin(), matched.end());
  if (same.empty() && rulings.empty())
    return fail("there is nothing to choose: no one of it has another submission", name,
                "--archive FILE chooses one of several archives in its folder");
  std::vector<Ruling> drops;
  for (const std::string& other : same)
    drops.push_back({Ruling::Kind::kDropped, other, {}, name + " counts instead: " + reason, grader, {}, {}});
  CAPSTONE_CHECK(cohort.book.rule(drops));
  return std::vector<std::string>(same.begin(), same.end());
}

}  // namespace capstone::workflows
