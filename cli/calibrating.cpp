#include <fmt/format.h>

#include <algorithm>

#include "cli/gradebook_tasks.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/blind.h"
#include "harness/course/gradebook/agreement.h"

namespace capstone::cli {
namespace {

std::string folder_name(const std::string& grader) {
  std::string name;
  for (char c : grader) name += std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80 ? c : '-';
  return name.empty() ? "grader" : name;
}

}  // namespace

Result<ExitCode> assign_blind_copies(const Context& context, OpenCohort& cohort, int count, const std::string& grader, const std::string& out) {
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(Comments comments, cohort.comments());
  CAPSTONE_TRY(auto summaries, cohort.book.summaries());
  CAPSTONE_TRY(GraderAgreement agreement, GraderAgreement::open(cohort.folder));
  CAPSTONE_TRY(auto copies, agreement.assign(count, grader));
  const fs::path folder = out.empty() ? cohort.folder / "blind" / folder_name(grader) : context.cwd / out;
  for (const BlindCopy& copy : copies) {
    std::vector<Person> people;
    const GradebookRow* one = nullptr;
    for (const GradebookRow& row : rows)
      if (row.submission == copy.submission) {
        people.push_back(row.person);
        one = &row;
      }
    if (!one) continue;   // every submission has a member
    std::vector<std::string> also{copy.submission};
    if (auto summary = summaries.find(copy.submission); summary != summaries.end()) also.insert(also.end(), {summary->second.origin.person, summary->second.origin.id, summary->second.origin.email});
    CAPSTONE_CHECK(write_blind_copy(folder / copy.code, copy.code, cohort.project_of(copy.submission), *one, cohort.rubric, cohort.evidence_of(copy.submission), comments, NameMask(people, also)));
    context.terminal.out((folder / copy.code / "marks.yaml").string());
  }
  context.terminal.out(fmt::format("{} blind {} for {}{}", copies.size(), copies.size() == 1 ? "copy" : "copies", grader,
                                   copies.size() < static_cast<std::size_t>(count) ? ": there is no more that they have neither marked nor been given" : ""));
  if (!copies.empty()) context.terminal.out(fmt::format("next: fill in each marks.yaml; then: capstone gradebook merge {}", folder.lexically_proximate(context.cwd).string()));
  return ExitCode::kDone;
}

Result<ExitCode> merge_blind_copies(const Context& context, OpenCohort& cohort, const std::string& folder) {
  CAPSTONE_TRY(Comments comments, cohort.comments());
  CAPSTONE_TRY(GraderAgreement agreement, GraderAgreement::open(cohort.folder));
  std::vector<Mark> marks;
  std::vector<fs::path> sheets;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(context.cwd / folder, code))
    if (fs::exists(entry.path() / "marks.yaml", code)) sheets.push_back(entry.path() / "marks.yaml");
  std::sort(sheets.begin(), sheets.end());
  if (sheets.empty()) return fail("no blind copies here", (context.cwd / folder).string(), "name the folder that holds them: it was printed by `gradebook assign`");
  for (const fs::path& sheet : sheets) {
    CAPSTONE_TRY(auto whose, agreement.copy_of(sheet.parent_path().filename().string()));
    CAPSTONE_TRY(std::string text, read_file(sheet, 16u << 20));
    CAPSTONE_TRY(auto given, read_sheet(text, sheet.string(), whose.first, whose.second, comments));
    if (given.empty()) context.terminal.say(sheet.parent_path().filename().string() + ": not marked yet");
    marks.insert(marks.end(), given.begin(), given.end());
  }
  CAPSTONE_TRY(int added, agreement.merge(cohort.rubric, marks));
  context.terminal.out(fmt::format("{} second marks added; the first ones stand", added));
  return show_agreement(context, cohort);
}

Result<ExitCode> show_agreement(const Context& context, const OpenCohort& cohort) {
  CAPSTONE_TRY(GraderAgreement agreement, GraderAgreement::open(cohort.folder));
  CAPSTONE_TRY(auto pairs, agreement.pairs());
  const AgreementReport report = agreement_of(pairs, cohort.rubric);
  const Terminal& t = context.terminal;
  if (pairs.empty()) {
    t.out("nothing was marked by two: capstone gradebook assign --double 5 --grader NAME");
    return ExitCode::kDone;
  }
  Table table({"criterion", "pairs", "mean difference", "mean distance", "weighted kappa"}, {false, true, true, true, true});
  for (const CriterionAgreement& a : report.criteria)
    table.row({a.criterion, std::to_string(a.pairs), a.pairs ? fmt::format("{:+.1f}", a.mean_difference) : "-", a.pairs ? fmt::format("{:.1f}", a.mean_distance) : "-",
               a.kappa ? fmt::format("{:.2f}", *a.kappa) : "-"});
  t.out(table.text(t));
  if (!report.reconcile.empty()) t.out("in different levels, the farthest apart first:");
  for (const MarkPair& pair : report.reconcile)
    t.out(to_utf8(fmt::format("  {} {}: {:g} by {}, {:g} by {}", pair.submission, pair.criterion, pair.first, pair.first_grader, pair.second, pair.second_grader)));
  return ExitCode::kDone;
}

}  // namespace capstone::cli
