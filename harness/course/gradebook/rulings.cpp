// Rulings about whole submissions, and the people who never submitted.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "harness/base/database.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/gradebook.h"
#include "harness/course/gradebook/schema.h"
#include "harness/course/submissions.h"

namespace capstone {

using detail::key_of;

namespace {

constexpr std::array<std::string_view, 4> kKinds{"dropped", "restored", "archive chosen", "cleared"};

std::string_view name_of(Ruling::Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

// What a clearing is about. Numbers differ from one judgement to the next; what was found does not.
std::string finding_of(const std::string& fault, const std::string& why) {
  std::string text = fault + ": " + why;
  for (char& c : text)
    if (std::isdigit(static_cast<unsigned char>(c))) c = '0';
  for (std::string before; before != text;) {
    before = text;
    text = replace_all(replace_all(std::move(text), "00", "0"), "0.0", "0");
  }
  return text;
}

}  // namespace

std::map<std::string, Ruling> of_kind(const std::vector<Ruling>& rulings, Ruling::Kind kind) {
  std::map<std::string, Ruling> found;
  for (const Ruling& ruling : rulings)
    if (ruling.kind == kind) found[ruling.submission] = ruling;
  return found;
}

Result<void> Gradebook::rule(const std::vector<Ruling>& rulings) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  for (const Ruling& ruling : rulings) {
    CAPSTONE_CHECK(require(ruling.submission));
    if (trim(ruling.reason).empty())
      return fail("no reason is given", ruling.submission, "add --reason TEXT: the history keeps it");
    if (trim(ruling.grader).empty())
      return fail("no grader is named", ruling.submission, "add --grader NAME: the history says who decided");
    CAPSTONE_TRY(Statement now,
                 database_->prepare("SELECT state, fault, why, digest FROM submission WHERE name=?"));
    CAPSTONE_CHECK(now.bind(ruling.submission).step());
    std::string value = ruling.value;
    if (ruling.kind == Ruling::Kind::kCleared) {
      if (now.text(0) != capstone::name_of(GradingState::kNeedsMentor))
        return fail("there is nothing to clear: the state is " + now.text(0), ruling.submission,
                    "only what `grade` left as needs_mentor can be cleared");
      value = finding_of(now.text(1), now.text(2));
    }
    CAPSTONE_TRY(Statement add, database_->prepare("INSERT INTO ruling (submission, kind, value, reason, "
                                                   "grader, time, digest) VALUES (?,?,?,?,?,?,?)"));
    CAPSTONE_CHECK(add.bind(ruling.submission)
                       .bind(name_of(ruling.kind))
                       .bind(to_utf8(value))
                       .bind(to_utf8(ruling.reason))
                       .bind(to_utf8(ruling.grader))
                       .bind(utc_now())
                       .bind(now.text(3))
                       .run());
  }
  return transaction.commit();
}

Result<std::vector<Ruling>> Gradebook::rulings() const {
  CAPSTONE_TRY(
      Statement all,
      database_->prepare("SELECT r.submission, r.kind, r.value, r.reason, r.grader, r.time, r.digest, "
                         "s.digest, s.state, s.fault, s.why FROM ruling r JOIN submission s ON s.name = "
                         "r.submission ORDER BY r.id"));
  std::map<std::pair<std::string, Ruling::Kind>, Ruling> last;
  for (;;) {
    CAPSTONE_TRY(bool row, all.step());
    if (!row) break;
    const auto kind = std::find(kKinds.begin(), kKinds.end(), all.text(1));
    if (kind == kKinds.end()) continue;
    Ruling ruling{static_cast<Ruling::Kind>(kind - kKinds.begin()),
                  all.text(0),
                  all.text(2),
                  all.text(3),
                  all.text(4),
                  all.text(5),
                  all.text(6)};
    const std::pair dropped{ruling.submission, Ruling::Kind::kDropped};
    if (ruling.kind == Ruling::Kind::kRestored) {
      last.erase(dropped);
    } else if (ruling.kind != Ruling::Kind::kCleared ||
               (ruling.digest == all.text(7) &&
                all.text(8) == capstone::name_of(GradingState::kNeedsMentor) &&
                ruling.value == finding_of(all.text(9), all.text(10)))) {
      last[{ruling.submission, ruling.kind}] = ruling;
    }
  }
  std::vector<Ruling> in_force;
  for (auto& [key, ruling] : last) in_force.push_back(std::move(ruling));
  return in_force;
}

Result<void> Gradebook::require_counts(const std::string& submission) const {
  CAPSTONE_TRY(const auto in_force, rulings());
  for (const Ruling& ruling : in_force)
    if (ruling.kind == Ruling::Kind::kDropped && ruling.submission == submission)
      return fail(fmt::format("it was dropped by {}: {}", ruling.grader, ruling.reason), submission,
                  "`capstone gradebook choose " + submission + " --reason TEXT` lets it count again");
  return {};
}

Result<void> Gradebook::keep_missing(const std::vector<Person>& people) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  std::map<std::string, std::string> known;  // key of the person → the row's name
  CAPSTONE_TRY(
      Statement stored,
      database_->prepare("SELECT s.name, m.name, m.id FROM submission s JOIN member m ON m.submission = "
                         "s.name WHERE s.state IN ('missing', 'found')"));
  for (;;) {
    CAPSTONE_TRY(bool row, stored.step());
    if (!row) break;
    known[key_of({stored.text(1), stored.text(2), {}})] = stored.text(0);
  }
  CAPSTONE_TRY(auto names, submissions());
  std::set<std::string> taken(names.begin(), names.end());
  CAPSTONE_CHECK(database_->run("UPDATE submission SET state='found' WHERE state='missing'"));
  for (const Person& person : people) {
    if (auto row = known.find(key_of(person)); row != known.end()) {
      CAPSTONE_TRY(Statement again, database_->prepare("UPDATE submission SET state='missing' WHERE name=?"));
      CAPSTONE_CHECK(again.bind(row->second).run());
      continue;
    }
    const std::string base = file_name_of(person.name);
    std::string name = base;
    for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}~{}", base, n);
    CAPSTONE_TRY(Statement add,
                 database_->prepare("INSERT INTO submission (name, problem, state, fault, why, late, digest, "
                                    "finished) VALUES (?,'','missing','','never submitted',0,'',?)"));
    CAPSTONE_CHECK(add.bind(name).bind(utc_now()).run());
    CAPSTONE_TRY(Statement member, database_->prepare("INSERT INTO member VALUES (?,0,?,?,?)"));
    CAPSTONE_CHECK(member.bind(name)
                       .bind(to_utf8(person.name))
                       .bind(to_utf8(person.id))
                       .bind(to_utf8(person.email))
                       .run());
  }
  return transaction.commit();
}

}  // namespace capstone
