#include "harness/course/gradebook/schema.h"

#include <array>
#include <charconv>

#include "harness/base/text.h"

namespace capstone::detail {
namespace {

// One migration step per schema version. The tables `attempt`, `mark`, `second_mark`, `grace`, `decision`,
// `ruling`, `rejudgement`, `assignment`, `item_text` and `line_comment` are append-only; `submission` says
// which attempt is the current one. A `draft` row is only ever flagged: 1 undone, 2 given as a mark. `token`
// and `secret` are SHA-256 of what the grader or student holds. The column `items` lists ids of `item`,
// separated by spaces. `given_mark` leaves out the marks of others that a changed item made again: they are
// no judgement of the grader who changed it. A `second_mark` that does not count came after another one of
// the same grader. `blind` is a second marking; `beat` is when a browser last had it open.
constexpr std::array kSteps{
    R"(
CREATE TABLE submission (name TEXT PRIMARY KEY, problem TEXT NOT NULL, state TEXT NOT NULL, fault TEXT NOT NULL,
  why TEXT NOT NULL, late INTEGER NOT NULL, digest TEXT NOT NULL, finished TEXT NOT NULL);
CREATE TABLE member (submission TEXT NOT NULL REFERENCES submission(name), place INTEGER NOT NULL, name TEXT NOT NULL,
  id TEXT NOT NULL, email TEXT NOT NULL, PRIMARY KEY (submission, place));
CREATE TABLE attempt (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), digest TEXT NOT NULL,
  inputs TEXT NOT NULL, state TEXT NOT NULL, fault TEXT NOT NULL, why TEXT NOT NULL, time TEXT NOT NULL, UNIQUE (submission, inputs, time));
CREATE TABLE mark (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), member TEXT,
  criterion TEXT NOT NULL, points REAL NOT NULL, reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
CREATE INDEX mark_of ON mark (submission, criterion);
CREATE TABLE publication (id INTEGER PRIMARY KEY, time TEXT NOT NULL, publisher TEXT NOT NULL);
CREATE TABLE published (publication INTEGER NOT NULL REFERENCES publication(id), submission TEXT NOT NULL, person TEXT NOT NULL,
  criterion TEXT NOT NULL, points REAL NOT NULL, reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
CREATE INDEX published_of ON published (submission);
)",
    R"(
ALTER TABLE submission ADD COLUMN summary TEXT NOT NULL DEFAULT '{}';
CREATE TABLE grace (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), member TEXT, days REAL NOT NULL,
  reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL);
CREATE TABLE decision (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), decision TEXT NOT NULL,
  reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE rejudgement (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), digest TEXT NOT NULL,
  verdict TEXT NOT NULL, file TEXT NOT NULL, time TEXT NOT NULL);
CREATE TABLE blind (code TEXT PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), grader TEXT NOT NULL, time TEXT NOT NULL,
  UNIQUE (submission, grader));
CREATE TABLE second_mark (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), criterion TEXT NOT NULL,
  points REAL NOT NULL, reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
)",
    R"(
ALTER TABLE submission ADD COLUMN submitted TEXT NOT NULL DEFAULT '';
ALTER TABLE submission ADD COLUMN deadline TEXT NOT NULL DEFAULT '';
)",
    R"(
CREATE TABLE grader (name TEXT PRIMARY KEY, role TEXT NOT NULL, only_assigned INTEGER NOT NULL, token TEXT NOT NULL UNIQUE,
  time TEXT NOT NULL);
CREATE TABLE session (secret TEXT PRIMARY KEY, grader TEXT NOT NULL REFERENCES grader(name) ON DELETE CASCADE, time TEXT NOT NULL);
CREATE TABLE claim (submission TEXT PRIMARY KEY REFERENCES submission(name), grader TEXT NOT NULL, since TEXT NOT NULL,
  beat INTEGER NOT NULL);
CREATE TABLE assignment (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), grader TEXT NOT NULL,
  author TEXT NOT NULL, time TEXT NOT NULL);
CREATE TABLE sheet_code (code TEXT PRIMARY KEY, submission TEXT NOT NULL UNIQUE REFERENCES submission(name));
CREATE TABLE draft (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), grader TEXT NOT NULL,
  criterion TEXT NOT NULL, points TEXT NOT NULL, items TEXT NOT NULL, reason TEXT NOT NULL, time TEXT NOT NULL,
  undone INTEGER NOT NULL DEFAULT 0);
CREATE INDEX draft_of ON draft (submission, grader);
CREATE TABLE item (id INTEGER PRIMARY KEY, criterion TEXT NOT NULL);
CREATE TABLE item_text (id INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES item(id), points REAL NOT NULL,
  text TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL);
CREATE TABLE line_comment (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), file TEXT NOT NULL,
  line INTEGER NOT NULL, text TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
CREATE INDEX line_comment_of ON line_comment (submission);
ALTER TABLE mark ADD COLUMN items TEXT NOT NULL DEFAULT '';
ALTER TABLE mark ADD COLUMN own_points REAL;
ALTER TABLE mark ADD COLUMN own_reason TEXT;
)",
    R"(
CREATE TABLE ruling (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), kind TEXT NOT NULL,
  value TEXT NOT NULL, reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
)",
    R"(
CREATE VIEW given_mark AS SELECT * FROM mark m WHERE m.items = '' OR NOT EXISTS (SELECT 1 FROM mark o WHERE o.id < m.id
  AND o.submission = m.submission AND o.criterion = m.criterion AND o.member IS m.member AND o.digest = m.digest
  AND o.grader <> m.grader AND o.items = m.items AND o.own_points IS m.own_points AND o.own_reason IS m.own_reason);
ALTER TABLE blind ADD COLUMN beat INTEGER NOT NULL DEFAULT 0;
ALTER TABLE draft ADD COLUMN second INTEGER NOT NULL DEFAULT 0;
)",
    R"(
CREATE TABLE student_token (token TEXT PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), person TEXT NOT NULL,
  time TEXT NOT NULL, UNIQUE (submission, person));
CREATE TABLE student_session (secret TEXT PRIMARY KEY, token TEXT NOT NULL REFERENCES student_token(token) ON DELETE CASCADE,
  time TEXT NOT NULL);
CREATE TABLE published_comment (publication INTEGER NOT NULL REFERENCES publication(id), submission TEXT NOT NULL,
  file TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, grader TEXT NOT NULL);
CREATE INDEX published_comment_of ON published_comment (submission);
)",
    R"(
ALTER TABLE second_mark ADD COLUMN counts INTEGER NOT NULL DEFAULT 1;
)"};

Result<std::size_t> version_of(const Database& database, const std::filesystem::path& file) {
  CAPSTONE_TRY(Statement schema, database.prepare("PRAGMA user_version"));
  CAPSTONE_TRY(bool row, schema.step());
  const std::size_t version = row ? static_cast<std::size_t>(schema.integer(0)) : 0;
  if (version > kSteps.size())
    return fail(fmt::format("the gradebook has schema {}; this version reads {}", version, kSteps.size()),
                file.string(), "use the newer version of capstone that wrote it");
  return version;
}

}  // namespace

std::vector<std::int64_t> ids_in(const std::string& text) {
  std::vector<std::int64_t> ids;
  for (const std::string& word : split(text, ' ')) {
    std::int64_t id = 0;
    if (auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), id);
        code == std::errc() && end == word.data() + word.size())
      ids.push_back(id);
  }
  return ids;
}

std::string text_of(const std::vector<std::int64_t>& ids) { return fmt::format("{}", fmt::join(ids, " ")); }

Result<void> bring_up_to_date(const Database& database, const std::filesystem::path& file) {
  CAPSTONE_TRY(std::size_t version, version_of(database, file));
  if (version == kSteps.size()) return {};
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database));
  CAPSTONE_TRY(version, version_of(database, file));  // another program may have migrated it in the meantime
  for (; version < kSteps.size(); ++version) CAPSTONE_CHECK(database.run(kSteps[version]));
  CAPSTONE_CHECK(database.run(fmt::format("PRAGMA user_version = {}", version).c_str()));
  return transaction.commit();
}

}  // namespace capstone::detail
