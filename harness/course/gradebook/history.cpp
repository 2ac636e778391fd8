// Grace, appeals and second judgements, and the complete history of a submission.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/database.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/gradebook.h"
#include "harness/course/gradebook/schema.h"

namespace capstone {

using detail::points_text;

namespace {

Result<void> require_words(const std::string& reason, const std::string& grader, const std::string& where) {
  if (trim(reason).empty())
    return fail("no reason is given", where, "add --reason TEXT: the history keeps it");
  if (trim(grader).empty())
    return fail("no grader is named", where, "add --grader NAME: the history says who decided");
  return {};
}

}  // namespace

Result<void> Gradebook::grant_grace(const std::string& submission, const std::optional<std::string>& member,
                                    double days, const std::string& reason, const std::string& grader) {
  CAPSTONE_CHECK(require(submission));
  if (member) CAPSTONE_CHECK(require_member(submission, *member));
  CAPSTONE_CHECK(require_words(reason, grader, submission));
  if (!(days >= 0 && days <= 366))
    return fail(fmt::format("{:g} days of grace are out of range", days), submission,
                "give 0 to 366 days; 0 revokes an earlier grant");
  CAPSTONE_TRY(
      Statement add,
      database_->prepare(
          "INSERT INTO grace (submission, member, days, reason, grader, time) VALUES (?,?,?,?,?,?)"));
  return add.bind(submission)
      .bind_optional(member)
      .bind(days)
      .bind(to_utf8(reason))
      .bind(to_utf8(grader))
      .bind(utc_now())
      .run();
}

Result<std::map<std::pair<std::string, std::string>, double>> Gradebook::all_grace() const {
  std::map<std::pair<std::string, std::string>, double> days;
  CAPSTONE_TRY(Statement granted,
               database_->prepare("SELECT submission, member, days FROM grace ORDER BY id"));
  for (;;) {
    CAPSTONE_TRY(bool row, granted.step());
    if (!row) return days;
    days[{granted.text(0), granted.text(1)}] = granted.number(2);
  }
}

Result<void> Gradebook::decide(const std::string& submission, const std::string& decision,
                               const std::string& reason, const std::string& grader) {
  CAPSTONE_CHECK(require(submission));
  CAPSTONE_CHECK(require_words(reason, grader, submission));
  CAPSTONE_TRY(Statement add,
               database_->prepare("INSERT INTO decision (submission, decision, reason, grader, time, digest) "
                                  "SELECT ?,?,?,?,?, digest FROM submission WHERE name=?"));
  return add.bind(submission)
      .bind(decision)
      .bind(to_utf8(reason))
      .bind(to_utf8(grader))
      .bind(utc_now())
      .bind(submission)
      .run();
}

Result<void> Gradebook::record_rejudgement(const SubmissionResult& result, const std::string& file) {
  CAPSTONE_CHECK(require(result.name));
  std::vector<std::string> verdicts;
  for (const Measurement& m : result.judged)
    verdicts.push_back(
        fmt::format("{} {}{}", m.candidate, label_of(m.gate_one),
                    m.gate_two == GateTwo::kNotJudged ? "" : fmt::format(", {}", label_of(m.gate_two))));
  if (!result.why.empty()) verdicts.push_back(result.why);
  CAPSTONE_TRY(Statement add,
               database_->prepare("INSERT INTO rejudgement (submission, digest, verdict, file, time) SELECT "
                                  "name, digest, ?,?,? FROM submission WHERE name=?"));
  return add.bind(to_utf8(join(verdicts, "; "))).bind(file).bind(result.finished).bind(result.name).run();
}

Result<std::vector<HistoryEntry>> Gradebook::history(const std::string& submission) const {
  CAPSTONE_CHECK(require(submission));
  std::vector<HistoryEntry> entries;
  // One entry for each row; the first column is its time, `text` describes the others.
  auto collect = [&](const char* query, auto text) -> Result<void> {
    CAPSTONE_TRY(Statement rows, database_->prepare(query));
    rows.bind(submission);
    for (;;) {
      CAPSTONE_TRY(bool more, rows.step());
      if (!more) return {};
      entries.push_back({rows.text(0), text(rows)});
    }
  };
  std::string present;
  CAPSTONE_CHECK(
      collect("SELECT a.time, a.state, a.fault, a.why, a.digest, s.digest FROM attempt a JOIN submission s "
              "ON s.name = a.submission WHERE a.submission=? ORDER BY a.id",
              [&present](const Statement& row) {
                present = row.text(5);
                return fmt::format("judged: {}{}{} (handed in: {})", row.text(1),
                                   row.text(2).empty() ? "" : " (" + row.text(2) + ")",
                                   row.text(3).empty() ? "" : ": " + row.text(3), row.text(4).substr(0, 12));
              }));
  CAPSTONE_CHECK(
      collect("SELECT time, criterion, points, grader, reason, member, digest FROM mark WHERE submission=? "
              "ORDER BY id",
              [&present](const Statement& row) {
                const std::string digest = row.text(6);
                return fmt::format(
                    "{} {} by {}{}: {}{}", row.text(1), points_text(row.number(2)), row.text(3),
                    row.is_null(5) ? "" : " for " + row.text(5), row.text(4),
                    digest == present ? "" : " (given for an earlier version, " + digest.substr(0, 12) + ")");
              }));
  CAPSTONE_CHECK(
      collect("SELECT p.time, p.publisher, x.person, sum(x.points) FROM published x JOIN publication p "
              "ON p.id = x.publication WHERE x.submission=? GROUP BY p.id, x.person ORDER BY p.id",
              [](const Statement& row) {
                return fmt::format("published by {}: {} sees {}", row.text(1), row.text(2),
                                   points_text(row.number(3)));
              }));
  CAPSTONE_CHECK(
      collect("SELECT time, criterion, points, grader, reason, counts FROM second_mark WHERE submission=? "
              "ORDER BY id",
              [](const Statement& row) {
                return fmt::format("second mark: {} {} by {}: {}{}", row.text(1), points_text(row.number(2)),
                                   row.text(3), row.text(4),
                                   row.integer(5) ? "" : " (does not count: another one was given before)");
              }));
  CAPSTONE_CHECK(
      collect("SELECT time, days, grader, reason, member FROM grace WHERE submission=? ORDER BY id",
              [](const Statement& row) {
                return fmt::format("{:g} days of grace{} by {}: {}", row.number(1),
                                   row.is_null(4) ? "" : " for " + row.text(4), row.text(2), row.text(3));
              }));
  CAPSTONE_CHECK(collect("SELECT time, verdict, file, digest FROM rejudgement WHERE submission=? ORDER BY id",
                         [](const Statement& row) {
                           return fmt::format("judged again on appeal: {} ({}; handed in: {})", row.text(1),
                                              row.text(2), row.text(3).substr(0, 12));
                         }));
  CAPSTONE_CHECK(collect(
      "SELECT time, grader, author FROM assignment WHERE submission=? ORDER BY id",
      [](const Statement& row) { return fmt::format("assigned to {} by {}", row.text(1), row.text(2)); }));
  CAPSTONE_CHECK(
      collect("SELECT time, file, line, text, grader FROM line_comment WHERE submission=? ORDER BY id",
              [](const Statement& row) {
                return fmt::format("{}:{} by {}: {}", row.text(1), row.integer(2), row.text(4),
                                   row.text(3).empty() ? "comment removed" : row.text(3));
              }));
  CAPSTONE_CHECK(collect("SELECT time, decision, grader, reason FROM decision WHERE submission=? ORDER BY id",
                         [](const Statement& row) {
                           return fmt::format("appeal {} by {}: {}", row.text(1), row.text(2), row.text(3));
                         }));
  CAPSTONE_CHECK(collect(
      "SELECT time, kind, value, grader, reason FROM ruling WHERE submission=? ORDER BY id",
      [](const Statement& row) {
        return fmt::format("{}{} by {}: {}", row.text(1), row.text(2).empty() ? "" : " (" + row.text(2) + ")",
                           row.text(3), row.text(4));
      }));
  std::stable_sort(entries.begin(), entries.end(),
                   [](const HistoryEntry& a, const HistoryEntry& b) { return a.time < b.time; });
  return entries;
}

}  // namespace capstone
