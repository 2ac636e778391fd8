#include "harness/course/gradebook/backup.h"

#include <fmt/format.h>

#include "harness/base/database.h"
#include "harness/base/files.h"
#include "harness/course/gradebook/schema.h"

namespace capstone {

namespace {

// Removes an unfinished copy, whatever ended it.
struct Unfinished {
  fs::path path;
  ~Unfinished() {
    std::error_code code;
    if (!path.empty()) fs::remove(path, code);
  }
};

Result<long> count_in(const Database& database, const char* query) {
  CAPSTONE_TRY(Statement count, database.prepare(query));
  CAPSTONE_TRY(bool row, count.step());
  return row ? static_cast<long>(count.integer(0)) : 0;
}

}  // namespace

Result<void> back_up_gradebook(const fs::path& cohort, const fs::path& file) {
  std::error_code code;
  if (fs::exists(file, code)) return fail("the backup exists already", file.string(), "name a new file");
  CAPSTONE_TRY(const Database source,
               Database::open_existing(cohort / "gradebook.sqlite", detail::kGradebook));
  const Unfinished copy{temporary_beside(file)};
  // No other user may read it, not even while it grows.
  CAPSTONE_CHECK(write_file_atomic(copy.path, "", 0600));
  {
    CAPSTONE_TRY(const Database target, Database::open(copy.path, detail::kGradebook));
    CAPSTONE_CHECK(source.copy_to(target));
  }
  CAPSTONE_TRY(const GradebookCheck check, verify_gradebook(copy.path));
  if (!check.problems.empty())
    return fail("the gradebook is damaged: " + check.problems.front(), (cohort / "gradebook.sqlite").string(),
                "`capstone gradebook verify` lists everything; restore an earlier backup");
  fs::create_hard_link(copy.path, file, code);  // fails where the file has come to exist in the meantime
  if (code) return fail("cannot keep the backup: " + code.message(), file.string(), "name another place");
  return {};
}

Result<GradebookCheck> verify_gradebook(const fs::path& file) {
  CAPSTONE_TRY(const Database database, Database::open_existing(file, detail::kGradebook));
  GradebookCheck check;
  CAPSTONE_TRY(Statement integrity, database.prepare("PRAGMA integrity_check"));
  for (;;) {
    CAPSTONE_TRY(bool row, integrity.step());
    if (!row) break;
    if (integrity.text(0) != "ok") check.problems.push_back(integrity.text(0));
  }
  CAPSTONE_TRY(Statement lost, database.prepare("PRAGMA foreign_key_check"));
  for (;;) {
    CAPSTONE_TRY(bool row, lost.step());
    if (!row) break;
    check.problems.push_back(
        fmt::format("row {} of {} refers to a missing {}", lost.integer(1), lost.text(0), lost.text(2)));
  }
  CAPSTONE_TRY(check.submissions, count_in(database, "SELECT count(*) FROM submission"));
  CAPSTONE_TRY(check.marks, count_in(database, "SELECT count(*) FROM mark"));
  return check;
}

}  // namespace capstone
