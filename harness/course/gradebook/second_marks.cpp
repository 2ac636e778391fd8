// Second marks, and the sheets on which graders give them without seeing the first ones.
#include "harness/course/gradebook/second_marks.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/course/gradebook/marking.h"

namespace capstone {

namespace detail {

Result<MergedMarks> add_second_marks(const Database& database, const Rubric& rubric,
                                     const std::vector<Mark>& marks, Given given) {
  MergedMarks merged;
  for (const Mark& mark : marks) {
    const auto criterion = std::find_if(rubric.criteria.begin(), rubric.criteria.end(),
                                        [&](const Criterion& c) { return c.id == mark.criterion; });
    if (criterion == rubric.criteria.end())
      return fail("no criterion '" + mark.criterion + "'", mark.submission,
                  "keep the criteria of the original sheet");
    if (!(mark.points >= 0 && mark.points <= criterion->weight))
      return fail(fmt::format("{:g} points for {} are out of range", mark.points, mark.criterion),
                  mark.submission, fmt::format("give 0 to {}", criterion->weight));
    if (trim(mark.reason).empty())
      return fail("a mark without a reason", mark.submission + ", " + mark.criterion,
                  "give a reason: the two graders compare reasons later");
    CAPSTONE_TRY(
        Statement known,
        database.prepare("SELECT m.points, m.reason, m.time, m.digest, m.counts FROM second_mark m JOIN "
                         "submission s ON s.name = m.submission AND s.digest = m.digest "
                         "WHERE m.submission=? AND m.criterion=? AND m.grader=? ORDER BY m.id"));
    known.bind(mark.submission).bind(mark.criterion).bind(mark.grader);
    std::optional<Mark> present;
    bool told_before = false;
    for (;;) {
      CAPSTONE_TRY(const bool row, known.step());
      if (!row) break;
      told_before |= known.number(0) == mark.points && known.text(1) == mark.reason;
      if (known.integer(4))
        present = Mark{mark.submission, mark.criterion, {},           known.number(0), known.text(1),
                       mark.grader,     known.text(2),  known.text(3)};
    }
    if (present && present->points == mark.points && present->reason == mark.reason) continue;
    const bool counts = !present || given == Given::kReplaced;
    if (!counts) {
      merged.conflicts.push_back({*present, mark});
      if (told_before) continue;  // the same sheet was taken in before
    }
    CAPSTONE_TRY(Statement add, database.prepare("INSERT INTO second_mark (submission, criterion, points, "
                                                 "reason, grader, time, digest, counts) SELECT "
                                                 "?,?,?,?,?,?, digest, ? FROM submission WHERE name=?"));
    CAPSTONE_CHECK(add.bind(mark.submission)
                       .bind(mark.criterion)
                       .bind(mark.points)
                       .bind(to_utf8(mark.reason))
                       .bind(mark.grader)
                       .bind(utc_now())
                       .bind(std::int64_t{counts})
                       .bind(mark.submission)
                       .run());
    merged.added += counts;
  }
  return merged;
}

}  // namespace detail

bool SecondMarking::done() const {
  return std::all_of(marks.begin(), marks.end(), [](const auto& mark) { return mark.has_value(); });
}

Result<std::vector<SecondMarking>> Marking::second_markings(const Rubric& rubric,
                                                            const std::string& grader) const {
  std::vector<SecondMarking> all;
  std::map<std::pair<std::string, std::string>, std::size_t> places;  // by (submission, grader)
  CAPSTONE_TRY(
      Statement copies,
      database_.prepare(fmt::format(
          "SELECT b.code, b.submission, b.grader, s.problem, s.state, b.beat, b.grader IS {} OR EXISTS "
          "(SELECT 1 FROM given_mark m WHERE m.submission = b.submission AND m.grader = b.grader) "
          "FROM blind b JOIN submission s ON s.name = b.submission WHERE {} AND ? IN ('', b.grader) "
          "ORDER BY b.code",
          detail::kFirstGrader, detail::kCanBeMarkedTwice)));
  copies.bind(grader);
  const Instant now = clock_();
  for (;;) {
    CAPSTONE_TRY(bool row, copies.step());
    if (!row) break;
    places[{copies.text(1), copies.text(2)}] = all.size();
    all.push_back({copies.text(0), copies.text(1), copies.text(2), copies.text(3), copies.text(4),
                   copies.integer(5) >= now - kClaimSeconds, copies.integer(6) != 0,
                   std::vector<std::optional<Mark>>(rubric.criteria.size())});
  }
  CAPSTONE_TRY(Statement given,
               database_.prepare("SELECT m.submission, m.grader, m.criterion, m.points, m.reason, m.time, "
                                 "m.digest FROM second_mark m JOIN submission s ON s.name = m.submission AND "
                                 "s.digest = m.digest WHERE m.counts AND ? IN ('', m.grader) ORDER BY m.id"));
  given.bind(grader);
  for (;;) {
    CAPSTONE_TRY(bool row, given.step());
    if (!row) return all;
    const auto place = places.find({given.text(0), given.text(1)});
    if (place == places.end()) continue;
    for (std::size_t i = 0; i < rubric.criteria.size(); ++i)
      if (rubric.criteria[i].id == given.text(2))
        all[place->second].marks[i] =
            Mark{given.text(0), given.text(2), {},           given.number(3), given.text(4),
                 given.text(1), given.text(5), given.text(6)};
  }
}

Result<void> Marking::open_second(const SecondMarking& marking) {
  CAPSTONE_TRY(Statement beat, database_.prepare("UPDATE blind SET beat=? WHERE code=?"));
  return beat.bind(std::int64_t{clock_()}).bind(marking.code).run();
}

Result<void> Marking::close_second(const SecondMarking& marking) {
  CAPSTONE_TRY(Statement end, database_.prepare("UPDATE blind SET beat=0 WHERE code=?"));
  return end.bind(marking.code).run();
}

Result<void> Marking::give_second(const Rubric& rubric, const SecondMarking& marking,
                                  const std::vector<Draft>& drafts) {
  CAPSTONE_CHECK(book_.require_grader(marking.grader));
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  CAPSTONE_TRY(const auto now, second_markings(rubric, marking.grader));
  if (std::none_of(now.begin(), now.end(),
                   [&](const SecondMarking& one) { return one.code == marking.code && one.waits(); }))
    return fail("the second marks of " + marking.code + " were given already", {}, "they are final");
  std::vector<Mark> marks;
  for (const Criterion& criterion : rubric.criteria) {
    const auto draft = std::find_if(drafts.begin(), drafts.end(),
                                    [&](const Draft& one) { return one.criterion == criterion.id; });
    if (draft == drafts.end())
      return fail(criterion.title + " has no second mark", marking.code, "give points and a reason");
    CAPSTONE_TRY(Mark mark, mark_of(rubric, {draft->criterion, draft->points, draft->reason, {}}));
    mark.submission = marking.submission;
    mark.grader = marking.grader;
    marks.push_back(std::move(mark));
  }
  // Marks of a copy that was filled in partly stand on the page: until all are given, they may change.
  CAPSTONE_CHECK(detail::add_second_marks(database_, rubric, marks, detail::Given::kReplaced));
  CAPSTONE_TRY(Statement done, database_.prepare("UPDATE draft SET undone=2 WHERE submission=? AND grader=? "
                                                 "AND second=1 AND undone=0"));
  CAPSTONE_CHECK(done.bind(marking.submission).bind(marking.grader).run());
  CAPSTONE_CHECK(close_second(marking));
  return transaction.commit();
}

}  // namespace capstone
