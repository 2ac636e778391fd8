#include "harness/course/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "harness/base/ascii.h"
#include "harness/base/csv.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

std::string lower(std::string_view text) { return ascii_lower(trim(text)); }

// The parts of a name in lower case, sorted, so that "Lovelace, Ada" and "ada lovelace" are equal.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (char c : lower(name)) {
    auto u = static_cast<unsigned char>(c);
    if (u >= 0x80 || (u >= 'a' && u <= 'z') || (u >= '0' && u <= '9'))
      parts.back() += c;
    else if (c != '\'' && !parts.back().empty())
      parts.emplace_back();
  }
  if (parts.back().empty()) parts.pop_back();
  std::sort(parts.begin(), parts.end());
  return parts;
}

// Canvas writes the family name and then the other names, without a separator: "lovelaceada".
bool runs_together(const std::string& joined, std::vector<std::string> parts) {
  if (parts.empty() || parts.size() > 6) return false;
  do {
    if (join(parts, "") == joined) return true;
  } while (std::next_permutation(parts.begin(), parts.end()));
  return false;
}

class Matcher {
 public:
  explicit Matcher(const std::vector<RosterRow>& roster) {
    for (std::size_t i = 0; i < roster.size(); ++i) {
      if (!roster[i].id.empty()) by_id_[lower(roster[i].id)].insert(i);
      if (!roster[i].email.empty()) by_email_[lower(roster[i].email)].insert(i);
      by_name_[parts_of(roster[i].name)].insert(i);
    }
  }

  std::optional<std::size_t> find(const std::string& name, const std::string& id,
                                  const std::string& email) const {
    if (auto row = only(by_id_, lower(id))) return row;
    if (auto row = only(by_email_, lower(email))) return row;
    if (auto row = only(by_name_, parts_of(name))) return row;
    auto parts = parts_of(name);
    if (parts.size() != 1) return std::nullopt;
    std::set<std::size_t> rows;
    for (const auto& [their_parts, numbers] : by_name_)
      if (runs_together(parts[0], their_parts)) rows.insert(numbers.begin(), numbers.end());
    return rows.size() == 1 ? std::optional(*rows.begin()) : std::nullopt;
  }

 private:
  template <class Key>
  static std::optional<std::size_t> only(const std::map<Key, std::set<std::size_t>>& index, const Key& key) {
    auto found = key.empty() ? index.end() : index.find(key);
    return found != index.end() && found->second.size() == 1 ? std::optional(*found->second.begin())
                                                             : std::nullopt;
  }

  std::map<std::string, std::set<std::size_t>> by_id_, by_email_;
  std::map<std::vector<std::string>, std::set<std::size_t>> by_name_;
};

// The first cell that is not empty, among several spellings of a column's name.
std::string cell(const CsvTable& table, std::size_t row, std::initializer_list<const char*> columns) {
  for (const char* column : columns)
    if (std::string text = table.at(row, column); !text.empty()) return text;
  return {};
}

Result<std::optional<Instant>> time_in(const std::string& text, const fs::path& file, int line) {
  if (text.empty()) return std::optional<Instant>();
  auto read = parse_instant(text);
  if (!read) return fail(read.error().what, fmt::format("{}:{}", file.string(), line), read.error().hint);
  return std::optional(*read);
}

}  // namespace

Result<std::vector<RosterRow>> read_roster(const fs::path& file) {
  CAPSTONE_TRY(std::string text, read_file(file, 64u << 20));
  CAPSTONE_TRY(CsvTable table, CsvTable::read(text, file.string(), {}));
  auto has_any = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return table.has(n); });
  };
  if (!has_any({"name", "student", "full name", "last name", "surname"}))
    return fail(
        "no column 'name'", file.string() + ":1",
        "write this heading line: name,id,email (this file has: " + join(table.columns(), ", ") + ")");
  std::vector<RosterRow> rows;
  std::map<std::string, int> ids;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    RosterRow row;
    row.line = table.line(i);
    row.name = cell(table, i, {"name", "student", "full name"});
    if (row.name.empty()) {
      std::string first = cell(table, i, {"first name"}), last = cell(table, i, {"last name", "surname"});
      row.name = first + (first.empty() || last.empty() ? "" : " ") + last;
    }
    row.id = cell(table, i, {"id", "sid", "student id", "id number", "sis user id", "username"});
    row.email = cell(table, i, {"email", "e-mail", "email address"});
    row.repository = cell(table, i, {"repository", "repo", "student_repository_url"});
    row.level = cell(table, i, {"level"});
    row.interest = cell(table, i, {"interest", "interests"});
    CAPSTONE_TRY(row.submitted, time_in(cell(table, i, {"submitted", "submission time"}), file, row.line));
    CAPSTONE_TRY(row.deadline, time_in(cell(table, i, {"deadline", "due"}), file, row.line));
    if (row.name.empty())
      return fail("a row without a name", fmt::format("{}:{}", file.string(), row.line),
                  "add the name, or remove the row");
    if (!row.id.empty()) {
      auto [known, fresh] = ids.emplace(lower(row.id), row.line);
      if (!fresh)
        return fail("the id " + row.id + " appears twice", fmt::format("{}:{}", file.string(), row.line),
                    fmt::format("line {} has the same id; correct one of them", known->second));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

RosterMatch match_roster(const std::vector<RosterRow>& roster, const std::vector<Claimant>& claimants) {
  Matcher matcher(roster);
  RosterMatch match;
  match.submissions.resize(roster.size());
  for (const Claimant& claimant : claimants) {
    std::set<std::size_t> rows;
    // The platform's record of who uploaded the submission is more reliable than a file inside it, but it
    // names only one member of a team.
    if (auto row = matcher.find(claimant.origin.person, claimant.origin.id, claimant.origin.email))
      rows.insert(*row);
    for (const Person& person : claimant.members)
      if (auto row = matcher.find(person.name, person.id, person.email)) rows.insert(*row);
    if (rows.empty() && claimant.members.empty())
      if (auto row = matcher.find(claimant.submission, claimant.submission, {})) rows.insert(*row);
    for (std::size_t row : rows) match.submissions[row].push_back(claimant.submission);
    if (rows.empty()) match.strangers.push_back(claimant.submission);
  }
  return match;
}

}  // namespace capstone
