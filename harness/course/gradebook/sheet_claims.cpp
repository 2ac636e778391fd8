// Which sheet is open at whose desk, and which submissions are whose.
#include <algorithm>
#include <tuple>

#include "harness/base/database.h"
#include "harness/base/random_id.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/marking.h"

namespace capstone {

bool waits_for_marks(const GradebookRow& row) {
  return std::any_of(row.marks.begin(), row.marks.end(),
                     [](const auto& mark) { return !mark || mark->earlier_version; });
}

Result<std::optional<SheetClaim>> Marking::claim_of(const std::string& submission) const {
  CAPSTONE_TRY(auto all, claims());
  auto found = all.find(submission);
  if (found == all.end()) return std::nullopt;
  return found->second;
}

Result<std::map<std::string, SheetClaim>> Marking::claims() const {
  CAPSTONE_TRY(Statement live,
               database_.prepare("SELECT submission, grader, since FROM claim WHERE beat >= ?"));
  live.bind(std::int64_t{clock_() - kClaimSeconds});
  std::map<std::string, SheetClaim> claims;
  for (;;) {
    CAPSTONE_TRY(bool row, live.step());
    if (!row) return claims;
    claims[live.text(0)] = {live.text(0), live.text(1), live.text(2)};
  }
}

Result<void> Marking::write_claim(const std::string& submission, const std::string& grader) {
  CAPSTONE_TRY(Statement write,
               database_.prepare("INSERT INTO claim VALUES (?,?,?,?) ON CONFLICT (submission) DO UPDATE SET "
                                 "since=CASE WHEN grader=excluded.grader THEN since ELSE excluded.since END, "
                                 "grader=excluded.grader, beat=excluded.beat"));
  const Instant now = clock_();
  return write.bind(submission).bind(grader).bind(utc_text(now)).bind(std::int64_t{now}).run();
}

Result<std::optional<SheetClaim>> Marking::claim(const std::string& submission, const std::string& grader,
                                                 bool take) {
  CAPSTONE_CHECK(book_.require(submission));
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  CAPSTONE_TRY(auto held, claim_of(submission));
  if (held && held->grader != grader && !take) return held;
  CAPSTONE_CHECK(write_claim(submission, grader));
  CAPSTONE_CHECK(transaction.commit());
  return std::nullopt;
}

Result<std::optional<std::string>> Marking::claim_next(const Rubric& rubric, const std::string& grader,
                                                       const std::vector<std::string>& skip) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  CAPSTONE_TRY(const auto rows, book_.rows(rubric));
  CAPSTONE_TRY(const auto held, claims());
  CAPSTONE_TRY(const auto assigned, assignments());
  CAPSTONE_TRY(const auto all, graders());
  CAPSTONE_TRY(const auto seconds, second_markings(rubric, grader));
  const bool only_assigned = std::any_of(
      all.begin(), all.end(), [&](const Grader& one) { return one.name == grader && one.only_assigned; });
  std::optional<std::tuple<bool, int, std::string>>
      best;  // without a judgement: last; own claim, assigned, free; name
  for (const GradebookRow& row : rows) {
    if (!waits_for_marks(row) || std::find(skip.begin(), skip.end(), row.submission) != skip.end()) continue;
    if (std::any_of(seconds.begin(), seconds.end(), [&](const SecondMarking& second) {
          return second.submission == row.submission && second.waits();
        }))
      continue;
    const auto claim = held.find(row.submission);
    if (claim != held.end() && claim->second.grader != grader) continue;
    const auto owner = assigned.find(row.submission);
    const bool mine = owner != assigned.end() && owner->second == grader;
    if (!mine && (only_assigned || owner != assigned.end())) continue;
    std::tuple choice{row.state != "graded" && row.state != "needs_mentor",
                      claim != held.end() ? 0
                      : mine              ? 1
                                          : 2,
                      row.submission};
    if (!best || choice < *best) best = std::move(choice);
  }
  if (!best) return std::nullopt;
  CAPSTONE_CHECK(write_claim(std::get<2>(*best), grader));
  CAPSTONE_CHECK(transaction.commit());
  return std::get<2>(*best);
}

Result<bool> Marking::keep_claim(const std::string& submission, const std::string& grader) {
  CAPSTONE_TRY(Statement beat,
               database_.prepare("UPDATE claim SET beat=? WHERE submission=? AND grader=? AND "
                                 "beat >= ? RETURNING 1"));
  const Instant now = clock_();
  return beat.bind(std::int64_t{now})
      .bind(submission)
      .bind(grader)
      .bind(std::int64_t{now - kClaimSeconds})
      .step();
}

Result<void> Marking::release(const std::string& submission, const std::string& grader) {
  CAPSTONE_TRY(Statement end, database_.prepare("DELETE FROM claim WHERE submission=? AND grader=?"));
  return end.bind(submission).bind(grader).run();
}

Result<void> Marking::assign(const std::vector<Assignment>& list, const std::string& by) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  for (const Assignment& each : list) {
    CAPSTONE_CHECK(book_.require(each.submission));
    CAPSTONE_CHECK(book_.require_grader(each.grader));
    CAPSTONE_TRY(Statement add, database_.prepare("INSERT INTO assignment (submission, grader, author, time) "
                                                  "VALUES (?,?,?,?)"));
    CAPSTONE_CHECK(
        add.bind(each.submission).bind(to_utf8(each.grader)).bind(to_utf8(by)).bind(utc_now()).run());
  }
  return transaction.commit();
}

Result<std::map<std::string, std::string>> Marking::assignments() const {
  CAPSTONE_TRY(Statement all, database_.prepare("SELECT submission, grader FROM assignment ORDER BY id"));
  std::map<std::string, std::string> last;
  for (;;) {
    CAPSTONE_TRY(bool row, all.step());
    if (!row) return last;
    last[all.text(0)] = all.text(1);
  }
}

Result<std::map<std::string, std::string>> Marking::codes() {
  std::map<std::string, std::string> known, by_submission;
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  {
    CAPSTONE_TRY(Statement all, database_.prepare("SELECT code, submission FROM sheet_code"));
    for (;;) {
      CAPSTONE_TRY(bool row, all.step());
      if (!row) break;
      known[all.text(0)] = all.text(1);
      by_submission[all.text(1)] = all.text(0);
    }
  }
  CAPSTONE_TRY(auto names, book_.submissions());
  for (const std::string& name : names) {
    if (by_submission.contains(name)) continue;
    std::string code;
    do {
      CAPSTONE_TRY(code, random_id(3));
    } while (known.contains(code));
    known[code] = name;
    CAPSTONE_TRY(Statement add, database_.prepare("INSERT INTO sheet_code VALUES (?,?)"));
    CAPSTONE_CHECK(add.bind(code).bind(name).run());
  }
  CAPSTONE_CHECK(transaction.commit());
  return known;
}

}  // namespace capstone
