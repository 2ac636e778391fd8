#include "harness/workflows/class_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/ledger.h"
#include "templates/progress_page.h"

namespace capstone::workflows {
namespace {

constexpr std::size_t kMaxCheckIn = 1u << 20;  // [B]

// Before the deadline there is no cohort yet.
Result<std::vector<HandedIn>> handed_in(const Workspace& workspace, const std::string& folder) {
  std::vector<HandedIn> all;
  std::error_code code;
  if (!fs::exists(workspace.cwd / folder / "gradebook.sqlite", code)) return all;
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(workspace, folder));
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  for (const GradebookRow& row : rows) {
    if (all.empty() || all.back().submission != row.submission) {
      all.push_back({row.submission, {}, {}});
      const fs::path project = cohort.project_of(row.submission);
      if (auto lines = project.empty() ? Result<std::vector<std::string>>()
                                       : line_digests(project / ".capstone" / "ledger.jsonl"))
        all.back().lines.insert(lines->begin(), lines->end());
    }
    all.back().members.push_back(row.person);
  }
  return all;
}

}  // namespace

Result<std::vector<CheckIn>> read_checkins(const Workspace& workspace, const std::vector<std::string>& places,
                                           const ProgressSink& progress) {
  std::vector<CheckIn> checkins;
  for (const std::string& place : places) {
    const fs::path path = workspace.cwd / place;
    std::error_code code;
    std::vector<fs::path> files;
    const bool folder = fs::is_directory(path, code);
    if (!folder) files.push_back(path);
    for (fs::recursive_directory_iterator walk(path, fs::directory_options::skip_permission_denied, code),
         end;
         folder && !code && walk != end; walk.increment(code))
      if (walk->path().extension() == ".json" && fs::is_regular_file(walk->symlink_status()))
        files.push_back(walk->path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      auto text = read_file(file, kMaxCheckIn);
      auto checkin = text ? parse_checkin(*text, file.string()) : Result<CheckIn>(fail(text.error()));
      if (!checkin && !folder) return fail(checkin.error());
      if (checkin)
        checkins.push_back(std::move(*checkin));
      else
        report_note(progress, fmt::format("skipped: {} ({})", to_utf8(file.string()), checkin.error().what));
    }
  }
  if (checkins.empty())
    return fail("no check-ins there", join(places, ", "), "students make them with `capstone checkin`");
  return checkins;
}

Result<std::vector<ProgressRow>> class_progress(const ClassProgressRequest& request,
                                                const Workspace& workspace, const ProgressSink& progress) {
  CAPSTONE_TRY(auto checkins, read_checkins(workspace, request.checkins, progress));
  std::vector<RosterRow> people;
  if (!request.roster.empty()) {
    CAPSTONE_TRY(people, read_roster(workspace.cwd / request.roster));
  }
  CAPSTONE_TRY(auto submissions, handed_in(workspace, request.cohort));
  CAPSTONE_TRY(const Instant now, parse_instant(utc_now()));
  return progress_of(std::move(checkins), people, submissions, now);
}

Result<fs::path> write_progress_page(const std::vector<ProgressRow>& rows, const std::string& cohort,
                                     const Workspace& workspace) {
  std::error_code code;
  const fs::path folder = workspace.cwd / cohort;
  const fs::path& place = fs::is_directory(folder, code) ? folder : workspace.cwd;
  const fs::path out = (place / "progress.html").lexically_normal();
  CAPSTONE_TRY(std::string page, progress_page(rows, utc_now(), workspace.resources.templates()));
  CAPSTONE_CHECK(write_file_atomic(out, page));
  return out;
}

}  // namespace capstone::workflows
