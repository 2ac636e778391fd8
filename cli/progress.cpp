// `gradebook --progress`: who needs help, from what students checked in.
#include "harness/course/gradebook/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/gradebook_tasks.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/ledger.h"
#include "templates/progress_page.h"

namespace capstone::cli {
namespace {

constexpr std::size_t kMaxCheckIn = 1u << 20;   // [B]

// A file that was named has to be a check-in; of a folder those are taken that are, and the others are told.
Result<std::vector<CheckIn>> read_checkins(const Context& context, const std::vector<std::string>& places) {
  std::vector<CheckIn> checkins;
  for (const std::string& place : places) {
    const fs::path path = context.cwd / place;
    std::error_code code;
    std::vector<fs::path> files;
    const bool folder = fs::is_directory(path, code);
    if (!folder) files.push_back(path);
    for (fs::recursive_directory_iterator walk(path, fs::directory_options::skip_permission_denied, code), end; folder && !code && walk != end; walk.increment(code))
      if (walk->path().extension() == ".json" && fs::is_regular_file(walk->symlink_status())) files.push_back(walk->path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      auto text = read_file(file, kMaxCheckIn);
      auto checkin = text ? parse_checkin(*text, file.string()) : Result<CheckIn>(fail(text.error()));
      if (!checkin && !folder) return fail(checkin.error());
      if (checkin) checkins.push_back(std::move(*checkin));
      else context.terminal.say(fmt::format("left out: {} ({})", to_utf8(file.string()), checkin.error().what));
    }
  }
  if (checkins.empty()) return fail("no check-ins there", join(places, ", "), "they are the files that students' `capstone checkin` makes");
  return checkins;
}

// Before the deadline there is no cohort yet.
Result<std::vector<HandedIn>> handed_in(const Context& context, const std::string& folder) {
  std::vector<HandedIn> all;
  std::error_code code;
  if (!fs::exists(context.cwd / folder / "gradebook.sqlite", code)) return all;
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(context, folder));
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  for (const GradebookRow& row : rows) {
    if (all.empty() || all.back().submission != row.submission) {
      all.push_back({row.submission, {}, {}});
      const fs::path project = cohort.project_of(row.submission);
      if (auto lines = project.empty() ? Result<std::vector<std::string>>() : line_digests(project / ".capstone" / "ledger.jsonl")) all.back().lines.insert(lines->begin(), lines->end());
    }
    all.back().members.push_back(row.person);
  }
  return all;
}

std::string age_of(const ProgressRow& row, Instant now) {
  auto then = row.last ? parse_instant(row.last->time) : Result<Instant>(fail("never"));
  return then ? fmt::format("{:.0f} d ago", std::max(0.0, static_cast<double>(now - *then) / kSecondsOfADay)) : "never";
}

}  // namespace

Result<ExitCode> show_progress(const Context& context, const std::string& cohort, const std::vector<std::string>& places, const std::string& roster, const std::string& format) {
  CAPSTONE_TRY(auto checkins, read_checkins(context, places));
  std::vector<RosterRow> people;
  if (!roster.empty()) {
    CAPSTONE_TRY(people, read_roster(context.cwd / roster));
  }
  CAPSTONE_TRY(auto submissions, handed_in(context, cohort));
  CAPSTONE_TRY(const Instant now, parse_instant(utc_now()));
  const auto rows = progress_of(std::move(checkins), people, submissions, now);
  const Terminal& t = context.terminal;
  if (format == "json") {
    t.out(progress_json(rows).dump(2));
    return ExitCode::kDone;
  }
  if (format == "csv") {
    std::string text = progress_csv(rows);
    t.out(text.substr(0, text.size() - 1));   // out() ends the last line itself
    return ExitCode::kDone;
  }
  if (format == "html") {
    std::error_code code;
    const fs::path folder = context.cwd / cohort;
    const fs::path out = ((fs::is_directory(folder, code) ? folder : context.cwd) / "progress.html").lexically_normal();
    CAPSTONE_TRY(std::string page, progress_page(rows, utc_now(), context.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(out, page));
    t.out(out.string());
    return ExitCode::kDone;
  }
  Table table({"person", "problem", "checked in", "versions", "model", "last", "handed in"}, {false, false, false, true, true, false, false});
  for (const ProgressRow& row : rows) {
    const CheckIn none, &c = row.last ? *row.last : none;
    table.row({to_utf8(row.person), row.problem, age_of(row, now), std::to_string(c.versions), std::to_string(c.attempts), c.last_verdict, row.handed_in.empty() ? "-" : row.handed_in});
  }
  t.out(table.text(t));
  const auto waiting = std::count_if(rows.begin(), rows.end(), [](const ProgressRow& row) { return !row.needs.empty(); });
  t.out(waiting ? fmt::format("{} of {} need a word:", waiting, rows.size()) : "nobody asks for help");
  for (const ProgressRow& row : rows)
    for (const std::string& need : row.needs) t.out(fmt::format("  {}: {}", to_utf8(row.person), replace_all(to_utf8(need), "\n", " ")));
  return ExitCode::kDone;
}

}  // namespace capstone::cli
