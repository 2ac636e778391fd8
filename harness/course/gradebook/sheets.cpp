#include "harness/course/gradebook/sheets.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <cstdlib>

#include "harness/base/csv.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/lateness.h"
#include "harness/course/gradebook/literal_yaml.h"

namespace capstone {
namespace {

std::string number(double value) { return fmt::format("{:g}", value); }

// Makes a single YAML comment line from any text.
std::string remark(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return "# " + to_utf8(text) + "\n";
}

// A JSON string is valid YAML.
std::string quoted(const std::string& text) { return Json(to_utf8(text)).dump(); }

std::string place(const std::string& file, const YAML::Node& node) {
  return fmt::format("{}:{}", file, node.Mark().line + 1);
}

Result<YAML::Node> load(const std::string& text, const std::string& file) {
  try {
    return YAML::Load(text);
  } catch (const YAML::ParserException& problem) {
    return fail("not valid YAML: " + problem.msg, fmt::format("{}:{}", file, problem.mark.line + 1),
                "put quotation marks around a text that contains a colon or a quotation mark");
  }
}

// A key of YAML that is written without quotation marks or brackets.
bool is_plain(std::string_view key) {
  return !key.empty() && std::string_view("\"'[{?&*!|>%-").find(key.front()) == std::string_view::npos;
}

std::string scalar(const YAML::Node& node) { return node.IsScalar() ? node.Scalar() : std::string(); }

}  // namespace

Result<double> points_of(const std::string& text, const std::string& where) {
  const std::string plain = text.find('.') == std::string::npos ? replace_all(text, ",", ".") : text;
  char* end = nullptr;
  const double points = std::strtod(plain.c_str(), &end);
  if (text.empty() || *end || !std::isfinite(points))
    return fail("the points '" + text + "' are not a number", where, "write a number, for example 24.5");
  return points;
}

Result<std::string> reason_of(const std::string& text, const std::string& where, const Comments& comments) {
  if (!text.starts_with("@")) return text;
  auto found = comments.find(text.substr(1));
  if (found != comments.end()) return found->second;
  if (text.find_first_of(" \t\n") != std::string::npos) return text;  // "@Ada: well done" is no name
  std::vector<std::string> names;
  for (const auto& [name, comment] : comments) names.push_back(name);
  auto near = nearest(text.substr(1), names);
  return fail("no comment is called '" + text + "'", where,
              near ? "did you mean '@" + *near + "'?" : "add it to comments.yaml as a line `name: text`");
}

Result<Comments> read_comments(const fs::path& file) {
  std::error_code code;
  Comments comments;
  if (!fs::exists(file, code)) return comments;
  CAPSTONE_TRY(std::string text, read_file(file, 16u << 20));
  CAPSTONE_TRY(
      YAML::Node root,
      load(detail::with_literal_text(
               text, [](std::string_view key, std::size_t indent) { return indent == 0 && is_plain(key); }),
           file.string()));
  if (root.IsNull()) return comments;
  if (!root.IsMap()) return fail("not a list of comments", file.string(), "write one `name: text` per line");
  for (const auto& entry : root) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar())
      return fail("a comment is not a text", place(file.string(), entry.first),
                  "write one `name: text` per line");
    comments[entry.first.Scalar()] = entry.second.Scalar();
  }
  return comments;
}

std::string marking_sheet(const GradebookRow& row, const Rubric& rubric, const Json& evidence,
                          const Comments& comments) {
  std::string text =
      remark(fmt::format("{}: {} {}, {}, {}{}", row.submission, row.person.name, row.person.id, row.problem,
                         row.state, row.fault.empty() ? "" : " (" + row.fault + ")"));
  if (!row.why.empty()) text += remark(row.why);
  if (std::string late = lateness_text(row); !late.empty())
    text += remark(fmt::format("{}{}. No marks are deducted for this unless you do it.",
                               row.submitted.empty() ? "" : "submitted " + row.submitted + ": ", late));
  for (const Json& kernel : evidence.value("judged", Json::array())) {
    text += remark(kernel.value("candidate", "") + ": " + kernel.value("verdict", ""));
    for (const Json& line : kernel.value("lines", Json::array()))
      if (line.is_string()) text += remark("  " + line.get<std::string>());
  }
  for (const Json& place : evidence.value("places", Json::array()))
    if (place.is_string()) text += remark(place.get<std::string>());
  text += remark(
      "Fill in the points and the reasons, then close the editor. Criteria without points stay unmarked.");
  for (const auto& [name, comment] : comments) text += remark("@" + name + ": " + comment);
  text += "marks:\n";
  for (std::size_t i = 0; i < rubric.criteria.size(); ++i) {
    const Criterion& criterion = rubric.criteria[i];
    text += "\n" + remark(fmt::format("{} (0 to {})", criterion.title, criterion.weight));
    for (const Json& found : evidence.value("criteria", Json::array())) {
      if (found.value("id", "") != criterion.id) continue;
      for (const Json& e : found.value("evidence", Json::array())) {
        text += remark(fmt::format("  [{}] {}: {}", e.value("standing", ""), e.value("looks_for", ""),
                                   e.value("found", "")));
        if (e.contains("ask")) text += remark("  ? " + e.value("ask", ""));
      }
      if (found.contains("suggested"))
        text += remark(fmt::format("  suggested: {} ({})", number(found.value("suggested", 0.0)),
                                   found.value("because", "")));
    }
    // The questions and the texts of the levels are on the score sheet; here they would hide the evidence.
    std::vector<std::string> levels;
    for (const Level& level : criterion.levels)
      levels.push_back(fmt::format("{}-{} {}", number(level.from), number(level.to), level.name));
    text += remark("  levels: " + join(levels, ", "));
    const auto& mark = row.marks[i];
    if (mark && mark->earlier_version)
      text += remark(fmt::format("  given for an earlier version: {} by {}: {}", number(mark->points),
                                 mark->grader, mark->reason));
    const bool given = mark && !mark->earlier_version;
    text += fmt::format("  {}:\n    points: {}\n    reason: {}\n", criterion.id,
                        given ? number(mark->points) : "", given ? quoted(mark->reason) : "");
  }
  return text;
}

Result<std::vector<Mark>> read_sheet(const std::string& text, const std::string& file,
                                     const std::string& submission, const std::string& grader,
                                     const Comments& comments) {
  CAPSTONE_TRY(
      YAML::Node root,
      load(detail::with_literal_text(
               text, [](std::string_view key, std::size_t indent) { return indent > 0 && key == "reason"; }),
           file));
  const YAML::Node list = root.IsMap() ? root["marks"] : YAML::Node(YAML::NodeType::Undefined);
  if (!list || !list.IsMap())
    return fail("no `marks:` in the sheet", file,
                "start from the original sheet and fill in points and reason");
  std::vector<Mark> marks;
  for (const auto& entry : list) {
    const std::string criterion = scalar(entry.first);
    if (!entry.second.IsMap())
      return fail("no points and reason for " + criterion, place(file, entry.first),
                  "start from the original sheet and fill in points and reason");
    for (const auto& field : entry.second)
      if (std::string key = scalar(field.first); key != "points" && key != "reason")
        return fail("unknown key '" + key + "'", place(file, field.first), "use points and reason");
    const YAML::Node points = entry.second["points"], reason = entry.second["reason"];
    if (!points || points.IsNull() || scalar(points).empty()) continue;
    Mark mark;
    mark.submission = submission;
    mark.criterion = criterion;
    mark.grader = grader;
    CAPSTONE_TRY(mark.points, points_of(scalar(points), place(file, points)));
    CAPSTONE_TRY(mark.reason, reason_of(reason ? scalar(reason) : "", place(file, entry.first), comments));
    marks.push_back(std::move(mark));
  }
  return marks;
}

Result<std::vector<Mark>> read_marks(const std::string& text, const std::string& file,
                                     const std::string& grader, const Comments& comments) {
  CAPSTONE_TRY(CsvTable table, CsvTable::read(text, file, {"name", "criterion", "points", "reason"}));
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::string where = fmt::format("{}:{}", file, table.line(i));
    if (table.at(i, "points").empty()) continue;  // not marked yet
    Mark mark;
    mark.where = where;
    mark.submission = table.at(i, "name");
    mark.criterion = table.at(i, "criterion");
    mark.grader = table.at(i, "grader").empty() ? grader : table.at(i, "grader");
    if (std::string member = table.at(i, "member"); !member.empty()) mark.member = member;
    CAPSTONE_TRY(mark.points, points_of(table.at(i, "points"), where));
    CAPSTONE_TRY(mark.reason, reason_of(table.at(i, "reason"), where, comments));
    if (mark.reason.empty())
      return fail("a mark without a reason", where,
                  "add a reason: the student reads it, and you need it when they ask");
    marks.push_back(std::move(mark));
  }
  return marks;
}

std::string gradebook_csv(const std::vector<GradebookRow>& rows, const Rubric& rubric) {
  std::vector<std::string> heading{"name", "person",    "id",       "email",     "problem",   "state",
                                   "late", "submitted", "deadline", "days_late", "grace_days"};
  for (const Criterion& criterion : rubric.criteria) heading.push_back(criterion.id);
  heading.insert(heading.end(), {"total", "published", "for_an_earlier_version"});
  std::string text = csv_row(heading);
  for (const GradebookRow& row : rows) {
    const auto late = days_late(row);
    std::vector<std::string> cells{row.submission,
                                   row.person.name,
                                   row.person.id,
                                   row.person.email,
                                   row.problem,
                                   row.state,
                                   row.late || (late && *late > 0) ? "late" : "",
                                   row.submitted,
                                   row.deadline,
                                   late && *late > 0 ? fmt::format("{:.2f}", *late) : "",
                                   row.grace_days > 0 ? number(row.grace_days) : ""},
        earlier;
    for (const auto& mark : row.marks) {
      cells.push_back(mark ? number(mark->points) : "");
      if (mark && mark->earlier_version) earlier.push_back(mark->criterion);
    }
    cells.push_back(row.total() ? number(*row.total()) : "");
    cells.push_back(row.published ? "yes" : "no");
    cells.push_back(join(earlier, " "));
    text += csv_row(cells);
  }
  return text;
}

Json gradebook_json(const std::vector<GradebookRow>& rows, const Rubric& rubric) {
  Json out{{"schema_version", 1}, {"rubric", rubric.digest}, {"rows", Json::array()}};
  for (const GradebookRow& row : rows) {
    Json marks = Json::object();
    const auto late = days_late(row);
    for (const auto& mark : row.marks)
      if (mark)
        marks[mark->criterion] = {{"points", mark->points}, {"reason", mark->reason},
                                  {"grader", mark->grader}, {"time", mark->time},
                                  {"digest", mark->digest}, {"earlier_version", mark->earlier_version}};
    out["rows"].push_back({{"name", row.submission},
                           {"person", row.person.name},
                           {"id", row.person.id},
                           {"email", row.person.email},
                           {"problem", row.problem},
                           {"state", row.state},
                           {"fault", row.fault},
                           {"late", row.late},
                           {"submitted", row.submitted},
                           {"deadline", row.deadline},
                           {"days_late", late ? Json(*late) : Json(nullptr)},
                           {"grace_days", row.grace_days},
                           {"digest", row.digest},
                           {"marks", std::move(marks)},
                           {"total", row.total() ? Json(*row.total()) : Json(nullptr)},
                           {"published", row.published}});
  }
  return out;
}

}  // namespace capstone
