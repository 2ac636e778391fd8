#include "rubric/gradebook/gradebook.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "rubric/gradebook/database.h"

namespace capstone {
namespace {

using detail::Database;
using detail::Statement;
using detail::Transaction;

constexpr int kSchema = 1;
// `attempt` and `mark` are only ever added to; `submission` says which attempt is the present one.
constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS submission (name TEXT PRIMARY KEY, problem TEXT NOT NULL, state TEXT NOT NULL, fault TEXT NOT NULL,
  why TEXT NOT NULL, late INTEGER NOT NULL, digest TEXT NOT NULL, finished TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS member (submission TEXT NOT NULL REFERENCES submission(name), place INTEGER NOT NULL, name TEXT NOT NULL,
  id TEXT NOT NULL, email TEXT NOT NULL, PRIMARY KEY (submission, place));
CREATE TABLE IF NOT EXISTS attempt (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), digest TEXT NOT NULL,
  inputs TEXT NOT NULL, state TEXT NOT NULL, fault TEXT NOT NULL, why TEXT NOT NULL, time TEXT NOT NULL, UNIQUE (submission, inputs, time));
CREATE TABLE IF NOT EXISTS mark (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), member TEXT,
  criterion TEXT NOT NULL, points REAL NOT NULL, reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS mark_of ON mark (submission, criterion);
CREATE TABLE IF NOT EXISTS publication (id INTEGER PRIMARY KEY, time TEXT NOT NULL, publisher TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS published (publication INTEGER NOT NULL REFERENCES publication(id), submission TEXT NOT NULL, person TEXT NOT NULL,
  criterion TEXT NOT NULL, points REAL NOT NULL, reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS published_of ON published (submission);
)";

// Whom a row is about: a member's id where there is one, else the name.
const std::string& key_of(const Person& person) { return person.id.empty() ? person.name : person.id; }

Result<void> take_one(const Database& database, const SubmissionResult& r) {
  const GradingInputs& in = r.inputs;
  CAPSTONE_TRY(Statement submission, database.prepare(
      "INSERT INTO submission VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (name) DO UPDATE SET problem=excluded.problem, state=excluded.state, "
      "fault=excluded.fault, why=excluded.why, late=excluded.late, digest=excluded.digest, finished=excluded.finished"));
  CAPSTONE_CHECK(submission.bind(r.name).bind(r.problem).bind(name_of(r.state)).bind(name_of(r.fault)).bind(to_utf8(r.why))
                     .bind(std::int64_t{r.origin.late}).bind(in.files).bind(r.finished).run());
  CAPSTONE_TRY(Statement forget, database.prepare("DELETE FROM member WHERE submission=?"));
  CAPSTONE_CHECK(forget.bind(r.name).run());
  std::vector<Person> members = r.members;
  if (members.empty()) members.push_back({r.origin.person.empty() ? r.name : r.origin.person, r.origin.id, r.origin.email});
  for (std::size_t i = 0; i < members.size(); ++i) {
    CAPSTONE_TRY(Statement member, database.prepare("INSERT INTO member VALUES (?,?,?,?,?)"));
    CAPSTONE_CHECK(member.bind(r.name).bind(static_cast<std::int64_t>(i)).bind(to_utf8(members[i].name)).bind(to_utf8(members[i].id)).bind(to_utf8(members[i].email)).run());
  }
  CAPSTONE_TRY(Statement attempt, database.prepare("INSERT OR IGNORE INTO attempt (submission, digest, inputs, state, fault, why, time) VALUES (?,?,?,?,?,?,?)"));
  return attempt.bind(r.name).bind(in.files).bind(join({in.files, in.problem, in.rubric, in.tool, in.device, in.driver, in.options}, "|"))
      .bind(name_of(r.state)).bind(name_of(r.fault)).bind(to_utf8(r.why)).bind(r.finished).run();
}

std::string points_text(double points) { return fmt::format("{:g}", points); }

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
  CAPSTONE_TRY(Database database, Database::open(file));
  std::int64_t version = 0;
  {
    CAPSTONE_TRY(Statement schema, database.prepare("PRAGMA user_version"));
    CAPSTONE_TRY(bool row, schema.step());
    version = row ? schema.integer(0) : 0;
  }
  if (version > kSchema) return fail(fmt::format("a gradebook of schema {}, this version reads {}", version, kSchema), file.string(), "use the newer capstone that wrote it");
  if (version < kSchema) {
    CAPSTONE_TRY(Transaction transaction, Transaction::begin(database));
    CAPSTONE_CHECK(database.run(kTables));
    CAPSTONE_CHECK(database.run(fmt::format("PRAGMA user_version = {}", kSchema).c_str()));
    CAPSTONE_CHECK(transaction.commit());
  }
  return Gradebook(std::make_unique<Database>(std::move(database)));
}

Result<void> Gradebook::take(const std::vector<SubmissionResult>& results) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  for (const SubmissionResult& result : results) CAPSTONE_CHECK(take_one(*database_, result));
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
  CAPSTONE_TRY(auto names, submissions());
  if (std::find(names.begin(), names.end(), submission) != names.end()) return {};
  auto near = nearest(submission, names);
  return fail("no submission is called '" + submission + "'", {}, near ? "did you mean '" + *near + "'?" : "`capstone gradebook COHORT` lists them");
}

Result<void> Gradebook::mark(const Rubric& rubric, const std::vector<Mark>& marks) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  for (const Mark& mark : marks) {
    CAPSTONE_CHECK(require(mark.submission));
    std::vector<std::string> ids;
    for (const Criterion& c : rubric.criteria) ids.push_back(c.id);
    auto criterion = std::find_if(rubric.criteria.begin(), rubric.criteria.end(), [&](const Criterion& c) { return c.id == mark.criterion; });
    if (criterion == rubric.criteria.end()) {
      auto near = nearest(mark.criterion, ids);
      return fail("no criterion '" + mark.criterion + "'", mark.submission, near ? "did you mean '" + *near + "'?" : "the rubric has: " + join(ids, ", "));
    }
    if (!(mark.points >= 0 && mark.points <= criterion->weight))
      return fail(fmt::format("{} points for {}", points_text(mark.points), mark.criterion), mark.submission, fmt::format("0 to {}", criterion->weight));
    if (trim(mark.reason).empty()) return fail("a mark without a reason", mark.submission + ", " + mark.criterion, "--reason: what the student will read, and you when they ask");
    if (trim(mark.grader).empty()) return fail("a mark without a grader", mark.submission, "--grader NAME");
    if (mark.member) {
      CAPSTONE_TRY(Statement known, database_->prepare("SELECT name, id FROM member WHERE submission=?"));
      known.bind(mark.submission);
      std::vector<std::string> keys;
      for (;;) {
        CAPSTONE_TRY(bool row, known.step());
        if (!row) break;
        keys.push_back(key_of({known.text(0), known.text(1), {}}));
      }
      if (std::find(keys.begin(), keys.end(), *mark.member) == keys.end())
        return fail("no member '" + *mark.member + "'", mark.submission, "its members: " + join(keys, ", "));
    }
    CAPSTONE_TRY(Statement add, database_->prepare("INSERT INTO mark (submission, member, criterion, points, reason, grader, time, digest) "
                                                   "SELECT ?,?,?,?,?,?,?, digest FROM submission WHERE name=?"));
    CAPSTONE_CHECK(add.bind(mark.submission).bind_optional(mark.member).bind(mark.criterion).bind(mark.points).bind(to_utf8(mark.reason)).bind(to_utf8(mark.grader))
                       .bind(utc_now()).bind(mark.submission).run());
  }
  return transaction.commit();
}

Result<std::vector<GradebookRow>> Gradebook::rows(const Rubric& rubric) const {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i) places[rubric.criteria[i].id] = i;
  // The last mark of each (submission, member, criterion); ids grow.
  std::map<std::string, std::vector<Mark>> marks;
  CAPSTONE_TRY(Statement given, database_->prepare("SELECT submission, member, criterion, points, reason, grader, time, digest FROM mark ORDER BY id"));
  for (;;) {
    CAPSTONE_TRY(bool row, given.step());
    if (!row) break;
    Mark mark{given.text(0), given.text(2), {}, given.number(3), given.text(4), given.text(5), given.text(6), given.text(7)};
    if (!given.is_null(1)) mark.member = given.text(1);
    marks[mark.submission].push_back(std::move(mark));
  }
  // What every person was last shown, criterion by criterion.
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> shown;
  CAPSTONE_TRY(Statement published, database_->prepare(
      "SELECT submission, person, criterion, points, reason FROM published WHERE publication = (SELECT max(id) FROM publication)"));
  for (;;) {
    CAPSTONE_TRY(bool row, published.step());
    if (!row) break;
    shown[{published.text(0), published.text(1)}][published.text(2)] = points_text(published.number(3)) + "|" + published.text(4);
  }
  std::vector<GradebookRow> rows;
  CAPSTONE_TRY(Statement all, database_->prepare("SELECT s.name, s.problem, s.state, s.fault, s.why, s.digest, s.late, m.name, m.id, m.email "
                                                 "FROM submission s JOIN member m ON m.submission = s.name ORDER BY s.name, m.place"));
  for (;;) {
    CAPSTONE_TRY(bool more, all.step());
    if (!more) return rows;
    GradebookRow row;
    row.submission = all.text(0), row.problem = all.text(1), row.state = all.text(2), row.fault = all.text(3), row.why = all.text(4), row.digest = all.text(5);
    row.late = all.integer(6) != 0;
    row.person = {all.text(7), all.text(8), all.text(9)};
    row.marks.resize(rubric.criteria.size());
    // A mark for one member stands in front of the team's, whichever came first.
    for (bool own : {false, true})
      for (const Mark& mark : marks[row.submission]) {
        if (mark.member.has_value() != own || (own && *mark.member != key_of(row.person))) continue;
        auto place = places.find(mark.criterion);
        if (place == places.end()) continue;   // of a rubric that is no longer this cohort's; history shows it
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

Result<int> Gradebook::publish(const Rubric& rubric, const std::string& by) {
  if (trim(by).empty()) return fail("nobody publishes", {}, "--grader NAME");
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  CAPSTONE_TRY(auto table, rows(rubric));
  CAPSTONE_TRY(Statement publication, database_->prepare("INSERT INTO publication (time, publisher) VALUES (?,?)"));
  CAPSTONE_CHECK(publication.bind(utc_now()).bind(to_utf8(by)).run());
  int people = 0;
  for (const GradebookRow& row : table) {
    people += std::any_of(row.marks.begin(), row.marks.end(), [](const auto& mark) { return mark.has_value(); });
    for (const auto& mark : row.marks) {
      if (!mark) continue;
      CAPSTONE_TRY(Statement copy, database_->prepare("INSERT INTO published SELECT max(id),?,?,?,?,?,?,?,? FROM publication"));
      CAPSTONE_CHECK(copy.bind(row.submission).bind(key_of(row.person)).bind(mark->criterion).bind(mark->points).bind(mark->reason).bind(mark->grader)
                         .bind(mark->time).bind(mark->digest).run());
    }
  }
  CAPSTONE_CHECK(transaction.commit());
  return people;
}

Result<std::vector<HistoryEntry>> Gradebook::history(const std::string& submission) const {
  CAPSTONE_CHECK(require(submission));
  std::vector<HistoryEntry> entries;
  std::string present;
  CAPSTONE_TRY(Statement attempts, database_->prepare("SELECT a.time, a.state, a.fault, a.why, a.digest, s.digest FROM attempt a JOIN submission s ON s.name = a.submission "
                                                      "WHERE a.submission=? ORDER BY a.id"));
  attempts.bind(submission);
  for (;;) {
    CAPSTONE_TRY(bool row, attempts.step());
    if (!row) break;
    present = attempts.text(5);
    entries.push_back({attempts.text(0), fmt::format("judged: {}{}{} (handed in: {})", attempts.text(1), attempts.text(2).empty() ? "" : " (" + attempts.text(2) + ")",
                                                     attempts.text(3).empty() ? "" : ": " + attempts.text(3), attempts.text(4).substr(0, 12))});
  }
  CAPSTONE_TRY(Statement given, database_->prepare("SELECT time, criterion, points, grader, reason, member, digest FROM mark WHERE submission=? ORDER BY id"));
  given.bind(submission);
  for (;;) {
    CAPSTONE_TRY(bool row, given.step());
    if (!row) break;
    entries.push_back({given.text(0), fmt::format("{} {} by {}{}: {}{}", given.text(1), points_text(given.number(2)), given.text(3), given.is_null(5) ? "" : " for " + given.text(5),
                                                  given.text(4), given.text(6) == present ? "" : " (given for an earlier version, " + given.text(6).substr(0, 12) + ")")});
  }
  CAPSTONE_TRY(Statement published, database_->prepare("SELECT p.time, p.publisher, x.person, sum(x.points) FROM published x JOIN publication p ON p.id = x.publication "
                                                       "WHERE x.submission=? GROUP BY p.id, x.person ORDER BY p.id"));
  published.bind(submission);
  for (;;) {
    CAPSTONE_TRY(bool row, published.step());
    if (!row) break;
    entries.push_back({published.text(0), fmt::format("published by {}: {} sees {}", published.text(1), published.text(2), points_text(published.number(3)))});
  }
  std::stable_sort(entries.begin(), entries.end(), [](const HistoryEntry& a, const HistoryEntry& b) { return a.time < b.time; });
  return entries;
}

}  // namespace capstone
