// `gradebook`: what has become of a cohort's marks, and what is done with all of them at once.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/publishing.h"
#include "cli/show_grades.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/agreement.h"
#include "harness/course/gradebook/backup.h"
#include "harness/course/gradebook/find_submission.h"
#include "harness/course/gradebook/lateness.h"
#include "harness/workflows/class_progress.h"
#include "harness/workflows/compare_kernels.h"
#include "templates/cohort_pages.h"

namespace capstone::cli {
namespace {

using workflows::open_cohort;
using workflows::OpenCohort;

struct GradebookArguments {
  std::string cohort = "graded", format = "text", name, grader, reason, member;
  double days = 0, least = 40;
  int count = 5;
  bool withdraw = false;
  std::string folder = "graded", out, roster;
  std::vector<std::string> progress;
};

// The pairs of `gradebook similarity`, if it was run.
std::vector<SimilarPair> similar_pairs(const OpenCohort& cohort) {
  std::vector<SimilarPair> pairs;
  auto text = read_file(cohort.folder / "similarity.json", 256u << 20);
  const Json json = text ? parse_json(*text) : Json();
  if (!json.is_object()) return pairs;
  for (const Json& pair : json.value("pairs", Json::array()))
    pairs.push_back({pair.value("first", ""), pair.value("second", ""), pair.value("share", 0.0)});
  return pairs;
}

Result<ExitCode> show(const Context& context, const GradebookArguments& arguments) {
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(context, arguments.cohort));
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  const Terminal& t = context.terminal;
  if (arguments.format == "html") {
    CAPSTONE_TRY(auto summaries, cohort.book.summaries());
    CAPSTONE_TRY(std::string page, gradebook_page({cohort.folder.filename().string(), rows, cohort.rubric,
                                                   summaries, similar_pairs(cohort), utc_now()},
                                                  context.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(cohort.folder / "gradebook.html", page));
    t.out((cohort.folder / "gradebook.html").string());
    return ExitCode::kDone;
  }
  if (arguments.format == "csv") {
    std::string text = gradebook_csv(rows, cohort.rubric);
    t.out(text.substr(0, text.size() - 1));  // out() ends the last line itself
    return ExitCode::kDone;
  }
  if (arguments.format == "json") {
    t.out(gradebook_json(rows, cohort.rubric).dump(2));
    return ExitCode::kDone;
  }
  std::vector<std::string> heading{"submission", "person", "state", "late"};
  std::vector<bool> right{false, false, false, false};
  for (const Criterion& criterion : cohort.rubric.criteria) {
    heading.push_back(criterion.id);
    right.push_back(true);
  }
  heading.insert(heading.end(), {"total", "published"});
  right.push_back(true);
  Table table(heading, right);
  bool earlier = false;
  for (const GradebookRow& row : rows) {
    std::vector<std::string> cells{row.submission, row.person.name, row.state, lateness_text(row)};
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
  CAPSTONE_TRY(const auto rulings, cohort.book.rulings());
  for (const Ruling& ruling : rulings)
    if (ruling.kind == Ruling::Kind::kDropped)
      t.out(
          one_line(fmt::format("dropped: {} ({}, by {})", ruling.submission, ruling.reason, ruling.grader)));
  return ExitCode::kDone;
}

Result<ExitCode> assign_copies(const Context& context, OpenCohort& cohort,
                               const GradebookArguments& arguments) {
  CAPSTONE_TRY(const auto copies, workflows::assign_blind_copies(context, cohort, arguments.count,
                                                                 arguments.grader, arguments.out));
  const Terminal& t = context.terminal;
  for (const fs::path& sheet : copies.sheets) t.out(sheet.string());
  const bool fewer = copies.assigned < static_cast<std::size_t>(arguments.count);
  t.out(fmt::format("{} blind {} for {}{}", copies.assigned, copies.assigned == 1 ? "copy" : "copies",
                    arguments.grader, fewer ? ": they have marked or been given all others" : ""));
  if (copies.assigned)
    t.out(
        fmt::format("next: fill in each marks.yaml; then: capstone gradebook merge {}; or mark them in the "
                    "browser: capstone serve",
                    copies.folder.lexically_proximate(context.cwd).string()));
  return ExitCode::kDone;
}

Result<ExitCode> withdraw_copies(const Context& context, const OpenCohort& cohort,
                                 const std::string& grader) {
  CAPSTONE_TRY(GraderAgreement agreement, GraderAgreement::open(cohort.folder));
  CAPSTONE_TRY(const int withdrawn, agreement.withdraw(grader));
  context.terminal.out(
      fmt::format("{} second markings taken back from {}; what has second marks stays", withdrawn, grader));
  return ExitCode::kDone;
}

Result<ExitCode> show_agreement(const Context& context, const OpenCohort& cohort) {
  CAPSTONE_TRY(const auto marks, workflows::agreement_in(cohort));
  print_agreement(marks, context.terminal);
  return ExitCode::kDone;
}

Result<ExitCode> merge_copies(const Context& context, OpenCohort& cohort, const std::string& folder) {
  CAPSTONE_TRY(const auto merged, workflows::merge_blind_copies(context, cohort, folder, context.progress()));
  context.terminal.out(fmt::format("{} second marks added; the first marks stay", merged.added));
  if (!merged.conflicts.empty())
    context.terminal.out(fmt::format(
        "{} differ from second marks that were given before: those count; both stand in the history",
        merged.conflicts.size()));
  return show_agreement(context, cohort);
}

Result<ExitCode> compare_kernels(const Context& context, OpenCohort& cohort, double least) {
  CAPSTONE_TRY(const auto compared, workflows::compare_kernels(context, cohort, least));
  const Terminal& t = context.terminal;
  Table table({"submission", "shares code with", "share"}, {false, false, true});
  for (const SimilarityFinding& f : compared.report.pairs)
    table.row({f.first, f.second, fmt::format("{:.0f} %", 100 * f.likeness.share)});
  for (const SimilarityFinding& f : compared.report.origins)
    table.row({f.first, to_utf8(f.second), fmt::format("{:.0f} %", 100 * f.likeness.of_first)});
  t.out(table.text(t));
  Table prose({"worklog", "shares prose with", "share"}, {false, false, true});
  for (const SimilarityFinding& f : compared.report.prose)
    prose.row({f.first, f.second, fmt::format("{:.0f} %", 100 * f.likeness.share)});
  if (!compared.report.prose.empty()) t.out(prose.text(t));
  t.out(fmt::format("{} kernels compared; the aligned fragments: {}", compared.kernels,
                    compared.page.string()));
  t.out("this is evidence for a person to look at, never a penalty");
  return ExitCode::kDone;
}

std::string age_of(const ProgressRow& row, Instant now) {
  auto then = row.last ? parse_instant(row.last->time) : Result<Instant>(fail("never"));
  if (!then) return "never";
  return fmt::format("{:.0f} d ago", std::max(0.0, static_cast<double>(now - *then) / kSecondsOfADay));
}

Result<ExitCode> print_progress(const std::vector<ProgressRow>& rows, const Terminal& t) {
  CAPSTONE_TRY(const Instant now, parse_instant(utc_now()));
  Table table({"person", "problem", "checked in", "versions", "model", "last", "handed in"},
              {false, false, false, true, true, false, false});
  for (const ProgressRow& row : rows) {
    const CheckIn none, &c = row.last ? *row.last : none;
    table.row({to_utf8(row.person), row.problem, age_of(row, now), std::to_string(c.versions),
               std::to_string(c.attempts), c.last_verdict, row.handed_in.empty() ? "-" : row.handed_in});
  }
  t.out(table.text(t));
  const auto waiting =
      std::count_if(rows.begin(), rows.end(), [](const ProgressRow& row) { return !row.needs.empty(); });
  t.out(waiting ? fmt::format("{} of {} need help:", waiting, rows.size()) : "no student needs help");
  for (const ProgressRow& row : rows)
    for (const std::string& need : row.needs) t.out(one_line(fmt::format("  {}: {}", row.person, need)));
  return ExitCode::kDone;
}

Result<ExitCode> show_progress(const Context& context, const GradebookArguments& arguments) {
  CAPSTONE_TRY(const auto rows,
               workflows::class_progress({arguments.cohort, arguments.progress, arguments.roster}, context,
                                         context.progress()));
  const Terminal& t = context.terminal;
  if (arguments.format == "json") {
    t.out(progress_json(rows).dump(2));
  } else if (arguments.format == "csv") {
    const std::string text = progress_csv(rows);
    t.out(text.substr(0, text.size() - 1));  // out() ends the last line itself
  } else if (arguments.format == "html") {
    CAPSTONE_TRY(const fs::path page, workflows::write_progress_page(rows, arguments.cohort, context));
    t.out(page.string());
  } else {
    return print_progress(rows, t);
  }
  return ExitCode::kDone;
}

Result<ExitCode> show_history(const Context& context, const GradebookArguments& arguments) {
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(context, arguments.cohort));
  CAPSTONE_TRY(const auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(const std::string name, find_submission(rows, arguments.name));
  CAPSTONE_TRY(auto entries, cohort.book.history(name));
  for (const HistoryEntry& entry : entries) context.terminal.out(entry.time + "  " + entry.text);
  return ExitCode::kDone;
}

Result<ExitCode> back_up(const Context& context, const GradebookArguments& arguments) {
  const fs::path file = context.cwd / arguments.out;
  CAPSTONE_CHECK(back_up_gradebook(context.cwd / arguments.cohort, file));
  context.terminal.out(file.string());
  return ExitCode::kDone;
}

Result<ExitCode> verify(const Context& context, const GradebookArguments& arguments) {
  std::error_code code;
  fs::path file = (context.cwd / arguments.folder).lexically_normal();
  if (fs::is_directory(file, code)) file /= "gradebook.sqlite";
  CAPSTONE_TRY(const GradebookCheck check, verify_gradebook(file));
  for (const std::string& problem : check.problems) context.terminal.out(problem);
  if (!check.problems.empty())
    return fail(fmt::format("the gradebook is damaged in {} places", check.problems.size()), file.string(),
                "restore it from a backup");
  context.terminal.out(
      fmt::format("{}: whole; {} submissions, {} marks", file.string(), check.submissions, check.marks));
  return ExitCode::kDone;
}

Result<ExitCode> grace(const Context& context, const GradebookArguments& arguments) {
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(context, arguments.cohort));
  const std::optional<std::string> member =
      arguments.member.empty() ? std::nullopt : std::optional(arguments.member);
  CAPSTONE_TRY(const auto rows, cohort.book.rows(cohort.rubric));
  CAPSTONE_TRY(const std::string name, find_submission(rows, arguments.name));
  CAPSTONE_CHECK(cohort.book.grant_grace(name, member, arguments.days, arguments.reason,
                                         arguments.grader.empty() ? context.user : arguments.grader));
  context.terminal.out(fmt::format("{}: {:g} days of grace", name, arguments.days));
  return ExitCode::kDone;
}

}  // namespace

void add_gradebook(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("gradebook", "for mentors: the cohort's marks, published and drafts");
  auto a = std::make_shared<GradebookArguments>();
  command->add_option("graded", a->cohort, "the folder that `grade --out` made (default graded/)");
  command->add_option("--format", a->format, "text (default), csv, json, or html: COHORT/gradebook.html")
      ->check(CLI::IsMember({"text", "csv", "json", "html"}));
  auto* progress =
      command
          ->add_option(
              "--progress", a->progress,
              "list who needs help, from students' check-ins (files or folders); needs no cohort yet")
          ->type_name("CHECKINS");
  command
      ->add_option("--roster", a->roster,
                   "with --progress: CSV with name,id,email; also lists who never checked in")
      ->needs(progress);
  command->require_subcommand(0, 1);
  auto* history = command->add_subcommand("history", "list everything that happened to one submission");
  history->add_option("name", a->name, "the submission")->required();
  add_cohort_option(*history, a->cohort);
  add_publishing(*command, context, action);
  auto* granting = command->add_subcommand(
      "grace", "allow a submission days after the deadline that do not count as late");
  granting->add_option("name", a->name, "the submission")->required();
  granting->add_option("--days", a->days, "how many; 0 revokes them")->required();
  granting->add_option("--reason", a->reason, "kept in the history")->required();
  granting->add_option("--member", a->member, "of a team: only this member (id, or name without an id)");
  granting->add_option("--grader", a->grader, "who grants them (default: your user name)");
  add_cohort_option(*granting, a->cohort);
  auto* assigning = command->add_subcommand(
      "assign",
      "give a second mentor submissions to mark blind, in `serve` or as copies: without names, suggestions "
      "or marks");
  assigning->add_option("--double", a->count, "how many more submissions to mark twice (default 5)")
      ->check(CLI::Range(1, 10'000));
  assigning->add_option("--grader", a->grader, "the second mentor")->required();
  assigning->add_flag("--withdraw", a->withdraw,
                      "instead, take back what this mentor has not given second marks for");
  assigning->add_option("--out", a->out, "where the copies go (default COHORT/blind/GRADER)");
  add_cohort_option(*assigning, a->cohort);
  auto* merging = command->add_subcommand(
      "merge", "take in the filled sheets of blind copies; marks that were given before stay");
  merging->add_option("folder", a->folder, "the folder that `assign` made")->required();
  add_cohort_option(*merging, a->cohort);
  auto* agreeing = command->add_subcommand(
      "agreement", "show how far two mentors agree, criterion by criterion, and what to reconcile");
  add_cohort_option(*agreeing, a->cohort);
  auto* comparing = command->add_subcommand(
      "similarity",
      "find kernels that share code (with each other, rungs, examples, the own model), and worklogs that "
      "share prose");
  comparing->add_option("--least", a->least, "smallest share to list [%] (default 40)")
      ->check(CLI::Range(1.0, 100.0));
  add_cohort_option(*comparing, a->cohort);
  auto* backing =
      command->add_subcommand("backup", "copy the gradebook to a new file, also while it is in use");
  backing->add_option("file", a->out, "the copy; must not exist")->required();
  add_cohort_option(*backing, a->cohort);
  auto* verifying = command->add_subcommand("verify", "check that a gradebook or a backup is whole");
  verifying->add_option("file", a->folder, "a backup, or a cohort's folder (default graded/)")
      ->default_str("graded");
  command->callback([&context, &action, a, command, history, granting, assigning, merging, agreeing,
                     comparing, backing, verifying] {
    if (chose_publishing(*command)) return;
    action = [&context, a, history, granting, assigning, merging, agreeing, comparing, backing,
              verifying]() -> Result<ExitCode> {
      if (backing->parsed()) return back_up(context, *a);
      if (verifying->parsed()) return verify(context, *a);
      if (assigning->parsed() || merging->parsed() || agreeing->parsed() || comparing->parsed()) {
        CAPSTONE_TRY(OpenCohort cohort, open_cohort(context, a->cohort));
        if (assigning->parsed())
          return a->withdraw ? withdraw_copies(context, cohort, a->grader)
                             : assign_copies(context, cohort, *a);
        if (merging->parsed()) return merge_copies(context, cohort, a->folder);
        return agreeing->parsed() ? show_agreement(context, cohort)
                                  : compare_kernels(context, cohort, a->least);
      }
      if (!a->progress.empty()) return show_progress(context, *a);
      if (history->parsed()) return show_history(context, *a);
      if (granting->parsed()) return grace(context, *a);
      return show(context, *a);
    };
  });
}

}  // namespace capstone::cli
