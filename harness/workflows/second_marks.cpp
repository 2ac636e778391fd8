#include "harness/workflows/second_marks.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/marking.h"
#include "templates/page.h"

namespace capstone::workflows {
NameMask mask_of(const std::string& submission, const std::vector<GradebookRow>& rows,
                 const std::map<std::string, ResultSummary>& summaries) {
  std::vector<Person> people;
  for (const GradebookRow& row : rows)
    if (row.submission == submission) people.push_back(row.person);
  std::vector<std::string> also{submission};
  for (const Person& person : people) also.push_back(escape_html(person.name));  // as it stands in a page
  if (auto summary = summaries.find(submission); summary != summaries.end()) {
    const Origin& origin = summary->second.origin;
    also.insert(also.end(), {origin.person, origin.id, origin.email});
  }
  return NameMask(people, also);
}

Result<BlindCopies> assign_blind_copies(const Workspace& workspace, OpenCohort& cohort, int count,
                                        const std::string& grader, const std::string& out) {
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(Comments comments, cohort.comments());
  CAPSTONE_TRY(auto summaries, cohort.book.summaries());
  // In the browser, a second marking is seen only by the grader whose name it has.
  CAPSTONE_TRY(const auto graders, Marking(cohort.book).graders());
  if (!graders.empty() &&
      std::none_of(graders.begin(), graders.end(), [&](const Grader& one) { return one.name == grader; }))
    return fail("no grader is called '" + grader + "'", {},
                "`capstone grader list` lists them; or capstone grader add NAME");
  CAPSTONE_TRY(GraderAgreement agreement, GraderAgreement::open(cohort.folder));
  CAPSTONE_TRY(auto copies, agreement.assign(count, grader));
  BlindCopies made;
  made.folder = out.empty() ? cohort.folder / "blind" / file_name_of(grader) : workspace.cwd / out;
  made.assigned = copies.size();
  for (const BlindCopy& copy : copies) {
    const GradebookRow* one = nullptr;
    for (const GradebookRow& row : rows)
      if (row.submission == copy.submission) one = &row;
    if (!one) continue;  // every submission has a member
    CAPSTONE_CHECK(write_blind_copy(made.folder / copy.code, copy.code, cohort.project_of(copy.submission),
                                    cohort.folder_of(copy.submission) / "worklog.md", *one, cohort.rubric,
                                    cohort.evidence_of(copy.submission), comments,
                                    mask_of(copy.submission, rows, summaries)));
    made.sheets.push_back(made.folder / copy.code / "marks.yaml");
  }
  return made;
}

Result<MergedMarks> merge_blind_copies(const Workspace& workspace, OpenCohort& cohort,
                                       const std::string& folder, const ProgressSink& progress) {
  CAPSTONE_TRY(Comments comments, cohort.comments());
  CAPSTONE_TRY(GraderAgreement agreement, GraderAgreement::open(cohort.folder));
  std::vector<fs::path> sheets;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(workspace.cwd / folder, code))
    if (fs::exists(entry.path() / "marks.yaml", code)) sheets.push_back(entry.path() / "marks.yaml");
  std::sort(sheets.begin(), sheets.end());
  if (sheets.empty())
    return fail("no blind copies here", (workspace.cwd / folder).string(),
                "name the folder that `gradebook assign` printed");
  std::vector<Mark> marks;
  std::map<std::pair<std::string, std::string>, std::string> codes;  // by (submission, grader)
  for (const fs::path& sheet : sheets) {
    CAPSTONE_TRY(auto whose, agreement.copy_of(sheet.parent_path().filename().string()));
    codes[whose] = sheet.parent_path().filename().string();
    CAPSTONE_TRY(std::string text, read_file(sheet, 16u << 20));
    CAPSTONE_TRY(auto given, read_sheet(text, sheet.string(), whose.first, whose.second, comments));
    if (given.empty()) report_note(progress, sheet.parent_path().filename().string() + ": not marked yet");
    marks.insert(marks.end(), given.begin(), given.end());
  }
  CAPSTONE_TRY(auto merged, agreement.merge(cohort.rubric, marks));
  for (const MergedMarks::Conflict& each : merged.conflicts)
    report_note(progress,
                fmt::format("{}, {}: {} gave {:g} ({}) before, which stays; {:g} ({}) stands in the history",
                            codes[{each.given.submission, each.given.grader}], each.given.criterion,
                            each.given.grader, each.given.points, each.given.reason, each.other.points,
                            to_utf8(each.other.reason)));
  return merged;
}

Result<SecondMarks> agreement_in(const OpenCohort& cohort) {
  CAPSTONE_TRY(GraderAgreement agreement, GraderAgreement::open(cohort.folder));
  CAPSTONE_TRY(auto pairs, agreement.pairs());
  return SecondMarks{pairs.size(), agreement_of(pairs, cohort.rubric)};
}

}  // namespace capstone::workflows
