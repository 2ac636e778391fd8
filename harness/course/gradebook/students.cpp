#include "harness/course/gradebook/students.h"

#include <algorithm>

#include "harness/base/database.h"
#include "harness/base/digest.h"
#include "harness/base/random_id.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/schema.h"

namespace capstone {

using detail::key_of;

namespace {

constexpr std::size_t kSecretBytes = 32;

}  // namespace

StudentAccess::StudentAccess(Gradebook& book) : book_(book), database_(*book.database_) {}

Result<std::vector<StudentToken>> StudentAccess::make_tokens(const Rubric& rubric,
                                                             const std::vector<std::string>& names,
                                                             bool again) {
  for (const std::string& name : names) CAPSTONE_CHECK(book_.require(name));
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  CAPSTONE_TRY(const auto rows, book_.rows(rubric));
  std::vector<StudentToken> made;
  for (const GradebookRow& row : rows) {
    if (!names.empty() && std::find(names.begin(), names.end(), row.submission) == names.end()) continue;
    const std::string& person = key_of(row.person);
    CAPSTONE_TRY(Statement known,
                 database_.prepare("SELECT 1 FROM student_token WHERE submission=? AND person=?"));
    CAPSTONE_TRY(const bool there, known.bind(row.submission).bind(person).step());
    if (there && !again) continue;
    CAPSTONE_TRY(const std::string token, random_id(kSecretBytes));
    // The old token's sessions go with it.
    CAPSTONE_TRY(Statement end,
                 database_.prepare("DELETE FROM student_token WHERE submission=? AND person=?"));
    CAPSTONE_CHECK(end.bind(row.submission).bind(person).run());
    CAPSTONE_TRY(Statement add, database_.prepare("INSERT INTO student_token VALUES (?,?,?,?)"));
    CAPSTONE_CHECK(add.bind(sha256_hex(token)).bind(row.submission).bind(person).bind(utc_now()).run());
    made.push_back({row.submission, row.person, token});
  }
  CAPSTONE_CHECK(transaction.commit());
  return made;
}

Result<bool> StudentAccess::any_token() const {
  CAPSTONE_TRY(Statement any, database_.prepare("SELECT 1 FROM student_token LIMIT 1"));
  return any.step();
}

Result<std::optional<std::string>> StudentAccess::log_in(const std::string& token) {
  CAPSTONE_TRY(const std::string secret, random_id(kSecretBytes));
  CAPSTONE_TRY(Statement open,
               database_.prepare("INSERT INTO student_session (secret, token, time) SELECT ?, token, ? FROM "
                                 "student_token WHERE token=? RETURNING 1"));
  CAPSTONE_TRY(const bool known,
               open.bind(sha256_hex(secret)).bind(utc_now()).bind(sha256_hex(token)).step());
  if (!known) return std::nullopt;
  CAPSTONE_CHECK(open.step());
  return secret;
}

Result<void> StudentAccess::log_out(const std::string& secret) {
  CAPSTONE_TRY(Statement end, database_.prepare("DELETE FROM student_session WHERE secret=?"));
  return end.bind(sha256_hex(secret)).run();
}

Result<std::optional<Student>> StudentAccess::student_of_session(const std::string& secret) const {
  CAPSTONE_TRY(Statement find, database_.prepare("SELECT t.submission, t.person FROM student_session s JOIN "
                                                 "student_token t ON t.token = s.token WHERE s.secret=?"));
  CAPSTONE_TRY(const bool known, find.bind(sha256_hex(secret)).step());
  if (!known) return std::nullopt;
  return Student{find.text(0), find.text(1)};
}

Result<std::optional<PublishedPage>> StudentAccess::page_of(const Rubric& rubric,
                                                            const Student& student) const {
  CAPSTONE_TRY(const auto rows, book_.published_rows(rubric));
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const GradebookRow& one) {
    return one.submission == student.submission && key_of(one.person) == student.person &&
           std::any_of(one.marks.begin(), one.marks.end(), [](const auto& mark) { return mark.has_value(); });
  });
  if (row == rows.end()) return std::nullopt;
  PublishedPage page{*row, {}};
  CAPSTONE_TRY(Statement said,
               database_.prepare("SELECT file, line, text, grader FROM published_comment WHERE submission=?1 "
                                 "AND publication = (SELECT max(publication) FROM published WHERE "
                                 "submission=?1 AND person=?2) ORDER BY file, line"));
  said.bind(student.submission).bind(student.person);
  for (;;) {
    CAPSTONE_TRY(const bool more, said.step());
    if (!more) return page;
    page.comments.push_back(
        {said.text(0), static_cast<int>(said.integer(1)), said.text(2), said.text(3), {}});
  }
}

}  // namespace capstone
