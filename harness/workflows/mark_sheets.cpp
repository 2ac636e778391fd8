#include "harness/workflows/mark_sheets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/find_submission.h"
#include "harness/course/gradebook/marking.h"

namespace capstone::workflows {
namespace {

constexpr std::string_view kErrorLine = "#! ";
constexpr std::size_t kMaxSheet = 16u << 20;  // [B]

// Keeps a claim alive while an editor blocks the caller. With a connection of its own: SQLite's are not
// shared between threads.
class Heartbeat {
 public:
  Heartbeat(fs::path cohort, std::string submission, std::string grader)
      : thread_([this, cohort = std::move(cohort), submission = std::move(submission),
                 grader = std::move(grader)](const std::stop_token& stop) {
          constexpr auto kPeriod = std::chrono::seconds(kClaimSeconds / 4);
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, stop, kPeriod, [&] { return stop.stop_requested(); })) {
            auto book = Gradebook::open(cohort);
            // Not kept: the marks are still taken in, and what they replace is told.
            if (book) (void)Marking(*book).keep_claim(submission, grader);
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // the last member: it uses the others
};

std::string shown(const SheetClaim& claim) {
  return fmt::format("{} has this sheet open since {} UTC", claim.grader,
                     claim.since.size() >= 16 ? claim.since.substr(11, 5) : claim.since);
}

// "sheet.yaml:7" with the line moved down, as the remark above it moves it.
std::string moved(const std::string& where, int lines) {
  const std::size_t at = where.rfind(':');
  int line = 0;
  if (at == std::string::npos) return where;
  auto [end, code] = std::from_chars(where.data() + at + 1, where.data() + where.size(), line);
  if (code != std::errc() || end != where.data() + where.size()) return where;
  return fmt::format("line {}", line + lines);
}

std::string without_errors(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  std::erase_if(lines, [](const std::string& line) { return line.starts_with(kErrorLine); });
  return join(lines, "\n");
}

std::string with_error(const std::string& text, const Error& error) {
  auto one_line = [](const std::string& words) { return replace_all(words, "\n", " "); };
  return fmt::format("{}{} ({})\n{}{}\n{}", kErrorLine, one_line(error.what), one_line(moved(error.where, 2)),
                     kErrorLine, one_line(error.hint.empty() ? "correct it and save" : error.hint), text);
}

class Sheet {
 public:
  Sheet(OpenCohort& cohort, const MarkingRound& round, const GradebookRow& row, const Comments& comments)
      : cohort_(cohort),
        round_(round),
        row_(row),
        comments_(comments),
        path_(cohort.folder / "marking" / file_name_of(round.grader) / (row.submission + ".yaml")) {}

  /// @error another command of the same grader has it open.
  Result<void> open() {
    CAPSTONE_CHECK(make_folders(path_.parent_path()));
    CAPSTONE_TRY(lock_, FileLock::acquire(path_.parent_path() / ("." + row_.submission + ".lock"), false));
    std::error_code code;
    // A sheet that was left by a version in which all graders shared one file.
    if (const fs::path shared = cohort_.folder / "marking" / path_.filename(); fs::exists(shared, code))
      fs::rename(shared, path_, code);
    if (fs::exists(path_, code)) return {};
    return write_file_atomic(
        path_, marking_sheet(row_, cohort_.rubric, cohort_.evidence_of(row_.submission), comments_));
  }

  /// Edits until the marks are in the gradebook. @return how many; 0: no new mark.
  Result<std::size_t> edit(const ProgressSink& progress) {
    for (std::string before;;) {
      CAPSTONE_CHECK(round_.edit(path_));
      CAPSTONE_TRY(const std::string typed, read_file(path_, kMaxSheet));
      const std::string text = without_errors(typed);
      auto taken = take_in(text, progress);
      if (taken && *taken == 0 && text != typed) CAPSTONE_CHECK(write_file_atomic(path_, text));
      if (taken) return taken;
      Error error = taken.error();
      if (typed == before) {  // opened again, and nothing was changed: the grader wants to leave
        CAPSTONE_CHECK(write_file_atomic(path_, text));
        error.hint += error.hint.empty() ? "" : "; ";
        error.hint += "the sheet is kept: run the command again";
        return fail(std::move(error));
      }
      before = with_error(text, error);
      CAPSTONE_CHECK(write_file_atomic(path_, before));
      report_note(progress, fmt::format("{}: {}; the editor opens again", row_.submission, error.what));
    }
  }

  void discard() const {
    std::error_code code;
    fs::remove(path_, code);
  }

 private:
  Result<std::size_t> take_in(const std::string& text, const ProgressSink& progress) {
    CAPSTONE_TRY(auto marks, read_sheet(text, path_.string(), row_.submission, round_.grader, comments_));
    // Marks that did not change are not given again.
    std::erase_if(marks, [&](const Mark& mark) {
      return std::any_of(row_.marks.begin(), row_.marks.end(), [&](const auto& old) {
        return old && !old->earlier_version && old->criterion == mark.criterion &&
               old->points == mark.points && old->reason == mark.reason;
      });
    });
    if (marks.empty()) return 0;
    CAPSTONE_TRY(const auto notes, give_marks(cohort_, marks));
    for (const std::string& note : notes) report_note(progress, note);
    return marks.size();
  }

  OpenCohort& cohort_;
  const MarkingRound& round_;
  const GradebookRow& row_;
  const Comments& comments_;
  fs::path path_;
  std::optional<FileLock> lock_;
};

// First marks are hidden from a grader until their own second marks are given; what replaces a first mark
// tells it, too.
Result<void> expect_no_second_marking(const std::vector<SecondMarking>& seconds, const std::string& name,
                                      const std::string& grader, const std::string& where) {
  for (const SecondMarking& each : seconds)
    if (each.submission == name && each.waits())
      return fail(
          fmt::format("{} waits for second marks of {}, who must not see the first ones", name, grader),
          where,
          "mark it in the browser: capstone serve, then \"Next second marking\"; or fill in the blind "
          "copy of `gradebook assign`, then capstone gradebook merge FOLDER");
  return {};
}

// The submission to mark next, claimed; empty: none.
Result<std::optional<std::string>> claimed(OpenCohort& cohort, const MarkingRound& round,
                                           const std::vector<std::string>& skip) {
  Marking marking(cohort.book);
  if (round.only.empty()) return marking.claim_next(cohort.rubric, round.grader, skip);
  CAPSTONE_TRY(const auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(const std::string name, find_submission(rows, round.only));
  CAPSTONE_TRY(const auto seconds, marking.second_markings(cohort.rubric, round.grader));
  CAPSTONE_CHECK(expect_no_second_marking(seconds, name, round.grader, round.only));
  for (const GradebookRow& row : rows) {
    if (row.submission != name || !waits_for_marks(row)) continue;
    CAPSTONE_TRY(const auto held, marking.claim(name, round.grader, round.take));
    if (held)
      return fail(shown(*held), name,
                  fmt::format("ask {}, or add --take; a claim ends {} s after its last sign of life",
                              held->grader, kClaimSeconds));
    return name;
  }
  return std::nullopt;
}

Result<GradebookRow> row_of(OpenCohort& cohort, const std::string& name) {
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric, name));
  if (!rows.empty()) return std::move(rows.front());
  return fail("the submission has gone", name, "run the command again", ExitCode::kInternal);
}

}  // namespace

Result<std::vector<std::string>> give_marks(OpenCohort& cohort, std::vector<Mark> marks) {
  CAPSTONE_TRY(const auto rows, cohort.book.rows(cohort.rubric));
  const Marking marking(cohort.book);
  std::map<std::string, std::vector<SecondMarking>> seconds_of;  // by grader
  for (Mark& mark : marks) {
    CAPSTONE_TRY(mark.submission, find_submission(rows, mark.submission));
    auto [seconds, is_new] = seconds_of.try_emplace(mark.grader);
    if (is_new) {
      CAPSTONE_TRY(seconds->second, marking.second_markings(cohort.rubric, mark.grader));
    }
    CAPSTONE_CHECK(expect_no_second_marking(seconds->second, mark.submission, mark.grader,
                                            mark.where.empty() ? mark.criterion : mark.where));
  }
  CAPSTONE_TRY(const auto replaced, cohort.book.mark(cohort.rubric, marks));
  CAPSTONE_TRY(const auto claims, marking.claims());
  std::vector<std::string> notes;
  for (const Mark& old : replaced)
    notes.push_back(fmt::format("{}, {}: this replaces {}; both stay in the history", old.submission,
                                old.criterion, told(old)));
  for (const auto& [name, claim] : claims)
    if (std::any_of(marks.begin(), marks.end(), [&, &name = name, &claim = claim](const Mark& mark) {
          return mark.submission == name && mark.grader != claim.grader;
        }))
      notes.push_back(fmt::format("{}: {}", name, shown(claim)));
  return notes;
}

Result<RoundOutcome> mark_sheets(OpenCohort& cohort, const MarkingRound& round,
                                 const ProgressSink& progress) {
  CAPSTONE_TRY(const Comments comments, cohort.comments());
  Marking marking(cohort.book);
  std::vector<std::string> skip;
  for (RoundOutcome outcome;;) {
    CAPSTONE_TRY(const auto next, claimed(cohort, round, skip));
    if (!next) {
      CAPSTONE_TRY(const auto seconds, marking.second_markings(cohort.rubric, round.grader));
      outcome.second = std::count_if(seconds.begin(), seconds.end(), [](const auto& s) { return s.waits(); });
      return outcome;
    }
    CAPSTONE_TRY(const GradebookRow row, row_of(cohort, *next));
    Sheet sheet(cohort, round, row, comments);
    if (auto opened = sheet.open(); !opened) {
      if (!round.only.empty()) return fail(opened.error());
      skip.push_back(*next);  // another terminal of the same grader keeps the claim
      continue;
    }
    auto given = [&] {
      const Heartbeat beat(cohort.folder, *next, round.grader);
      return sheet.edit(progress);
    }();
    CAPSTONE_CHECK(marking.release(*next, round.grader));
    CAPSTONE_TRY(const std::size_t marks, std::move(given));
    if (marks == 0) {
      outcome.stopped_at = *next;
      return outcome;
    }
    sheet.discard();
    ++outcome.marked;
    report_note(progress, fmt::format("{}: {} marks", *next, marks));
  }
}

}  // namespace capstone::workflows
