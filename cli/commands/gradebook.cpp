// `mark` and `gradebook`: what mentors give, and what has become of it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/session.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "rubric/gradebook/gradebook.h"
#include "rubric/gradebook/sheets.h"

namespace capstone::cli {
namespace {

struct MarkArguments {
  std::string name, cohort = "graded", criterion, reason, from, grader, member;
  std::optional<double> points;
  bool next = false;
};

struct GradebookArguments {
  std::string cohort = "graded", format = "text", name, grader;
};

struct OpenCohort {
  fs::path folder;
  Rubric rubric;
  Gradebook book;
};

Result<OpenCohort> open_cohort(const Session& session, const std::string& folder) {
  const fs::path place = session.cwd / folder;
  std::error_code code;
  if (!fs::exists(place / "gradebook.sqlite", code))
    return fail("no gradebook here", place.string(), "it is made by `capstone grade SUBMISSIONS --out COHORT`; name that folder with --cohort");
  CAPSTONE_TRY(Rubric rubric, load_rubric(place / "rubric.yaml"));
  CAPSTONE_TRY(Gradebook book, Gradebook::open(place));
  return OpenCohort{place, std::move(rubric), std::move(book)};
}

Json evidence_of(const fs::path& cohort, const std::string& submission) {
  auto text = read_file(cohort / "submissions" / submission / "score_sheet.json", 64u << 20);
  Json json = text ? Json::parse(*text, nullptr, false) : Json();
  return json.is_object() ? json : Json::object();
}

bool wants_marks(const GradebookRow& row) {
  return row.state != "failed" && std::any_of(row.marks.begin(), row.marks.end(), [](const auto& mark) { return !mark || mark->earlier_version; });
}

// One sheet after the other, until none is left or one comes back without a mark.
Result<ExitCode> mark_next(const Session& session, OpenCohort& cohort, const MarkArguments& arguments, const std::string& grader) {
  if (session.editor.empty()) return fail("no editor", {}, "set VISUAL or EDITOR, for example EDITOR=nano; or give marks with --from marks.csv", ExitCode::kEnvironment);
  CAPSTONE_TRY(Comments comments, read_comments(cohort.folder / "comments.yaml"));
  for (int done = 0;; ++done) {
    CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
    const GradebookRow* row = nullptr;
    for (const GradebookRow& candidate : rows)
      if (!row && wants_marks(candidate) && (arguments.name.empty() || arguments.name == candidate.submission)) row = &candidate;
    if (!row) {
      session.terminal.out(done ? fmt::format("{} marked; nothing waits for marks", done) : "nothing waits for marks");
      return ExitCode::kDone;
    }
    // A sheet that was left half filled in, or with a mistake, is still there.
    const fs::path sheet = cohort.folder / "marking" / (row->submission + ".yaml");
    std::error_code code;
    CAPSTONE_CHECK(make_folders(sheet.parent_path()));
    if (!fs::exists(sheet, code)) CAPSTONE_CHECK(write_file_atomic(sheet, marking_sheet(*row, cohort.rubric, evidence_of(cohort.folder, row->submission), comments)));
    const std::string command = session.editor + " '" + replace_all(sheet.string(), "'", "'\\''") + "'";
    if (std::system(command.c_str()) != 0) return fail("the editor failed: " + session.editor, sheet.string(), "the sheet is kept; run the command again");
    CAPSTONE_TRY(std::string text, read_file(sheet, 16u << 20));
    CAPSTONE_TRY(auto marks, read_sheet(text, sheet.string(), row->submission, grader, comments));
    // What stands there already is not given once more.
    std::erase_if(marks, [&](const Mark& mark) {
      return std::any_of(row->marks.begin(), row->marks.end(), [&](const auto& old) {
        return old && !old->earlier_version && old->criterion == mark.criterion && old->points == mark.points && old->reason == mark.reason;
      });
    });
    if (marks.empty()) {
      session.terminal.out(fmt::format("{}: no marks; the next time begins here", row->submission));
      return ExitCode::kDone;
    }
    CAPSTONE_CHECK(cohort.book.mark(cohort.rubric, marks));
    fs::remove(sheet, code);
    session.terminal.say(fmt::format("{}: {} marks", row->submission, marks.size()));
  }
}

Result<ExitCode> mark(const Session& session, const MarkArguments& arguments) {
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(session, arguments.cohort));
  const std::string grader = arguments.grader.empty() ? session.user : arguments.grader;
  if (arguments.next) return mark_next(session, cohort, arguments, grader);
  CAPSTONE_TRY(Comments comments, read_comments(cohort.folder / "comments.yaml"));
  std::vector<Mark> marks;
  if (!arguments.from.empty()) {
    const fs::path file = session.cwd / arguments.from;
    CAPSTONE_TRY(std::string text, read_file(file, 64u << 20));
    CAPSTONE_TRY(marks, read_marks(text, file.string(), grader, comments));
  } else {
    if (arguments.name.empty() || arguments.criterion.empty() || !arguments.points)
      return fail("what is to be marked?", {}, "capstone mark NAME --criterion ID --points N --reason TEXT; or --next; or --from marks.csv");
    Mark one;
    one.submission = arguments.name;
    one.criterion = arguments.criterion;
    one.points = *arguments.points;
    one.grader = grader;
    one.reason = arguments.reason;
    if (auto known = comments.find(one.reason.substr(one.reason.starts_with("@") ? 1 : one.reason.size())); one.reason.starts_with("@") && known != comments.end()) one.reason = known->second;
    if (!arguments.member.empty()) one.member = arguments.member;
    marks.push_back(std::move(one));
  }
  CAPSTONE_CHECK(cohort.book.mark(cohort.rubric, marks));
  session.terminal.out(fmt::format("{} mark{} kept as draft{}; `capstone gradebook publish` shows them", marks.size(), marks.size() == 1 ? "" : "s", marks.size() == 1 ? "" : "s"));
  return ExitCode::kDone;
}

Result<ExitCode> show(const Session& session, const GradebookArguments& arguments) {
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(session, arguments.cohort));
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  const Terminal& t = session.terminal;
  if (arguments.format == "csv") {
    std::string text = gradebook_csv(rows, cohort.rubric);
    t.out(text.substr(0, text.size() - 1));   // out() ends the last line itself
    return ExitCode::kDone;
  }
  if (arguments.format == "json") {
    t.out(gradebook_json(rows, cohort.rubric).dump(2));
    return ExitCode::kDone;
  }
  std::vector<std::string> heading{"submission", "person", "state"};
  std::vector<bool> right{false, false, false};
  for (const Criterion& criterion : cohort.rubric.criteria) {
    heading.push_back(criterion.id);
    right.push_back(true);
  }
  heading.insert(heading.end(), {"total", "published"});
  right.push_back(true);
  Table table(heading, right);
  bool earlier = false;
  for (const GradebookRow& row : rows) {
    std::vector<std::string> cells{row.submission, row.person.name, row.state};
    for (const auto& given : row.marks) {
      cells.push_back(given ? fmt::format("{:g}{}", given->points, given->earlier_version ? "*" : "") : "-");
      earlier |= given && given->earlier_version;
    }
    cells.push_back(row.total() ? fmt::format("{:g}", *row.total()) : "-");
    cells.push_back(row.published ? "yes" : "no");
    table.row(std::move(cells));
  }
  t.out(table.text(t));
  if (earlier) t.out("* given for an earlier version");
  return ExitCode::kDone;
}

Result<ExitCode> show_history(const Session& session, const GradebookArguments& arguments) {
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(session, arguments.cohort));
  CAPSTONE_TRY(auto entries, cohort.book.history(arguments.name));
  for (const HistoryEntry& entry : entries) session.terminal.out(entry.time + "  " + entry.text);
  return ExitCode::kDone;
}

Result<ExitCode> publish(const Session& session, const GradebookArguments& arguments) {
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(session, arguments.cohort));
  CAPSTONE_TRY(int people, cohort.book.publish(cohort.rubric, arguments.grader.empty() ? session.user : arguments.grader));
  session.terminal.out(fmt::format("published for {} {}: a copy of what each sees is kept", people, people == 1 ? "person" : "people"));
  return ExitCode::kDone;
}

}  // namespace

void add_mark(CLI::App& app, Session& session, Action& action) {
  auto* command = app.add_subcommand("mark", "for mentors: give marks; drafts until `gradebook publish`");
  auto a = std::make_shared<MarkArguments>();
  command->add_option("name", a->name, "the submission, as `gradebook` lists it");
  command->add_option("--cohort", a->cohort, "the folder that `grade --out` made (default graded/)");
  command->add_option("--criterion", a->criterion, "of the rubric: correctness, depth, head_to_head, honesty");
  command->add_option("--points", a->points, "0 to the criterion's weight");
  command->add_option("--reason", a->reason, "what the student will read; @name takes a text from COHORT/comments.yaml");
  command->add_option("--member", a->member, "of a team: for this member alone (id, or name where there is no id)");
  command->add_option("--grader", a->grader, "who gives the mark (default: your user name)");
  auto* next = command->add_flag("--next", a->next, "open a sheet for the next submission that waits for marks, and so on ($VISUAL or $EDITOR)");
  command->add_option("--from", a->from, "a CSV with name,criterion,points,reason; all of it or nothing")->excludes(next);
  command->callback([&session, &action, a] { action = [&session, a] { return mark(session, *a); }; });
}

void add_gradebook(CLI::App& app, Session& session, Action& action) {
  auto* command = app.add_subcommand("gradebook", "for mentors: the cohort's marks, published and drafts");
  auto a = std::make_shared<GradebookArguments>();
  command->add_option("cohort", a->cohort, "the folder that `grade --out` made (default graded/)");
  command->add_option("--format", a->format, "text (default), csv or json")->check(CLI::IsMember({"text", "csv", "json"}));
  command->require_subcommand(0, 1);
  auto* history = command->add_subcommand("history", "everything that happened to one submission");
  history->add_option("name", a->name, "the submission")->required();
  history->add_option("--cohort", a->cohort, "the folder that `grade --out` made (default graded/)");
  auto* publishing = command->add_subcommand("publish", "what each student sees from now on: the marks as they are");
  publishing->add_option("--cohort", a->cohort, "the folder that `grade --out` made (default graded/)");
  publishing->add_option("--grader", a->grader, "who publishes (default: your user name)");
  command->callback([&session, &action, a, history, publishing] {
    action = [&session, a, history, publishing] {
      if (history->parsed()) return show_history(session, *a);
      return publishing->parsed() ? publish(session, *a) : show(session, *a);
    };
  });
}

}  // namespace capstone::cli
