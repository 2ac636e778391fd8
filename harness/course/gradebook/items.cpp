// Reusable items, drafts with undo, and comments on lines.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/database.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/marking.h"
#include "harness/course/gradebook/schema.h"
#include "harness/course/gradebook/sheets.h"

namespace capstone {

using detail::ids_in;
using detail::text_of;

namespace {

constexpr const char* kNewestDraft =
    "SELECT criterion, points, items, reason, id FROM draft d WHERE submission=? AND grader=? AND second=? "
    "AND undone=0 AND id = (SELECT max(id) FROM draft o WHERE o.submission=d.submission AND "
    "o.grader=d.grader AND o.criterion=d.criterion AND o.second=d.second AND o.undone=0)";

std::int64_t stored(Round round) { return round == Round::kSecond; }

}  // namespace

Result<std::vector<MarkItem>> Marking::items() const {
  CAPSTONE_TRY(Statement all,
               database_.prepare("SELECT i.id, i.criterion, t.points, t.text FROM item i JOIN item_text t ON "
                                 "t.id = (SELECT max(id) FROM item_text WHERE item = i.id) "
                                 "ORDER BY i.criterion, i.id"));
  std::vector<MarkItem> items;
  for (;;) {
    CAPSTONE_TRY(bool row, all.step());
    if (!row) return items;
    items.push_back({all.integer(0), all.text(1), all.number(2), all.text(3)});
  }
}

Result<Mark> Marking::mark_of(const Rubric& rubric, const Draft& draft) const {
  Mark mark;
  mark.criterion = draft.criterion;
  mark.items = draft.items;
  mark.own_reason = std::string(trim(draft.reason));
  if (!draft.points.empty() || draft.items.empty()) {
    CAPSTONE_TRY(mark.own_points, points_of(draft.points, draft.criterion));
  }
  mark.points = mark.own_points;
  CAPSTONE_TRY(const auto known, items());
  std::vector<std::string> texts;
  for (const std::int64_t id : draft.items) {
    auto item = std::find_if(known.begin(), known.end(), [&](const MarkItem& one) {
      return one.id == id && one.criterion == draft.criterion;
    });
    if (item == known.end())
      return fail(fmt::format("{} has no item {}", draft.criterion, id), {}, "reload the sheet");
    mark.points += item->points;
    texts.push_back(item->text);
  }
  if (!mark.own_reason.empty()) texts.push_back(mark.own_reason);
  mark.reason = join(texts, "\n");
  // A sum of items stays in range, as a changed item may be in many marks.
  for (const Criterion& criterion : rubric.criteria)
    if (criterion.id == draft.criterion && !draft.items.empty())
      mark.points = std::clamp(mark.points, 0.0, static_cast<double>(criterion.weight));
  return mark;
}

Result<std::vector<Mark>> Marking::give(const Rubric& rubric, const std::string& submission,
                                        const std::string& grader, const std::vector<Draft>& drafts) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  std::vector<Mark> marks;
  for (const Draft& draft : drafts) {
    CAPSTONE_TRY(Mark mark, mark_of(rubric, draft));
    mark.submission = submission;
    mark.grader = grader;
    marks.push_back(std::move(mark));
  }
  CAPSTONE_TRY(auto replaced, book_.add_marks(rubric, marks));
  for (const Draft& draft : drafts) {
    CAPSTONE_TRY(Statement done,
                 database_.prepare("UPDATE draft SET undone=2 WHERE submission=? AND grader=? AND "
                                   "criterion=? AND second=0 AND undone=0"));
    CAPSTONE_CHECK(done.bind(submission).bind(grader).bind(draft.criterion).run());
  }
  CAPSTONE_CHECK(transaction.commit());
  return replaced;
}

Result<int> Marking::keep_item(const Rubric& rubric, const MarkItem& item, const std::string& by) {
  if (trim(item.text).empty())
    return fail("an item without a text", item.criterion, "write what the student will read");
  if (std::none_of(rubric.criteria.begin(), rubric.criteria.end(),
                   [&](const Criterion& c) { return c.id == item.criterion; }))
    return fail("no criterion '" + item.criterion + "'", {}, "use a criterion of the rubric");
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  std::int64_t id = item.id;
  if (id == 0) {
    CAPSTONE_TRY(Statement add, database_.prepare("INSERT INTO item (criterion) VALUES (?) RETURNING id"));
    CAPSTONE_TRY(bool added, add.bind(item.criterion).step());
    if (added) id = add.integer(0);
    CAPSTONE_CHECK(add.step());
  } else {
    CAPSTONE_TRY(Statement known, database_.prepare("SELECT 1 FROM item WHERE id=? AND criterion=?"));
    CAPSTONE_TRY(bool there, known.bind(id).bind(item.criterion).step());
    if (!there) return fail(fmt::format("{} has no item {}", item.criterion, id), {}, "reload the sheet");
  }
  CAPSTONE_TRY(Statement text, database_.prepare("INSERT INTO item_text (item, points, text, grader, time) "
                                                 "VALUES (?,?,?,?,?)"));
  CAPSTONE_CHECK(
      text.bind(id).bind(item.points).bind(to_utf8(item.text)).bind(to_utf8(by)).bind(utc_now()).run());
  // Present marks only: a mark for an earlier version waits for a new one anyway.
  CAPSTONE_TRY(
      Statement present,
      database_.prepare("SELECT m.submission, m.member, m.items, m.own_points, m.own_reason FROM mark m "
                        "JOIN submission s ON s.name = m.submission AND s.digest = m.digest "
                        "WHERE m.criterion=? AND m.items <> '' AND m.id = (SELECT max(id) FROM mark o "
                        "WHERE o.submission=m.submission AND o.criterion=m.criterion AND "
                        "o.member IS m.member)"));
  present.bind(item.criterion);
  std::vector<Mark> again;
  for (;;) {
    CAPSTONE_TRY(bool row, present.step());
    if (!row) break;
    Draft draft{item.criterion, detail::points_text(present.number(3)), present.text(4),
                ids_in(present.text(2))};
    if (std::find(draft.items.begin(), draft.items.end(), id) == draft.items.end()) continue;
    CAPSTONE_TRY(Mark mark, mark_of(rubric, draft));
    mark.submission = present.text(0);
    if (!present.is_null(1)) mark.member = present.text(1);
    mark.grader = by;
    again.push_back(std::move(mark));
  }
  CAPSTONE_CHECK(book_.add_marks(rubric, again));
  CAPSTONE_CHECK(transaction.commit());
  return static_cast<int>(again.size());
}

Result<std::map<std::string, Draft>> Marking::drafts(const std::string& submission, const std::string& grader,
                                                     Round round) const {
  CAPSTONE_TRY(Statement newest, database_.prepare(kNewestDraft));
  newest.bind(submission).bind(grader).bind(stored(round));
  std::map<std::string, Draft> drafts;
  for (;;) {
    CAPSTONE_TRY(bool row, newest.step());
    if (!row) return drafts;
    drafts[newest.text(0)] = {newest.text(0), newest.text(1), newest.text(3), ids_in(newest.text(2))};
  }
}

Result<void> Marking::keep_draft(const std::string& submission, const std::string& grader, const Draft& draft,
                                 Round round) {
  CAPSTONE_CHECK(book_.require(submission));
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  CAPSTONE_TRY(const auto present, drafts(submission, grader, round));
  if (auto old = present.find(draft.criterion); old != present.end() && old->second.points == draft.points &&
                                                old->second.reason == draft.reason &&
                                                old->second.items == draft.items)
    return {};
  CAPSTONE_TRY(Statement add, database_.prepare("INSERT INTO draft (submission, grader, criterion, points, "
                                                "items, reason, time, second) VALUES (?,?,?,?,?,?,?,?)"));
  CAPSTONE_CHECK(add.bind(submission)
                     .bind(grader)
                     .bind(draft.criterion)
                     .bind(to_utf8(draft.points))
                     .bind(text_of(draft.items))
                     .bind(to_utf8(draft.reason))
                     .bind(utc_now())
                     .bind(stored(round))
                     .run());
  return transaction.commit();
}

Result<bool> Marking::undo(const std::string& submission, const std::string& grader, Round round) {
  CAPSTONE_TRY(Statement last,
               database_.prepare("UPDATE draft SET undone=1 WHERE id = (SELECT max(id) FROM draft WHERE "
                                 "submission=? AND grader=? AND second=? AND undone=0) RETURNING 1"));
  return last.bind(submission).bind(grader).bind(stored(round)).step();
}

Result<void> Marking::comment(const std::string& submission, const LineComment& comment) {
  CAPSTONE_CHECK(book_.require(submission));
  CAPSTONE_CHECK(book_.require_grader(comment.grader));
  if (comment.line < 1) return fail("there is no line 0", comment.file, "name a line from 1");
  CAPSTONE_TRY(
      Statement add,
      database_.prepare("INSERT INTO line_comment (submission, file, line, text, grader, time, digest) "
                        "SELECT name, ?,?,?,?,?, digest FROM submission WHERE name=?"));
  return add.bind(comment.file)
      .bind(std::int64_t{comment.line})
      .bind(to_utf8(trim(comment.text)))
      .bind(to_utf8(comment.grader))
      .bind(utc_now())
      .bind(submission)
      .run();
}

Result<std::vector<LineComment>> Marking::comments(const std::string& submission) const {
  CAPSTONE_TRY(
      Statement last,
      database_.prepare("SELECT c.file, c.line, c.text, c.grader, c.time FROM line_comment c JOIN "
                        "submission s ON s.name = c.submission AND s.digest = c.digest WHERE s.name=? "
                        "AND c.id = (SELECT max(id) FROM line_comment o WHERE o.submission=c.submission "
                        "AND o.file=c.file AND o.line=c.line AND o.grader=c.grader AND "
                        "o.digest=c.digest) AND c.text <> '' ORDER BY c.file, c.line, c.id"));
  last.bind(submission);
  std::vector<LineComment> comments;
  for (;;) {
    CAPSTONE_TRY(bool row, last.step());
    if (!row) return comments;
    comments.push_back(
        {last.text(0), static_cast<int>(last.integer(1)), last.text(2), last.text(3), last.text(4)});
  }
}

}  // namespace capstone
