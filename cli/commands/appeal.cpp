// `appeal`: everything about one submission on a page, for whoever answers a complaint.
#include <fmt/format.h>

#include <algorithm>

#include "cli/cohort.h"
#include "cli/grading.h"
#include "cli/mentor_commands.h"
#include "cli/show.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone::cli {
namespace {

struct AppealArguments {
  std::string name, cohort = "graded", decision, reason, grader;
  bool rejudge = false;
  JudgeOptions judge;
};

std::string fact(const Measurement& m, const char* name) {
  auto found = m.environment.find(name);
  return found == m.environment.end() || found->is_null() ? std::string() : found->is_string() ? found->get<std::string>() : found->dump();
}

std::string environment_of(const Measurement& m) {
  std::vector<std::string> parts;
  for (const char* name : {"device", "driver", "nvcc", "cpu", "tool"})
    if (std::string text = fact(m, name); !text.empty()) parts.push_back(fmt::format("{} {}", name, text));
  parts.push_back(fmt::format("backend {}", recorded_name(m.backend)));
  if (!m.isolation.empty()) parts.push_back("isolation " + m.isolation);
  return join(parts, ", ");
}

std::string verdict_of(const Measurement& m) {
  std::string text(label_of(m.gate_one));
  if (m.gate_two != GateTwo::kNotJudged) text += fmt::format(", {}", label_of(m.gate_two));
  if (m.gate_two != GateTwo::kNotJudged && m.measured && m.measured->speedup)
    text += fmt::format(" {} [{}, {}]", format_speedup(m.measured->speedup->point), format_speedup(m.measured->speedup->low), format_speedup(m.measured->speedup->high));
  return text;
}

class Dossier {
 public:
  Dossier(const Context& context, OpenCohort& cohort, const std::string& name) : context_(context), cohort_(cohort), name_(name) {}

  Result<ExitCode> print() {
    CAPSTONE_TRY(auto history, cohort_.book.history(name_));   // also says when there is no such submission
    CAPSTONE_TRY(SubmissionResult result, read_result(cohort_.folder_of(name_) / "result.json"));
    CAPSTONE_TRY(auto rows, cohort_.book.rows(cohort_.rubric));
    std::vector<std::string> people;
    for (const GradebookRow& row : rows)
      if (row.submission == name_) people.push_back(row.person.name + (row.person.id.empty() ? "" : " (" + row.person.id + ")"));
    out("# Appeal: " + name_);
    out(join(people, "; ") + ": " + result.problem + ", handed in: " + result.inputs.files.substr(0, 12) + ", judged " + result.finished);
    out(fmt::format("{}{}{}", name_of(result.state), result.fault == GradingFault::kNone ? "" : fmt::format(" ({})", name_of(result.fault)), result.why.empty() ? "" : ": " + result.why));
    claims(result);
    found(result);
    marks(rows);
    out("\n## History");
    for (const HistoryEntry& entry : history) out("- " + entry.time + "  " + entry.text);
    return ExitCode::kDone;
  }

 private:
  void out(const std::string& line) const { context_.terminal.out(to_utf8(line)); }

  // What the student's own ledger says of the sources that were handed in.
  void claims(const SubmissionResult& result) const {
    out("\n## What is claimed");
    const fs::path project = cohort_.project_of(name_);
    auto ledger = read_ledger(project / ".capstone" / "ledger.jsonl");
    bool any = false;
    if (!project.empty() && ledger)
      for (const Measurement& judged : result.judged)
        for (const Measurement& m : judged.candidate == "human" ? ledger->human : ledger->llm)
          if (m.source_sha256 == judged.source_sha256) {
            out(fmt::format("- {} {}: {} ({})", m.candidate, m.version, verdict_of(m), environment_of(m)));
            any = true;
          }
    if (!any) out("- nothing: the ledger never judged what was handed in");
    for (const Claim& claim : result.claims) out(fmt::format("- compared: {}, {}: {}", claim.candidate, name_of(claim.agreement), claim.text));
  }

  void found(const SubmissionResult& result) const {
    out("\n## What was found");
    for (const Measurement& m : result.judged) {
      const auto passed = std::count_if(m.cases.begin(), m.cases.end(), [](const CaseResult& c) { return c.passed; });
      out(fmt::format("- {}: {}; {} of {} runs passed; source {}", m.candidate, verdict_of(m), passed, m.cases.size(), m.source_sha256.substr(0, 12)));
      out("  - " + environment_of(m));
      std::vector<std::string> seeds;
      for (const CaseResult& c : m.cases)
        if (std::string text = c.id + " " + c.seed; !c.seed.empty() && std::find(seeds.begin(), seeds.end(), text) == seeds.end()) seeds.push_back(text);
      if (!seeds.empty()) out("  - seeds: " + join(seeds, ", "));
      if (const CaseResult* failure = m.first_failure()) first_failure(*failure);
    }
    if (result.judged.empty()) out("- nothing was judged: " + result.why);
    if (!result.judged.empty()) out("- the student sees the same with: capstone replay verdict.json (in " + (cohort_.folder_of(name_) / "feedback").string() + ")");
  }

  void first_failure(const CaseResult& c) const {
    out(fmt::format("  - first failure: {} {}{}{}{}, seed {}: {}{}", c.id, c.sizes.dump(), c.battery.empty() ? "" : ", " + c.battery, c.build.empty() ? "" : ", build " + c.build,
                    c.schedule.empty() ? "" : ", schedule " + c.schedule, c.seed, c.problem, c.where.empty() ? "" : " (" + c.where + ")"));
    if (!c.diagnosis || c.diagnosis->first.empty()) return;
    const Diagnosis& d = *c.diagnosis;
    std::vector<std::string> index;
    for (std::int64_t i : d.first) index.push_back(std::to_string(i));
    out(fmt::format("  - first mismatch: {}[{}]: expected {}, {}; {} of {} wrong{}", d.output, join(index, ", "), number_text(d.first_expected), got_text(d.first_got, d.first_unwritten),
                    d.wrong, d.total, d.pattern.empty() ? "" : "; " + d.pattern));
  }

  void marks(const std::vector<GradebookRow>& rows) const {
    out("\n## Marks");
    for (const GradebookRow& row : rows) {
      if (row.submission != name_) continue;
      out(fmt::format("- {}: {}{}", row.person.name, row.total() ? fmt::format("{:g}", *row.total()) : "not wholly marked", row.published ? "" : " (not published as it stands)"));
      for (const auto& mark : row.marks)
        if (mark) out(fmt::format("  - {} {:g} by {}: {}{}", mark->criterion, mark->points, mark->grader, mark->reason, mark->earlier_version ? " (given for an earlier version)" : ""));
    }
  }

  const Context& context_;
  OpenCohort& cohort_;
  const std::string& name_;
};

// The same files again, beside the result that stands.
Result<void> rejudge(const Context& context, OpenCohort& cohort, const AppealArguments& arguments) {
  CAPSTONE_TRY(SubmissionResult before, read_result(cohort.folder_of(arguments.name) / "result.json"));
  const fs::path project = cohort.project_of(arguments.name);
  if (project.empty()) return fail("what was handed in cannot be judged: " + before.why, cohort.folder_of(arguments.name).string(), "ask for it again and grade it");
  GradingTask task;
  task.submission.name = arguments.name;
  task.submission.path = project;
  task.submission.shown = before.path;
  task.submission.origin = before.origin;
  const std::string place = "appeals/" + replace_all(utc_now(), ":", "");
  task.folder = cohort.folder_of(arguments.name) / place;
  task.rubric = cohort.folder / "rubric.yaml";
  task.judge = arguments.judge;
  CAPSTONE_TRY(SubmissionResult again, grade_submission(context, task));
  context.terminal.end_progress();
  CAPSTONE_CHECK(cohort.book.record_rejudgement(again, place + "/result.json"));
  for (const Measurement& m : again.judged) {
    const Measurement* then = before.of(m.candidate);
    context.terminal.say(fmt::format("{}: {} then, {} now", m.candidate, then ? verdict_of(*then) : "not judged", verdict_of(m)));
  }
  if (!again.why.empty()) context.terminal.say(to_utf8(again.why));
  return {};
}

Result<ExitCode> appeal(const Context& context, const AppealArguments& arguments) {
  CAPSTONE_TRY(OpenCohort cohort, open_cohort(context, arguments.cohort));
  CAPSTONE_TRY(auto known, cohort.book.history(arguments.name));
  (void)known;
  if (arguments.rejudge) CAPSTONE_CHECK(rejudge(context, cohort, arguments));
  if (!arguments.decision.empty())
    CAPSTONE_CHECK(cohort.book.decide(arguments.name, arguments.decision, arguments.reason, arguments.grader.empty() ? context.user : arguments.grader));
  return Dossier(context, cohort, arguments.name).print();
}

}  // namespace

void add_appeal(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("appeal", "for mentors: everything about one submission: claim, environments, seeds, first mismatch, marks, history");
  auto a = std::make_shared<AppealArguments>();
  command->add_option("name", a->name, "the submission, as `gradebook` lists it")->required();
  add_cohort_option(*command, a->cohort);
  command->add_flag("--rejudge", a->rejudge, "judge the same files again; the record is kept beside the one that stands");
  auto* decision = command->add_option("--decide", a->decision, "upheld or dismissed: history keeps it")->check(CLI::IsMember({"upheld", "dismissed"}));
  command->add_option("--reason", a->reason, "of the decision")->needs(decision);
  command->add_option("--grader", a->grader, "who decides (default: your user name)");
  add_judge_options(*command, a->judge);
  command->callback([&context, &action, a] { action = [&context, a] { return appeal(context, *a); }; });
}

}  // namespace capstone::cli
