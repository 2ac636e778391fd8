// Graders, their tokens and their sessions.
#include <algorithm>
#include <ctime>

#include "harness/base/database.h"
#include "harness/base/digest.h"
#include "harness/base/random_id.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/marking.h"

namespace capstone {

namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::string_view kOwner = "owner", kGraderRole = "grader";

Instant system_now() { return static_cast<Instant>(std::time(nullptr)); }

Grader grader_in(const Statement& row) {
  return {row.text(0), row.text(1) == kOwner ? GraderRole::kOwner : GraderRole::kGrader, row.integer(2) != 0,
          row.text(3)};
}

}  // namespace

Marking::Marking(Gradebook& book, Clock clock)
    : book_(book), database_(*book.database_), clock_(clock ? std::move(clock) : system_now) {}

Result<std::string> Marking::add_grader(const std::string& name, GraderRole role, bool only_assigned) {
  if (trim(name).empty()) return fail("the grader has no name", {}, "capstone grader add NAME");
  CAPSTONE_TRY(std::string token, random_id(kSecretBytes));
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(database_));
  CAPSTONE_TRY(Statement add,
               database_.prepare("INSERT INTO grader VALUES (?,?,?,?,?) ON CONFLICT (name) DO UPDATE SET "
                                 "role=excluded.role, only_assigned=excluded.only_assigned, "
                                 "token=excluded.token"));
  CAPSTONE_CHECK(add.bind(to_utf8(name))
                     .bind(role == GraderRole::kOwner ? kOwner : kGraderRole)
                     .bind(std::int64_t{only_assigned})
                     .bind(sha256_hex(token))
                     .bind(utc_now())
                     .run());
  CAPSTONE_TRY(Statement end, database_.prepare("DELETE FROM session WHERE grader=?"));
  CAPSTONE_CHECK(end.bind(name).run());
  CAPSTONE_CHECK(transaction.commit());
  return token;
}

Result<void> Marking::remove_grader(const std::string& name) {
  CAPSTONE_TRY(auto all, graders());
  std::vector<std::string> names;
  for (const Grader& grader : all) names.push_back(grader.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    auto near = nearest(name, names);
    return fail("no grader is called '" + name + "'", {},
                near ? "did you mean '" + *near + "'?" : "`capstone grader list` lists them");
  }
  CAPSTONE_TRY(Statement remove, database_.prepare("DELETE FROM grader WHERE name=?"));
  return remove.bind(name).run();  // the sessions go with it
}

Result<std::vector<Grader>> Marking::graders() const {
  CAPSTONE_TRY(Statement all,
               database_.prepare("SELECT name, role, only_assigned, time FROM grader ORDER BY name"));
  std::vector<Grader> graders;
  for (;;) {
    CAPSTONE_TRY(bool row, all.step());
    if (!row) return graders;
    graders.push_back(grader_in(all));
  }
}

Result<std::optional<std::string>> Marking::log_in(const std::string& token) {
  CAPSTONE_TRY(std::string secret, random_id(kSecretBytes));
  CAPSTONE_TRY(Statement find, database_.prepare("SELECT name FROM grader WHERE token=?"));
  CAPSTONE_TRY(bool known, find.bind(sha256_hex(token)).step());
  if (!known) return std::nullopt;
  CAPSTONE_TRY(Statement open, database_.prepare("INSERT INTO session VALUES (?,?,?)"));
  CAPSTONE_CHECK(open.bind(sha256_hex(secret)).bind(find.text(0)).bind(utc_now()).run());
  return secret;
}

Result<void> Marking::log_out(const std::string& secret) {
  CAPSTONE_TRY(Statement end, database_.prepare("DELETE FROM session WHERE secret=?"));
  return end.bind(sha256_hex(secret)).run();
}

Result<std::optional<Grader>> Marking::grader_of_session(const std::string& secret) const {
  CAPSTONE_TRY(Statement find,
               database_.prepare("SELECT g.name, g.role, g.only_assigned, g.time FROM session s "
                                 "JOIN grader g ON g.name = s.grader WHERE s.secret=?"));
  CAPSTONE_TRY(bool known, find.bind(sha256_hex(secret)).step());
  if (!known) return std::nullopt;
  return grader_in(find);
}

}  // namespace capstone
