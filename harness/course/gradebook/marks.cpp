// Adding marks: what is replaced is told, and stays in the history.
#include <fmt/format.h>

#include "harness/base/database.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/gradebook.h"
#include "harness/course/gradebook/schema.h"

namespace capstone {

std::string told(const Mark& mark) {
  const std::string now = utc_now();
  const bool today = mark.time.substr(0, 10) == now.substr(0, 10);
  const std::string minute = mark.time.size() >= 16 ? mark.time.substr(11, 5) : mark.time;
  return fmt::format("{:g} by {} at {}{} UTC", mark.points, mark.grader,
                     today ? "" : mark.time.substr(0, 10) + " ", minute);
}

Result<std::vector<Mark>> Gradebook::mark(const Rubric& rubric, const std::vector<Mark>& marks) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  CAPSTONE_TRY(auto replaced, add_marks(rubric, marks));
  CAPSTONE_CHECK(transaction.commit());
  return replaced;
}

// Marks of earlier versions are not replaced: they wait for a new mark anyway.
Result<std::optional<Mark>> Gradebook::replaced_by(const Mark& mark) const {
  CAPSTONE_TRY(Statement last,
               database_->prepare("SELECT m.points, m.reason, m.grader, m.time, m.digest FROM mark m "
                                  "JOIN submission s ON s.name = m.submission AND s.digest = m.digest "
                                  "WHERE m.submission=? AND m.criterion=? AND m.member IS ? "
                                  "ORDER BY m.id DESC LIMIT 1"));
  CAPSTONE_TRY(bool any, last.bind(mark.submission).bind(mark.criterion).bind_optional(mark.member).step());
  if (!any || last.text(2) == mark.grader || (last.number(0) == mark.points && last.text(1) == mark.reason))
    return std::nullopt;
  return Mark{mark.submission, mark.criterion, mark.member,  last.number(0),
              last.text(1),    last.text(2),   last.text(3), last.text(4)};
}

// Before the first `grader add`, any name may mark: a course with one mentor needs no list.
Result<void> Gradebook::require_grader(const std::string& grader) const {
  CAPSTONE_TRY(Statement all, database_->prepare("SELECT name FROM grader ORDER BY name"));
  std::vector<std::string> names;
  for (;;) {
    CAPSTONE_TRY(bool row, all.step());
    if (!row) break;
    if (all.text(0) == grader) return {};
    names.push_back(all.text(0));
  }
  if (names.empty()) return {};
  auto near = nearest(grader, names);
  return fail("no grader is called '" + grader + "'", {},
              near ? "did you mean '" + *near + "'?"
                   : "use --grader with one of: " + join(names, ", ") + "; or `capstone grader add NAME`");
}

Result<std::vector<Mark>> Gradebook::add_marks(const Rubric& rubric, const std::vector<Mark>& marks) {
  std::vector<Mark> replaced;
  for (const Mark& mark : marks) {
    if (auto sound = check(rubric, mark); !sound) {
      Error error = sound.error();
      if (!mark.where.empty()) error.where = mark.where + (error.where.empty() ? "" : ", " + error.where);
      return fail(std::move(error));
    }
    CAPSTONE_TRY(auto old, replaced_by(mark));
    if (old) replaced.push_back(std::move(*old));
    CAPSTONE_TRY(
        Statement add,
        database_->prepare("INSERT INTO mark (submission, member, criterion, points, reason, grader, "
                           "time, items, own_points, own_reason, digest) "
                           "SELECT ?,?,?,?,?,?,?,?,?,?, digest FROM submission WHERE name=?"));
    CAPSTONE_CHECK(add.bind(mark.submission)
                       .bind_optional(mark.member)
                       .bind(mark.criterion)
                       .bind(mark.points)
                       .bind(to_utf8(mark.reason))
                       .bind(to_utf8(mark.grader))
                       .bind(utc_now())
                       .bind(detail::text_of(mark.items))
                       .bind(mark.own_points)
                       .bind(to_utf8(mark.own_reason))
                       .bind(mark.submission)
                       .run());
  }
  return replaced;
}

}  // namespace capstone
