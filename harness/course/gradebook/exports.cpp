#include "harness/course/gradebook/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>

#include "harness/base/csv.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/cell_table.h"
#include "harness/course/roster.h"

namespace capstone {
namespace {

std::string points(double value) { return fmt::format("{:g}", std::round(value * 100) / 100); }

std::string comment_of(const GradebookRow& row, const Rubric& rubric) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i)
    if (row.marks[i])
      parts.push_back(fmt::format("{} ({} of {}): {}", rubric.criteria[i].title, points(row.marks[i]->points),
                                  rubric.criteria[i].weight, row.marks[i]->reason));
  return join(parts, "\n");
}

// One way to identify people in a platform's table. The keys are tried in turn, the most reliable first.
using Key = std::function<RosterRow(std::size_t row)>;

// For each mark, the table's row, if exactly one row matches.
std::vector<std::optional<std::size_t>> rows_of(const std::vector<std::size_t>& people,
                                                const std::vector<Key>& keys,
                                                const std::vector<OutgoingMark>& marks) {
  std::vector<std::optional<std::size_t>> found(marks.size());
  for (const Key& key : keys) {
    std::vector<RosterRow> roster;
    for (std::size_t row : people) roster.push_back(key(row));
    std::vector<Claimant> claimants;
    for (std::size_t i = 0; i < marks.size(); ++i)
      if (!found[i]) claimants.push_back({std::to_string(i), {marks[i].person}, marks[i].origin});
    RosterMatch match = match_roster(roster, claimants);
    std::vector<std::vector<std::size_t>> places(marks.size());
    for (std::size_t r = 0; r < roster.size(); ++r)
      for (const std::string& claimant : match.submissions[r])
        places[std::stoul(claimant)].push_back(people[r]);
    for (std::size_t i = 0; i < marks.size(); ++i)
      if (!found[i] && places[i].size() == 1) found[i] = places[i][0];
  }
  return found;
}

struct Target {
  std::size_t grade = 0;  // column
  std::optional<std::size_t> comment;
  std::vector<std::size_t> people;  // rows
  std::vector<Key> keys;
  std::function<double(std::size_t row)> maximum;
  std::function<bool(std::size_t row)> locked;
  std::function<std::string(std::size_t row)> name;
  bool html = false;  // comments are HTML
};

// Moodle stores a feedback comment as HTML.
std::string html_of(const std::string& text) {
  std::string html = replace_all(replace_all(replace_all(text, "&", "&amp;"), "<", "&lt;"), ">", "&gt;");
  std::string out;
  for (const std::string& line : split(html, '\n'))
    if (const std::string_view words = trim(line); !words.empty()) out += "<p>" + std::string(words) + "</p>";
  return out;
}

FilledTable fill(CellTable table, const Target& target, const std::vector<OutgoingMark>& marks) {
  FilledTable out;
  const auto places = rows_of(target.people, target.keys, marks);
  std::map<std::size_t, std::vector<std::size_t>> wanted;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (places[i])
      wanted[*places[i]].push_back(i);
    else
      out.notes.push_back(fmt::format("no row for {} ({})", marks[i].person.name, marks[i].submission));
  }
  std::set<double> scales;
  for (const auto& [row, candidates] : wanted) {
    if (candidates.size() > 1) {
      std::vector<std::string> names;
      for (std::size_t i : candidates) names.push_back(marks[i].submission);
      out.notes.push_back(
          fmt::format("{} has several marks, so none was entered: {}", target.name(row), join(names, ", ")));
      continue;
    }
    if (target.locked(row)) {
      out.notes.push_back(target.name(row) + ": the platform does not allow changes to this grade");
      continue;
    }
    const OutgoingMark& mark = marks[candidates[0]];
    const double maximum = target.maximum(row);
    scales.insert(maximum);
    table.set(row, target.grade, points(mark.total * maximum / 100));
    if (target.comment) table.set(row, *target.comment, target.html ? html_of(mark.comment) : mark.comment);
    ++out.filled;
  }
  for (double maximum : scales)
    if (maximum != 100)
      out.notes.push_back(
          fmt::format("marks out of 100 were scaled to the platform's {} points", points(maximum)));
  for (std::size_t row : target.people)
    if (!wanted.contains(row)) out.notes.push_back("no mark for " + target.name(row));
  out.text = table.text();
  return out;
}

double number_or(const std::string& text, double otherwise) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && end != text.c_str() && value > 0 && std::isfinite(value) ? value : otherwise;
}

std::string digits_of(const std::string& text) {
  std::string out;
  for (char c : text)
    if (c >= '0' && c <= '9') out += c;
  return out;
}

// A key that identifies people by a single column.
Key by_id(const CellTable& table, std::optional<std::size_t> column) {
  return [&table, column](std::size_t row) {
    return RosterRow{{}, column ? table.at(row, *column) : std::string(), {}, 0};
  };
}
Key by_email(const CellTable& table, std::optional<std::size_t> column) {
  return [&table, column](std::size_t row) {
    return RosterRow{{}, {}, column ? table.at(row, *column) : std::string(), 0};
  };
}
Key by_name(const CellTable& table, std::size_t column) {
  return [&table, column](std::size_t row) { return RosterRow{table.at(row, column), {}, {}, 0}; };
}

}  // namespace

std::vector<OutgoingMark> outgoing_marks(const std::vector<GradebookRow>& rows, const Rubric& rubric,
                                         const std::map<std::string, ResultSummary>& summaries,
                                         std::vector<std::string>& left_out) {
  std::map<std::string, int> members;
  for (const GradebookRow& row : rows) ++members[row.submission];
  std::vector<OutgoingMark> out;
  for (const GradebookRow& row : rows) {
    if (!row.total()) {
      std::vector<std::string> missing;
      for (std::size_t i = 0; i < rubric.criteria.size(); ++i)
        if (!row.marks[i]) missing.push_back(rubric.criteria[i].id);
      left_out.push_back(
          fmt::format("{}, {}: not marked: {}", row.submission, row.person.name, join(missing, ", ")));
      continue;
    }
    OutgoingMark mark{row.submission, row.person, {}, *row.total(), comment_of(row, rubric)};
    if (auto known = summaries.find(row.submission); known != summaries.end() && members[row.submission] == 1)
      mark.origin = known->second.origin;
    out.push_back(std::move(mark));
  }
  return out;
}

Result<FilledTable> fill_canvas(const std::string& text, const std::string& file, const std::string& column,
                                const std::vector<OutgoingMark>& marks) {
  CAPSTONE_TRY(CellTable table, CellTable::read(text, file));
  const auto student = table.column("student"), id = table.column("id");
  if (!student || !id)
    return fail("not a gradebook of Canvas: no columns Student and ID", file + ":1",
                "use the file that Canvas exports: Grades > Export > Export Entire Gradebook");
  Target target;
  std::optional<std::size_t> grade;
  std::vector<std::string> assignments;
  for (std::size_t c = 0; c < table.columns(); ++c) {
    const std::string heading = table.at(0, c);
    if (heading.ends_with(")") && heading.find(" (") != std::string::npos) assignments.push_back(heading);
    if (heading == column || heading.starts_with(column + " (")) {
      if (grade)
        return fail("two assignments are called '" + column + "'", file + ":1",
                    "give the whole heading with its number, for example: " + heading);
      grade = c;
    }
  }
  if (!grade || column.empty()) {
    auto near = nearest(column, assignments);
    return fail("no assignment '" + column + "'", file + ":1",
                near ? "did you mean '" + *near + "'?" : "--column takes one of: " + join(assignments, ", "));
  }
  target.grade = *grade;
  double possible = 100;
  for (std::size_t row = 1; row < table.rows(); ++row) {
    if (table.at(row, *student) == "Points Possible")
      possible = number_or(table.at(row, *grade), 100);
    else if (!table.at(row, *id).empty())
      target.people.push_back(row);
  }
  target.keys = {by_id(table, id), by_id(table, table.column("sis user id")),
                 by_id(table, table.column("sis login id")), by_email(table, table.column("sis login id")),
                 by_name(table, *student)};
  target.maximum = [possible](std::size_t) { return possible; };
  target.locked = [](std::size_t) { return false; };
  target.name = [&table, &student](std::size_t row) { return table.at(row, *student); };
  return fill(table, target, marks);
}

Result<FilledTable> fill_moodle(const std::string& text, const std::string& file,
                                const std::vector<OutgoingMark>& marks) {
  CAPSTONE_TRY(CellTable table, CellTable::read(text, file));
  const auto identifier = table.column("identifier"), grade = table.column("grade"),
             name = table.column("full name");
  if (!identifier || !grade)
    return fail("not a grading worksheet of Moodle: no columns Identifier and Grade", file + ":1",
                "use the file that Moodle exports: Submissions > Actions > Download grading worksheet");
  Target target;
  target.grade = *grade;
  target.comment = table.column("feedback comments");
  target.html = true;
  for (std::size_t row = 1; row < table.rows(); ++row) target.people.push_back(row);
  target.keys = {[&table, identifier](std::size_t row) {
                   return RosterRow{{}, digits_of(table.at(row, *identifier)), {}, 0};
                 },
                 by_id(table, table.column("id number")), by_id(table, table.column("username")),
                 by_email(table, table.column("email address"))};
  if (name) target.keys.push_back(by_name(table, *name));
  const auto maximum = table.column("maximum grade"), may_change = table.column("grade can be changed");
  target.maximum = [&table, maximum](std::size_t row) {
    return maximum ? number_or(table.at(row, *maximum), 100) : 100;
  };
  target.locked = [&table, may_change](std::size_t row) {
    return may_change && table.at(row, *may_change) == "No";
  };
  target.name = [&table, name, identifier](std::size_t row) {
    return table.at(row, name ? *name : *identifier);
  };
  return fill(table, target, marks);
}

Json gradescope_results(const GradebookRow& row, const Rubric& rubric) {
  Json json{{"score", row.total() ? Json(*row.total()) : Json(nullptr)},
            {"max_score", 100},
            {"visibility", "visible"},
            {"tests", Json::array()}};
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i)
    if (row.marks[i])
      json["tests"].push_back({{"name", rubric.criteria[i].title},
                               {"score", row.marks[i]->points},
                               {"max_score", rubric.criteria[i].weight},
                               {"output", row.marks[i]->reason},
                               {"output_format", "text"},
                               {"visibility", "visible"}});
  return json;
}

std::string marks_csv(const std::vector<GradebookRow>& rows, const Rubric& rubric) {
  std::vector<std::string> heading{"name", "id", "email", "submission"};
  for (const Criterion& c : rubric.criteria) heading.push_back(c.id);
  heading.insert(heading.end(), {"total", "comment"});
  std::string text = csv_row(heading);
  for (const GradebookRow& row : rows) {
    std::vector<std::string> cells{row.person.name, row.person.id, row.person.email, row.submission};
    for (const auto& mark : row.marks) cells.push_back(mark ? points(mark->points) : "");
    cells.push_back(row.total() ? points(*row.total()) : "");
    cells.push_back(comment_of(row, rubric));
    text += csv_row(cells);
  }
  return text;
}

}  // namespace capstone
