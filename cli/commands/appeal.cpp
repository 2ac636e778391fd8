// `appeal`: everything about one submission, for a mentor who answers a complaint.
#include "harness/workflows/appeal.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/context.h"
#include "cli/judge_flags.h"
#include "cli/show.h"
#include "harness/base/text.h"
#include "harness/course/explained.h"

namespace capstone::cli {
namespace {

struct AppealArguments {
  std::string name, cohort = "graded", decision, reason, grader;
  bool rejudge = false;
  JudgeOptions judge;
};

std::string fact(const Measurement& m, const char* name) {
  auto found = m.environment.find(name);
  return found == m.environment.end() || found->is_null() ? std::string()
         : found->is_string()                             ? found->get<std::string>()
                                                          : found->dump();
}

std::string environment_of(const Measurement& m) {
  std::vector<std::string> parts;
  for (const char* name : {"device", "driver", "nvcc", "cpu", "tool"})
    if (std::string text = fact(m, name); !text.empty()) parts.push_back(fmt::format("{} {}", name, text));
  parts.push_back(fmt::format("backend {}", recorded_name(m.backend)));
  if (!m.isolation.empty()) parts.push_back("isolation " + m.isolation);
  return join(parts, ", ");
}

class AppealPage {
 public:
  AppealPage(const workflows::AppealFacts& facts, const Terminal& terminal)
      : facts_(facts), terminal_(terminal) {}

  void print() const {
    const SubmissionResult& result = facts_.result;
    std::vector<std::string> people;
    for (const GradebookRow& row : facts_.rows)
      people.push_back(row.person.name + (row.person.id.empty() ? "" : " (" + row.person.id + ")"));
    out("# Appeal: " + facts_.name);
    out(join(people, "; ") + ": " + result.problem + ", handed in: " + result.inputs.files.substr(0, 12) +
        ", judged " + result.finished);
    out(fmt::format("{}{}{}", name_of(result.state),
                    result.fault == GradingFault::kNone ? "" : fmt::format(" ({})", name_of(result.fault)),
                    result.why.empty() ? "" : ": " + result.why));
    claims(result);
    found(result);
    marks();
    out("\n## History");
    for (const HistoryEntry& entry : facts_.history) out("- " + entry.time + "  " + entry.text);
  }

 private:
  void out(const std::string& line) const { terminal_.out(to_utf8(line)); }

  void claims(const SubmissionResult& result) const {
    out("\n## What is claimed");
    for (const Measurement& m : facts_.claimed)
      out(fmt::format("- {} {}: {} ({})", m.candidate, m.version, verdict_line(m), environment_of(m)));
    if (facts_.claimed.empty()) out("- nothing: the ledger has no measurement of what was handed in");
    for (const Claim& claim : result.claims)
      out(fmt::format("- compared: {}, {}: {}", claim.candidate, name_of(claim.agreement), claim.text));
  }

  void found(const SubmissionResult& result) const {
    out("\n## What was found");
    for (const Measurement& m : result.judged) {
      const auto passed =
          std::count_if(m.cases.begin(), m.cases.end(), [](const CaseResult& c) { return c.passed; });
      out(fmt::format("- {}: {}; {} of {} runs passed; source {}", m.candidate, verdict_line(m), passed,
                      m.cases.size(), m.source_sha256.substr(0, 12)));
      out("  - " + environment_of(m));
      seeds(m);
      for (const std::string& line : failure_lines(m)) out("  - " + line);
    }
    if (result.judged.empty())
      out("- nothing was judged: " + result.why);
    else
      out("- the student can reproduce it with: capstone replay verdict.json (in " +
          facts_.feedback.string() + ")");
  }

  void seeds(const Measurement& m) const {
    std::vector<std::string> seeds;
    for (const CaseResult& c : m.cases) {
      const std::string text = c.id + " " + c.seed;
      if (!c.seed.empty() && std::find(seeds.begin(), seeds.end(), text) == seeds.end())
        seeds.push_back(text);
    }
    if (!seeds.empty()) out("  - seeds: " + join(seeds, ", "));
  }

  void marks() const {
    out("\n## Marks");
    for (const GradebookRow& row : facts_.rows) {
      out(fmt::format("- {}: {}{}", one_line(row.person.name),
                      row.total() ? fmt::format("{:g}", *row.total()) : "not fully marked",
                      row.published ? "" : " (the present marks are not published)"));
      for (const auto& mark : row.marks)
        if (mark)
          out(fmt::format("  - {} {:g} by {}: {}{}", mark->criterion, mark->points, mark->grader,
                          mark->reason, mark->earlier_version ? " (given for an earlier version)" : ""));
    }
  }

  const workflows::AppealFacts& facts_;
  const Terminal& terminal_;
};

void print_rejudgement(const workflows::Rejudgement& again, const Terminal& t) {
  for (const Measurement& m : again.now.judged) {
    const Measurement* then = again.before.of(m.candidate);
    t.say(fmt::format("{}: {} then, {} now", m.candidate, then ? verdict_line(*then) : "not judged",
                      verdict_line(m)));
  }
  if (!again.now.why.empty()) t.say(to_utf8(again.now.why));
}

Result<ExitCode> appeal(const Context& context, const AppealArguments& arguments) {
  CAPSTONE_TRY(workflows::OpenCohort cohort, workflows::open_cohort(context, arguments.cohort));
  CAPSTONE_CHECK(cohort.book.history(arguments.name));  // fails if there is no such submission
  if (arguments.rejudge) {
    CAPSTONE_TRY(const auto again,
                 workflows::rejudge(cohort, arguments.name, arguments.judge, context, context.progress()));
    print_rejudgement(again, context.terminal);
  }
  const std::string grader = arguments.grader.empty() ? context.user : arguments.grader;
  if (!arguments.decision.empty())
    CAPSTONE_CHECK(cohort.book.decide(arguments.name, arguments.decision, arguments.reason, grader));
  CAPSTONE_TRY(const auto facts, workflows::appeal_facts(cohort, arguments.name));
  AppealPage(facts, context.terminal).print();
  return ExitCode::kDone;
}

}  // namespace

void add_appeal(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("appeal",
                         "for mentors: show everything about one submission: claim, environments, seeds, "
                         "first mismatch, marks, history");
  auto a = std::make_shared<AppealArguments>();
  command->add_option("name", a->name, "the submission, as `gradebook` lists it")->required();
  add_cohort_option(*command, a->cohort);
  command->add_flag("--rejudge", a->rejudge,
                    "judge the same files again; the earlier result stays, both are kept");
  auto* decision = command->add_option("--decide", a->decision, "upheld or dismissed; kept in the history")
                       ->check(CLI::IsMember({"upheld", "dismissed"}));
  command->add_option("--reason", a->reason, "of the decision")->needs(decision);
  command->add_option("--grader", a->grader, "who decides (default: your user name)");
  add_judge_options(*command, a->judge);
  command->callback([&context, &action, a] { action = [&context, a] { return appeal(context, *a); }; });
}

}  // namespace capstone::cli
