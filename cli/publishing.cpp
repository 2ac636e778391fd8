#include "cli/publishing.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/judge_flags.h"
#include "harness/base/text.h"
#include "harness/workflows/publish.h"
#include "harness/workflows/student_tokens.h"
#include "templates/cohort_pages.h"

namespace capstone::cli {
namespace {

struct PublishingArguments {
  std::string cohort = "graded", grader, name, reason, archive;
  std::vector<std::string> names;
  workflows::PublicationRequest request;
  workflows::StudentTokensRequest tokens;
  bool preview = false;

  std::string by(const Context& context) const { return grader.empty() ? context.user : grader; }
};

std::string whose(const workflows::PublicationItem& item) {
  return one_line(item.row.submission + ", " + item.row.person.name);
}

void print_warnings(const std::vector<workflows::PublicationItem>& items, const Terminal& t) {
  bool held_back = false;
  for (const auto& item : items) {
    for (const std::string& warning : item.warnings)
      t.out(fmt::format("warning: {}: {}{}", whose(item), one_line(warning),
                        item.held_back ? " (held back)" : ""));
    held_back |= item.held_back;
  }
  if (held_back) t.out("--incomplete publishes these, too");
}

Result<ExitCode> preview(const Context& context, const workflows::OpenCohort& cohort,
                         const PublishingArguments& arguments) {
  CAPSTONE_TRY(const auto items, workflows::plan_publication(cohort, arguments.request));
  const Terminal& t = context.terminal;
  std::size_t held_back = 0, unchanged = 0;
  for (const auto& item : items) {
    held_back += item.held_back;
    unchanged += !item.news && !item.held_back;
    if (item.held_back || !item.news) continue;
    t.out(t.paint(Tone::kBold, fmt::format("--- what {} will see", whose(item))));
    t.out(printable(marks_text(item.row, cohort.rubric, false)));
  }
  print_warnings(items, t);
  t.out(fmt::format("{} with news, {} unchanged, {} held back; nothing was written (--preview)",
                    items.size() - held_back - unchanged, unchanged, held_back));
  return ExitCode::kDone;
}

Result<ExitCode> publish(const Context& context, PublishingArguments arguments) {
  arguments.request.names = arguments.names;
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  if (arguments.preview) return preview(context, cohort, arguments);
  const Terminal& t = context.terminal;
  const auto done = workflows::publish_marks(context, cohort, arguments.request, arguments.by(context));
  if (!done) {
    CAPSTONE_TRY(const auto items, workflows::plan_publication(cohort, arguments.request));
    print_warnings(items, t);
    return fail(done.error());
  }
  print_warnings(done->items, t);
  t.out(fmt::format("published for {} {}: a copy of what each sees is kept", done->people,
                    done->people == 1 ? "person" : "people"));
  t.out(fmt::format("{} files for students: {}", done->files.size(),
                    (cohort.folder / "submissions" / "NAME" / "feedback" / "marks.html").string()));
  return ExitCode::kDone;
}

Result<ExitCode> make_tokens(const Context& context, const PublishingArguments& arguments) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  workflows::StudentTokensRequest request = arguments.tokens;
  request.names = arguments.names;
  request.by = arguments.by(context);
  while (request.url.ends_with('/')) request.url.pop_back();
  CAPSTONE_TRY(const std::size_t people, workflows::write_student_tokens(context, cohort, request));
  const Terminal& t = context.terminal;
  if (people == 0) {
    t.out("everyone has a token already; --again replaces them");
    return ExitCode::kDone;
  }
  t.out(fmt::format("{}: the addresses of {} {}", (context.cwd / request.out).string(), people,
                    people == 1 ? "person" : "people"));
  t.say("send each person their own line only; then: capstone serve --students");
  return ExitCode::kDone;
}

Result<ExitCode> choose(const Context& context, const PublishingArguments& arguments) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  CAPSTONE_TRY(const auto dropped, workflows::choose_submission(cohort, arguments.name, arguments.archive,
                                                                arguments.reason, arguments.by(context)));
  const Terminal& t = context.terminal;
  for (const std::string& name : dropped) t.out("dropped: " + name);
  t.out(arguments.archive.empty()
            ? arguments.name + " counts"
            : arguments.name + ": " + to_utf8(arguments.archive) + " counts; now run `capstone grade` again");
  return ExitCode::kDone;
}

Result<ExitCode> drop(const Context& context, const PublishingArguments& arguments) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  CAPSTONE_CHECK(cohort.book.rule(
      {{Ruling::Kind::kDropped, arguments.name, {}, arguments.reason, arguments.by(context), {}, {}}}));
  context.terminal.out(
      fmt::format("{} does not count any more; its marks and files stay, and `capstone "
                  "gradebook choose {} --reason TEXT` takes it back",
                  arguments.name, arguments.name));
  return ExitCode::kDone;
}

}  // namespace

bool chose_publishing(const CLI::App& gradebook) {
  for (const char* name : {"publish", "tokens", "choose", "drop"})
    if (gradebook.got_subcommand(name)) return true;
  return false;
}

void add_publishing(CLI::App& gradebook, Context& context, Action& action) {
  auto a = std::make_shared<PublishingArguments>();
  auto* publishing = gradebook.add_subcommand(
      "publish", "publish marks: a copy is kept, and marks.html is written into each student's feedback");
  publishing->add_option("names", a->names, "these submissions only (default: all)");
  publishing->add_flag("--preview", a->preview, "show what each student will see, write nothing");
  publishing->add_flag("--incomplete", a->request.incomplete,
                       "also where criteria are not marked, or marks are for an earlier version");
  publishing->callback([&context, &action, a] { action = [&context, a] { return publish(context, *a); }; });

  auto* tokens = gradebook.add_subcommand(
      "tokens", "make the addresses with which students see what was published in `serve --students`");
  tokens->add_option("names", a->names, "these submissions only (default: all)");
  tokens
      ->add_option("--out", a->tokens.out,
                   "a new CSV with name,id,email,submission,url; the gradebook keeps only digests")
      ->required();
  tokens->add_option("--url", a->tokens.url,
                     "where students reach the server (default http://127.0.0.1:8040)");
  tokens->add_flag("--again", a->tokens.again, "also for people who have a token: it is replaced");
  tokens->callback([&context, &action, a] { action = [&context, a] { return make_tokens(context, *a); }; });

  auto* choosing =
      gradebook.add_subcommand("choose", "of several submissions of one person, let this one count");
  choosing->add_option("name", a->name, "the submission that counts")->required();
  choosing->add_option("--archive", a->archive, "of several archives in its folder, this file counts")
      ->type_name("FILE");
  choosing->callback([&context, &action, a] { action = [&context, a] { return choose(context, *a); }; });

  auto* dropping = gradebook.add_subcommand("drop", "take a submission out; its marks and files stay");
  dropping->add_option("name", a->name, "the submission")->required();
  dropping->callback([&context, &action, a] { action = [&context, a] { return drop(context, *a); }; });

  for (CLI::App* sub : {choosing, dropping})
    sub->add_option("--reason", a->reason, "kept in the history")->required();
  for (CLI::App* sub : {publishing, tokens, choosing, dropping}) {
    add_cohort_option(*sub, a->cohort);
    sub->add_option("--grader", a->grader, "who decides (default: your user name)");
  }
}

}  // namespace capstone::cli
