#include "harness/course/gradebook/schema.h"

#include <array>

namespace capstone::detail {
namespace {

// One migration step per schema version. The tables `attempt`, `mark`, `second_mark`, `grace`, `decision`,
// `ruling` and `rejudgement` are append-only; `submission` says which attempt is the current one.
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
CREATE TABLE ruling (id INTEGER PRIMARY KEY, submission TEXT NOT NULL REFERENCES submission(name), kind TEXT NOT NULL,
  value TEXT NOT NULL, reason TEXT NOT NULL, grader TEXT NOT NULL, time TEXT NOT NULL, digest TEXT NOT NULL);
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
