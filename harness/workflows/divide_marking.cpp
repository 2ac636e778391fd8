#include "harness/workflows/divide_marking.h"

#include <cstdlib>
#include <set>

#include "harness/base/files.h"
#include "harness/base/random_id.h"

namespace capstone::workflows {
namespace {

// "tom=2" is a double share.
Result<GraderShare> share_in(const std::string& text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos) return GraderShare{text, 1};
  char* end = nullptr;
  const std::string number = text.substr(at + 1);
  const double share = std::strtod(number.c_str(), &end);
  if (number.empty() || *end) return fail("'" + text + "' has no share", {}, "write NAME, or NAME=2");
  return GraderShare{text.substr(0, at), share};
}

// "A=eva": eva marks section A.
Result<std::map<std::string, std::vector<GraderShare>>> by_section(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<GraderShare>> graders;
  for (const std::string& text : texts) {
    const std::size_t at = text.find('=');
    if (at == std::string::npos) return fail("'" + text + "' names no grader", {}, "write SECTION=GRADER");
    graders[text.substr(0, at)].push_back({text.substr(at + 1), 1});
  }
  return graders;
}

}  // namespace

Result<std::vector<Assignment>> divide_marking(const Workspace& workspace, OpenCohort& cohort,
                                               const DivideRequest& request) {
  Marking marking(cohort.book);
  std::string seed = request.seed;
  if (seed.empty()) {
    CAPSTONE_TRY(seed, random_id(32));
  }
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(const auto assigned, marking.assignments());
  if (!request.again)
    std::erase_if(rows, [&](const GradebookRow& row) { return assigned.contains(row.submission); });
  std::vector<Assignment> division;
  if (!request.sections.empty()) {
    CAPSTONE_TRY(const auto graders, by_section(request.sections));
    const fs::path file = workspace.cwd / request.roster;
    CAPSTONE_TRY(const std::string text, read_file(file, 64u << 20));
    CAPSTONE_TRY(const auto sections, sections_in(text, file.string(), rows));
    CAPSTONE_TRY(division, divide_by_section(sections, graders, seed));
  } else {
    std::vector<GraderShare> graders;
    for (const std::string& text : request.shares) {
      CAPSTONE_TRY(graders.emplace_back(), share_in(text));
    }
    std::set<std::string> names;
    for (const GradebookRow& row : rows) names.insert(row.submission);
    CAPSTONE_TRY(division, divide_by_share({names.begin(), names.end()}, graders, seed));
  }
  CAPSTONE_CHECK(marking.assign(division, request.by));
  return division;
}

Result<std::vector<GraderProgress>> marking_progress(
    OpenCohort& cohort, const std::function<bool(const std::string& submission)>& seen) {
  const auto is_seen = [&](const std::string& submission) { return !seen || seen(submission); };
  Marking marking(cohort.book);
  CAPSTONE_TRY(const auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(const auto graders, marking.graders());
  CAPSTONE_TRY(const auto assigned, marking.assignments());
  CAPSTONE_TRY(const auto claims, marking.claims());
  std::map<std::string, GraderProgress> all;
  for (const Grader& grader : graders) all[grader.name];
  std::map<std::string, std::set<std::string>> marked;  // submissions by grader
  std::set<std::string> waiting;
  for (const GradebookRow& row : rows) {
    if (!is_seen(row.submission)) continue;
    if (waits_for_marks(row)) waiting.insert(row.submission);
    for (const auto& mark : row.marks)
      if (mark && !mark->earlier_version) marked[mark->grader].insert(row.submission);
  }
  for (const auto& [submission, grader] : assigned) {
    if (!is_seen(submission)) continue;
    ++all[grader].assigned;
    all[grader].assigned_open += waiting.contains(submission);
  }
  for (const auto& [grader, submissions] : marked) all[grader].marked = static_cast<int>(submissions.size());
  for (const auto& [submission, claim] : claims)
    if (is_seen(submission)) all[claim.grader].open_sheet = submission;
  std::vector<GraderProgress> list;
  for (auto& [name, progress] : all) {
    progress.grader = name;
    list.push_back(progress);
  }
  return list;
}

}  // namespace capstone::workflows
