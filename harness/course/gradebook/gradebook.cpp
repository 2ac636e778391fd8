#include "harness/course/gradebook/gradebook.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/database.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/schema.h"
#include "harness/model/upgrade.h"

namespace capstone {
namespace {

using detail::key_of;
using detail::points_text;

// A submission that cannot be read names no members. In that case the known members are kept.
Result<void> take_members(const Database& database, const SubmissionResult& r) {
  std::vector<Person> members = r.members;
  if (members.empty()) {
    CAPSTONE_TRY(Statement known, database.prepare("SELECT 1 FROM member WHERE submission=?"));
    CAPSTONE_TRY(bool any, known.bind(r.name).step());
    if (any) return {};
    // The numbers of Canvas and Moodle are their own, not the student's.
    const std::string id = r.origin.platform == "Canvas" || r.origin.platform == "Moodle" ? "" : r.origin.id;
    members.push_back({r.origin.person.empty() ? r.name : r.origin.person, id, r.origin.email});
  }
  CAPSTONE_TRY(Statement forget, database.prepare("DELETE FROM member WHERE submission=?"));
  CAPSTONE_CHECK(forget.bind(r.name).run());
  for (std::size_t i = 0; i < members.size(); ++i) {
    CAPSTONE_TRY(Statement member, database.prepare("INSERT INTO member VALUES (?,?,?,?,?)"));
    CAPSTONE_CHECK(member.bind(r.name)
                       .bind(static_cast<std::int64_t>(i))
                       .bind(to_utf8(members[i].name))
                       .bind(to_utf8(members[i].id))
                       .bind(to_utf8(members[i].email))
                       .run());
  }
  return {};
}

Result<void> take_one(const Database& database, const SubmissionResult& r) {
  const GradingInputs& in = r.inputs;
  CAPSTONE_TRY(Statement submission,
               database.prepare("INSERT INTO submission (name, problem, state, fault, why, late, digest, "
                                "finished, summary) VALUES (?,?,?,?,?,?,?,?,?) "
                                "ON CONFLICT (name) DO UPDATE SET problem=excluded.problem, "
                                "state=excluded.state, fault=excluded.fault, why=excluded.why, "
                                "late=excluded.late, digest=excluded.digest, finished=excluded.finished, "
                                "summary=excluded.summary"));
  CAPSTONE_CHECK(submission.bind(r.name)
                     .bind(to_utf8(r.problem))
                     .bind(name_of(r.state))
                     .bind(name_of(r.fault))
                     .bind(to_utf8(r.why))
                     .bind(std::int64_t{r.origin.late})
                     .bind(in.files)
                     .bind(r.finished)
                     .bind(Json(summary_of(r)).dump(-1, ' ', false, Json::error_handler_t::replace))
                     .run());
  CAPSTONE_CHECK(take_members(database, r));
  CAPSTONE_TRY(Statement attempt,
               database.prepare("INSERT OR IGNORE INTO attempt (submission, digest, inputs, state, fault, "
                                "why, time) VALUES (?,?,?,?,?,?,?)"));
  return attempt.bind(r.name)
      .bind(in.files)
      .bind(join({in.files, in.problem, in.rubric, in.tool, in.device, in.driver, in.options}, "|"))
      .bind(name_of(r.state))
      .bind(name_of(r.fault))
      .bind(to_utf8(r.why))
      .bind(r.finished)
      .run();
}

}  // namespace

namespace {
// For each person the rows of the last publication that had any.
constexpr const char* kLastPublished =
    "published p WHERE publication = (SELECT max(l.publication) FROM published l WHERE l.submission = "
    "p.submission AND l.person = p.person)";
}  // namespace

std::optional<double> GradebookRow::total() const {
  double sum = 0;
  for (const auto& mark : marks) {
    if (!mark) return std::nullopt;
    sum += mark->points;
  }
  return sum;
}

Gradebook::Gradebook(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Gradebook::Gradebook(Gradebook&&) noexcept = default;
Gradebook& Gradebook::operator=(Gradebook&&) noexcept = default;
Gradebook::~Gradebook() = default;

Result<Gradebook> Gradebook::open(const fs::path& cohort) {
  const fs::path file = cohort / "gradebook.sqlite";
  CAPSTONE_TRY(Database database, Database::open(file, detail::kGradebook));
  CAPSTONE_CHECK(detail::bring_up_to_date(database, file));
  // Marks and names are no business of other users of this machine. A folder of another owner stays as it is.
  std::error_code code;
  for (const fs::path& place : {cohort, file})
    fs::permissions(place, fs::perms::others_all, fs::perm_options::remove, code);
  return Gradebook(std::make_unique<Database>(std::move(database)));
}

Result<void> Gradebook::take(const std::vector<SubmissionResult>& results) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  for (const SubmissionResult& result : results) CAPSTONE_CHECK(take_one(*database_, result));
  return transaction.commit();
}

Result<void> Gradebook::keep_times(const std::vector<SubmissionTimes>& times) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  for (const SubmissionTimes& each : times) {
    CAPSTONE_TRY(Statement keep, database_->prepare("UPDATE submission SET submitted=?, deadline=CASE WHEN "
                                                    "?='' THEN deadline ELSE ? END WHERE name=?"));
    CAPSTONE_CHECK(
        keep.bind(each.submitted).bind(each.deadline).bind(each.deadline).bind(each.submission).run());
  }
  return transaction.commit();
}

Result<std::vector<std::string>> Gradebook::submissions() const {
  CAPSTONE_TRY(Statement all, database_->prepare("SELECT name FROM submission ORDER BY name"));
  std::vector<std::string> names;
  for (;;) {
    CAPSTONE_TRY(bool row, all.step());
    if (!row) return names;
    names.push_back(all.text(0));
  }
}

Result<void> Gradebook::require(const std::string& submission) const {
  CAPSTONE_TRY(Statement known, database_->prepare("SELECT 1 FROM submission WHERE name=?"));
  CAPSTONE_TRY(bool there, known.bind(submission).step());
  if (there) return {};
  CAPSTONE_TRY(auto names, submissions());
  auto near = nearest(submission, names);
  return fail("no submission is called '" + submission + "'", {},
              near ? "did you mean '" + *near + "'?" : "`capstone gradebook COHORT` lists the submissions");
}

Result<void> Gradebook::check(const Rubric& rubric, const Mark& mark) const {
  CAPSTONE_CHECK(require(mark.submission));
  CAPSTONE_CHECK(require_counts(mark.submission));
  std::vector<std::string> ids;
  for (const Criterion& c : rubric.criteria) ids.push_back(c.id);
  auto criterion = std::find_if(rubric.criteria.begin(), rubric.criteria.end(),
                                [&](const Criterion& c) { return c.id == mark.criterion; });
  if (criterion == rubric.criteria.end()) {
    auto near = nearest(mark.criterion, ids);
    return fail("no criterion '" + mark.criterion + "'", mark.submission,
                near ? "did you mean '" + *near + "'?" : "the rubric has: " + join(ids, ", "));
  }
  if (!(mark.points >= 0 && mark.points <= criterion->weight))
    return fail(fmt::format("{} points for {} are out of range", points_text(mark.points), mark.criterion),
                mark.submission, fmt::format("give 0 to {}", criterion->weight));
  if (trim(mark.reason).empty())
    return fail("a mark without a reason", mark.submission + ", " + mark.criterion,
                "add --reason TEXT: the student reads it, and you need it when they ask");
  if (trim(mark.grader).empty()) return fail("a mark without a grader", mark.submission, "add --grader NAME");
  CAPSTONE_CHECK(require_grader(mark.grader));
  return mark.member ? require_member(mark.submission, *mark.member) : Result<void>();
}

Result<void> Gradebook::require_member(const std::string& submission, const std::string& member) const {
  CAPSTONE_TRY(Statement known,
               database_->prepare("SELECT name, id FROM member WHERE submission=? ORDER BY place"));
  known.bind(submission);
  std::vector<std::string> keys;
  for (;;) {
    CAPSTONE_TRY(bool row, known.step());
    if (!row) break;
    keys.push_back(key_of({known.text(0), known.text(1), {}}));
  }
  if (std::find(keys.begin(), keys.end(), member) != keys.end()) return {};
  return fail("no member '" + member + "'", submission, "its members: " + join(keys, ", "));
}

Result<std::vector<GradebookRow>> Gradebook::rows(const Rubric& rubric, const std::string& only) const {
  auto narrowed = [&](const std::string& query, const char* condition,
                      const char* rest) -> Result<Statement> {
    CAPSTONE_TRY(Statement statement, database_->prepare(query + (only.empty() ? "" : condition) + rest));
    if (!only.empty()) statement.bind(only);
    return statement;
  };
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i) places[rubric.criteria[i].id] = i;
  // Ids grow, so the last row of each (submission, member, criterion) is its latest mark.
  std::map<std::string, std::vector<Mark>> marks;
  CAPSTONE_TRY(Statement given,
               narrowed("SELECT submission, member, criterion, points, reason, grader, time, digest, "
                        "items, own_points, own_reason FROM mark",
                        " WHERE submission=?", " ORDER BY id"));
  for (;;) {
    CAPSTONE_TRY(bool row, given.step());
    if (!row) break;
    Mark mark{given.text(0), given.text(2), {},           given.number(3), given.text(4),
              given.text(5), given.text(6), given.text(7)};
    if (!given.is_null(1)) mark.member = given.text(1);
    mark.items = detail::ids_in(given.text(8));
    mark.own_points = given.number(9);
    mark.own_reason = given.text(10);
    marks[mark.submission].push_back(std::move(mark));
  }
  // The last published marks of every person, by criterion.
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> shown;
  CAPSTONE_TRY(
      Statement published,
      narrowed(std::string("SELECT submission, person, criterion, points, reason FROM ") + kLastPublished,
               " AND submission=?", ""));
  for (;;) {
    CAPSTONE_TRY(bool row, published.step());
    if (!row) break;
    shown[{published.text(0), published.text(1)}][published.text(2)] =
        points_text(published.number(3)) + "|" + published.text(4);
  }
  CAPSTONE_TRY(auto grace, all_grace());
  CAPSTONE_TRY(const auto in_force, rulings());
  const auto dropped = of_kind(in_force, Ruling::Kind::kDropped);
  const auto cleared = of_kind(in_force, Ruling::Kind::kCleared);
  std::vector<GradebookRow> rows;
  CAPSTONE_TRY(Statement all,
               narrowed("SELECT s.name, s.problem, s.state, s.fault, s.why, s.digest, s.late, m.name, m.id, "
                        "m.email, s.submitted, s.deadline "
                        "FROM submission s JOIN member m ON m.submission = s.name WHERE s.state <> 'found'",
                        " AND s.name=?", " ORDER BY s.name, m.place"));
  for (;;) {
    CAPSTONE_TRY(bool more, all.step());
    if (!more) return rows;
    GradebookRow row;
    row.submission = all.text(0), row.problem = all.text(1), row.state = all.text(2), row.fault = all.text(3),
    row.why = all.text(4), row.digest = all.text(5);
    if (dropped.contains(row.submission)) continue;
    if (auto ruling = cleared.find(row.submission); ruling != cleared.end()) {
      row.why = fmt::format("cleared by {}: {} ({}{}: {})", ruling->second.grader, ruling->second.reason,
                            row.state, row.fault.empty() ? "" : ", " + row.fault, row.why);
      row.state = name_of(GradingState::kGraded);
      row.fault.clear();
    }
    row.late = all.integer(6) != 0;
    row.person = {all.text(7), all.text(8), all.text(9)};
    row.submitted = all.text(10), row.deadline = all.text(11);
    // A member's grace overrides the team's.
    for (const std::string& whom : {std::string(), key_of(row.person)})
      if (auto days = grace.find({row.submission, whom}); days != grace.end()) row.grace_days = days->second;
    row.marks.resize(rubric.criteria.size());
    // A mark for one member overrides the team's mark, even an older one.
    for (bool own : {false, true})
      for (const Mark& mark : marks[row.submission]) {
        if (mark.member.has_value() != own || (own && *mark.member != key_of(row.person))) continue;
        auto place = places.find(mark.criterion);
        // From a rubric that this cohort no longer uses; history() shows it.
        if (place == places.end()) continue;
        row.marks[place->second] = mark;
        row.marks[place->second]->earlier_version = mark.digest != row.digest;
      }
    std::map<std::string, std::string> now;
    for (const auto& mark : row.marks)
      if (mark) now[mark->criterion] = points_text(mark->points) + "|" + mark->reason;
    auto seen = shown.find({row.submission, key_of(row.person)});
    row.published = !now.empty() && seen != shown.end() && seen->second == now;
    rows.push_back(std::move(row));
  }
}

Result<std::vector<GradebookRow>> Gradebook::published_rows(const Rubric& rubric) const {
  CAPSTONE_TRY(auto all, rows(rubric));
  std::map<std::pair<std::string, std::string>, std::vector<Mark>> shown;
  CAPSTONE_TRY(
      Statement published,
      database_->prepare(
          std::string("SELECT submission, person, criterion, points, reason, grader, time, digest FROM ") +
          kLastPublished));
  for (;;) {
    CAPSTONE_TRY(bool row, published.step());
    if (!row) break;
    shown[{published.text(0), published.text(1)}].push_back({published.text(0),
                                                             published.text(2),
                                                             {},
                                                             published.number(3),
                                                             published.text(4),
                                                             published.text(5),
                                                             published.text(6),
                                                             published.text(7)});
  }
  for (GradebookRow& row : all) {
    for (std::size_t i = 0; i < row.marks.size(); ++i) {
      row.marks[i].reset();
      for (const Mark& mark : shown[{row.submission, key_of(row.person)}])
        if (mark.criterion == rubric.criteria[i].id) {
          row.marks[i] = mark;
          row.marks[i]->earlier_version = mark.digest != row.digest;
        }
    }
  }
  return all;
}

Result<std::map<std::string, ResultSummary>> Gradebook::summaries() const {
  std::map<std::string, ResultSummary> all;
  CAPSTONE_TRY(
      Statement stored,
      database_->prepare("SELECT name, summary FROM submission WHERE state NOT IN ('missing', 'found')"));
  for (;;) {
    CAPSTONE_TRY(bool row, stored.step());
    if (!row) return all;
    if (Json json = parse_recorded(stored.text(1)); json.is_object())
      all[stored.text(0)] = json.get<ResultSummary>();
  }
}

Result<int> Gradebook::publish(const Rubric& rubric, const std::string& by,
                               const std::function<bool(const GradebookRow&)>& chosen) {
  if (trim(by).empty())
    return fail("no grader is named", {}, "add --grader NAME: the history says who published");
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  CAPSTONE_TRY(auto table, rows(rubric));
  CAPSTONE_TRY(Statement publication,
               database_->prepare("INSERT INTO publication (time, publisher) VALUES (?,?)"));
  CAPSTONE_CHECK(publication.bind(utc_now()).bind(to_utf8(by)).run());
  int people = 0;
  std::set<std::string> submissions;
  for (const GradebookRow& row : table) {
    if (chosen && !chosen(row)) continue;
    submissions.insert(row.submission);
    people +=
        std::any_of(row.marks.begin(), row.marks.end(), [](const auto& mark) { return mark.has_value(); });
    for (const auto& mark : row.marks) {
      if (!mark) continue;
      CAPSTONE_TRY(
          Statement copy,
          database_->prepare("INSERT INTO published SELECT max(id),?,?,?,?,?,?,?,? FROM publication"));
      CAPSTONE_CHECK(copy.bind(row.submission)
                         .bind(key_of(row.person))
                         .bind(mark->criterion)
                         .bind(mark->points)
                         .bind(mark->reason)
                         .bind(mark->grader)
                         .bind(mark->time)
                         .bind(mark->digest)
                         .run());
    }
  }
  for (const std::string& submission : submissions) {
    CAPSTONE_TRY(
        Statement comments,
        database_->prepare(
            "INSERT INTO published_comment SELECT (SELECT max(id) FROM publication), c.submission, c.file, "
            "c.line, c.text, c.grader FROM line_comment c JOIN submission s ON s.name = c.submission AND "
            "s.digest = c.digest WHERE s.name=? AND c.text <> '' AND c.id = (SELECT max(id) FROM "
            "line_comment o WHERE o.submission=c.submission AND o.file=c.file AND o.line=c.line AND "
            "o.grader=c.grader AND o.digest=c.digest) ORDER BY c.id"));
    CAPSTONE_CHECK(comments.bind(submission).run());
  }
  CAPSTONE_CHECK(transaction.commit());
  return people;
}

}  // namespace capstone
