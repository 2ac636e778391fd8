// `grade`: every submission of a cohort judged afresh, each in a process of its own; one result file each, and a summary.
// What has no result file is queued, so a batch that was killed goes on where it was. The gradebook takes the results in.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <map>
#include <set>

#include "cli/grading.h"
#include "cli/slurm.h"
#include "harness/base/csv.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/course/jobs.h"
#include "harness/course/roster.h"
#include "harness/runtime/sandbox/orphans.h"
#include "harness/runtime/sandbox/sandbox.h"
#include "harness/course/gradebook/gradebook.h"
#include "rubric/rubric.h"

namespace capstone::cli {
namespace {

using Clock = std::chrono::steady_clock;
// A judgement that is not done by then hangs in our own code; every run of a submission has a limit of its own.
constexpr std::chrono::hours kPatience{2};
constexpr std::size_t kLongSummary = 40;   // submissions; of a larger cohort only those that need somebody are listed

struct GradeArguments {
  std::string folder, out = "graded", roster, rubric, deadline;
  std::vector<std::string> only;
  int parallel = 1;
  bool force = false, dry_run = false, allow_unisolated = false, collect = false;
  std::string executor = "local";
  SlurmOptions slurm;
  JudgeOptions judge;
};

class Batch {
 public:
  Batch(const Context& context, const GradeArguments& arguments) : context_(context), arguments_(arguments), out_(context.cwd / arguments.out) {}

  Result<ExitCode> run() {
    // Other people's code: not where it could read this account's files.
    if (Sandbox sandbox = Sandbox::detect(context_.resources); !sandbox.isolated() && !arguments_.allow_unisolated)
      return fail("submissions would run without isolation (" + sandbox.description() + ")", {},
                  "`capstone doctor` tells how to mend it; --allow-unisolated runs them all the same, with all that this account may do",
                  ExitCode::kEnvironment);
    CAPSTONE_CHECK(prepare());
    if (arguments_.dry_run) return show_plan();
    CAPSTONE_CHECK(make_folders(out_));
    CAPSTONE_TRY(FileLock lock, lock_cohort());
    if (int ended = end_orphaned_sandboxes()) context_.terminal.say(fmt::format("{} sandbox{} of a killed run ended", ended, ended == 1 ? "" : "es"));
    // What an earlier batch found out and could not enter any more, before a newer result takes its place.
    CAPSTONE_TRY(Gradebook book, Gradebook::open(out_));
    CAPSTONE_CHECK(enter_results(book));
    CAPSTONE_TRY(std::string rubric, read_file(rubric_file_));
    CAPSTONE_CHECK(write_file_atomic(out_ / "rubric.yaml", rubric));   // marks are given by the rubric that was graded by
    if (arguments_.collect) CAPSTONE_CHECK(collect());
    else CAPSTONE_CHECK(grade_all());
    CAPSTONE_CHECK(enter_results(book));
    CAPSTONE_CHECK(write_file_atomic(out_ / "grades.csv", csv()));
    return summary();
  }

 private:
  struct Item {
    Submission submission;
    std::optional<SubmissionResult> result;
    std::string because;   ///< why it is graded; empty: unchanged
  };

  fs::path folder_of(const Submission& s) const { return out_ / "submissions" / s.name; }

  Result<FileLock> lock_cohort() const {
    auto lock = FileLock::acquire(out_ / ".lock", false);
    if (!lock && lock.error().code == ExitCode::kEnvironment)
      return fail("another `capstone grade` works on this cohort", out_.string(), "wait until it is done", ExitCode::kEnvironment);
    return lock;
  }

  Result<void> prepare() {
    fs::path where = context_.cwd / arguments_.folder;
    CAPSTONE_TRY(auto found, find_submissions(where, out_, out_));
    ignored_ = std::move(found.ignored);
    rubric_file_ = arguments_.rubric.empty() ? context_.resources.share / "rubric" / "rubric.yaml" : context_.cwd / arguments_.rubric;
    CAPSTONE_TRY(rubric_, load_rubric(rubric_file_));
    if (!arguments_.deadline.empty()) {
      CAPSTONE_TRY(deadline_, parse_instant(arguments_.deadline));
    }
    std::error_code code;
    fs::path roster = arguments_.roster.empty() ? where / "roster.csv" : context_.cwd / arguments_.roster;
    has_roster_ = !arguments_.roster.empty() || fs::is_regular_file(roster, code);
    if (has_roster_) {
      CAPSTONE_TRY(roster_, read_roster(roster));
    }
    CAPSTONE_CHECK(check_names(found.submissions));
    inputs_ = common_inputs(context_, arguments_.judge, rubric_.digest);
    for (Submission& submission : found.submissions) {
      if (interrupted()) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
      Item item;
      item.submission = std::move(submission);
      if (auto result = read_result(folder_of(item.submission) / "result.json")) item.result = std::move(*result);
      item.because = why_again(item);
      items_.push_back(std::move(item));
    }
    return {};
  }

  Result<void> check_names(const std::vector<Submission>& submissions) const {
    std::vector<std::string> names;
    for (const Submission& s : submissions) names.push_back(s.name);
    for (const std::string& wanted : arguments_.only) {
      if (std::find(names.begin(), names.end(), wanted) != names.end()) continue;
      auto near = nearest(wanted, names);
      return fail("no submission is called '" + wanted + "'", arguments_.folder, near ? "did you mean '" + *near + "'?" : "--dry-run lists them");
    }
    return {};
  }

  bool chosen(const Item& item) const {
    return arguments_.only.empty() || std::find(arguments_.only.begin(), arguments_.only.end(), item.submission.name) != arguments_.only.end();
  }

  Result<void> enter_results(Gradebook& book) const {
    std::vector<SubmissionResult> results;
    for (const Item& item : items_)
      if (item.result) results.push_back(*item.result);
    CAPSTONE_CHECK(book.take(results));
    return book.keep_times(times());
  }

  RosterMatch matched() const {
    std::vector<Claimant> claimants;
    for (const Item& item : items_) claimants.push_back({item.submission.name, item.result ? item.result->members : std::vector<Person>{}, item.submission.origin});
    return match_roster(roster_, claimants);
  }

  // When each came, as its platform tells or else the roster, and by when it should have: what the roster grants, of a team's members the latest, else the class's.
  std::vector<SubmissionTimes> times() const {
    std::map<std::string, Instant> came, due;
    const RosterMatch match = matched();
    for (std::size_t i = 0; i < roster_.size(); ++i)
      for (const std::string& name : match.submissions[i]) {
        auto later = [&name](std::map<std::string, Instant>& all, const std::optional<Instant>& time) {
          if (time) all[name] = all.contains(name) ? std::max(all[name], *time) : *time;
        };
        later(came, roster_[i].submitted);
        later(due, roster_[i].deadline);
      }
    std::vector<SubmissionTimes> all;
    for (const Item& item : items_) {
      const std::string& name = item.submission.name;
      if (auto told = parse_instant(item.submission.origin.submitted)) came[name] = *told;
      if (!due.contains(name) && deadline_) due[name] = *deadline_;
      all.push_back({name, came.contains(name) ? utc_text(came[name]) : "", due.contains(name) ? utc_text(due[name]) : ""});
    }
    return all;
  }

  // Empty: a result is there, of these very inputs.
  std::string why_again(const Item& item) {
    if (!item.result) return "new";
    if (item.result->fault == GradingFault::kMachine) return "the machine failed last time";
    if (arguments_.force) return "--force";
    const GradingInputs& then = item.result->inputs;
    auto files = digest_of_submission(item.submission.path);
    if (!files || *files != then.files) return "handed in again";
    if (item.result->path != to_utf8(item.submission.shown)) return "it was " + item.result->path;
    if (problem_digest(item.result->problem) != then.problem) return "the problem changed";
    if (inputs_.rubric != then.rubric) return "the rubric changed";
    if (inputs_.tool != then.tool) return "it was judged by capstone " + then.tool;
    // On which node it was judged is Slurm's choice.
    if (!remote() && (inputs_.device != then.device || inputs_.driver != then.driver)) return "it was judged on " + then.device + " " + then.driver;
    return inputs_.options != then.options ? "other options: " + then.options : "";
  }

  const std::string& problem_digest(const std::string& id) {
    auto known = problems_.find(id);
    if (known != problems_.end()) return known->second;
    auto problem = mentors_problem(context_, id);
    return problems_[id] = problem ? problem->digest : std::string();
  }

  Result<ExitCode> show_plan() const {
    Table table({"submission", "from", "what would be done"});
    for (const Item& item : items_)
      table.row({item.submission.name, to_utf8(item.submission.shown), !chosen(item) ? "left out (--only)" : item.because.empty() ? "nothing: unchanged" : "grade: " + item.because});
    context_.terminal.out(table.text(context_.terminal));
    for (const std::string& name : ignored_) context_.terminal.out("not a submission: " + to_utf8(name));
    context_.terminal.out("nothing was written (--dry-run)");
    return ExitCode::kDone;
  }

  Result<void> grade_all() {
    std::vector<std::size_t> queue;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (chosen(items_[i]) && !items_[i].because.empty()) queue.push_back(i);
    std::size_t unchanged = 0;
    for (const Item& item : items_) unchanged += chosen(item) && item.because.empty();
    if (unchanged) context_.terminal.say(fmt::format("{} unchanged since they were graded (--force grades them again)", unchanged));
    std::vector<Job> jobs;
    for (std::size_t i : queue) jobs.push_back({items_[i].submission.name, process_for(items_[i])});
    if (remote()) return submit(jobs);
    const auto gpus = inputs_.driver.empty() ? std::vector<std::string>{} : visible_gpus(context_.resources);
    const auto begun = Clock::now();
    std::size_t started = 0, ended = 0;
    JobEvents events;
    events.starting = [&](std::size_t at, int place, ProcessSpec& spec) {
      if (!gpus.empty()) spec.env.emplace_back("CUDA_VISIBLE_DEVICES", gpus[static_cast<std::size_t>(place) % gpus.size()]);
      ++started;
      if (!context_.terminal.interactive())
        context_.terminal.say(fmt::format("[{}/{}] {}: {}", started, jobs.size(), jobs[at].name, items_[queue[at]].because));
    };
    std::optional<Error> broken;
    events.finished = [&](std::size_t at, const ProcessResult& result) {
      ++ended;
      Item& item = items_[queue[at]];
      if (auto taken = take_result(item, result); !taken && !broken) broken = taken.error();
      context_.terminal.say(fmt::format("[{}/{}] {}: {} ({:.1f} s)", ended, jobs.size(), item.submission.name, line_of(item),
                                        std::chrono::duration<double>(result.wall).count()));
    };
    events.running = [&](const std::vector<RunningJob>& running) {
      if (!context_.terminal.interactive()) return;
      std::vector<std::string> texts;
      for (const RunningJob& job : running) texts.push_back(fmt::format("{} {}", jobs[job.index].name, name_of(state_of_narration(job.last_line))));
      const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
      const double left = ended ? seconds / static_cast<double>(ended) * static_cast<double>(jobs.size() - ended) : 0;
      context_.terminal.progress(fmt::format("{}/{}{} | {}", ended, jobs.size(), ended ? fmt::format(", about {} left", duration(left)) : "", join(texts, ", ")));
    };
    CAPSTONE_CHECK(run_jobs(jobs, arguments_.parallel, events));
    context_.terminal.end_progress();
    if (broken) return fail(*broken);
    return {};
  }

  bool remote() const { return arguments_.collect || arguments_.executor == "slurm"; }
  fs::path slurm_folder() const { return fs::absolute(out_ / "slurm").lexically_normal(); }

  // A task that has not ended yet is left alone: the same command twice does not judge twice.
  Result<void> submit(std::vector<Job> jobs) const {
    const std::size_t wanted = jobs.size();
    std::erase_if(jobs, [&](const Job& job) { return has_task(slurm_folder(), job.name) && !end_of_task(slurm_folder(), job.name); });
    if (jobs.size() < wanted)
      context_.terminal.say(fmt::format("{} are with Slurm already; if it lost them, remove {}", wanted - jobs.size(), (slurm_folder() / "tasks").string()));
    if (jobs.empty()) return {};
    SlurmOptions options = arguments_.slurm;
    if (options.gres == "none") options.gres.clear();
    CAPSTONE_TRY(std::string id, submit_array(slurm_folder(), jobs, options, context_.resources.path_variable));
    context_.terminal.say(fmt::format("{} tasks submitted as job array {}; squeue -j {} shows them; then: capstone grade {} --out {} --collect", jobs.size(), id, id, arguments_.folder, arguments_.out));
    return {};
  }

  // What Slurm's tasks left. Their results are read already; a task that failed is a fault of the machine.
  Result<void> collect() {
    std::size_t waiting = 0, taken = 0;
    for (Item& item : items_) {
      const std::string& name = item.submission.name;
      if (!chosen(item) || !has_task(slurm_folder(), name)) continue;
      auto end = end_of_task(slurm_folder(), name);
      if (!end) {
        ++waiting;
        continue;
      }
      CAPSTONE_CHECK(take_result(item, *end));
      context_.terminal.say(fmt::format("{}: {}", name, line_of(item)));
      forget_task(slurm_folder(), name);
      ++taken;
    }
    context_.terminal.say(fmt::format("{} collected, {} with Slurm", taken, waiting));
    return {};
  }

  static std::string duration(double seconds) {
    if (seconds < 90) return fmt::format("{:.0f} s", seconds);
    return seconds < 5400 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
  }

  ProcessSpec process_for(const Item& item) const {
    GradingTask task{item.submission, folder_of(item.submission), rubric_file_, arguments_.judge};
    ProcessSpec spec;
    spec.argv = {context_.program.string(), "grade-one", item.submission.path.string()};
    spec.input = Json(task).dump();
    spec.cwd = context_.cwd;
    spec.timeout = kPatience;
    return spec;
  }

  // What the process left. A process that left nothing is a fault of ours, and what was known before it stays.
  Result<void> take_result(Item& item, const ProcessResult& process) {
    if (process.ok())
      if (auto result = read_result(folder_of(item.submission) / "result.json")) {
        item.result = std::move(*result);
        return {};
      }
    std::string said(trim(to_utf8(process.err)));
    if (std::size_t at = said.rfind("error: "); at != std::string::npos) said.erase(0, at + 7);
    said = replace_all(said.substr(0, 400), "\n", " ");
    SubmissionResult failed;
    failed.name = item.submission.name;
    failed.path = item.submission.shown;
    failed.origin = item.submission.origin;
    failed.fault = GradingFault::kMachine;
    failed.state = state_of(failed.fault);
    failed.why = process.end == ProcessResult::End::kTimedOut    ? "judging it did not end"
                 : process.end == ProcessResult::End::kSignalled ? fmt::format("the judging process was killed by signal {}", process.status)
                                                                 : "judging it failed: " + said;
    failed.hint = "grade again; `capstone doctor` says what is missing";
    failed.inputs = inputs_;
    if (auto files = digest_of_submission(item.submission.path)) failed.inputs.files = *files;
    failed.started = failed.finished = utc_now();
    const bool same = item.result && item.result->fault != GradingFault::kMachine && item.result->inputs.files == failed.inputs.files;
    if (same) {
      context_.terminal.say(fmt::format("{}: {}; its earlier result stays", item.submission.name, failed.why));
      return {};
    }
    item.result = failed;
    return write_result(failed, folder_of(item.submission) / "result.json");
  }

  static std::string cell_of(const Measurement* m) {
    if (!m) return "-";
    return m->gate_two == GateTwo::kNotJudged ? std::string(label_of(m->gate_one)) : fmt::format("{}, {}", label_of(m->gate_one), label_of(m->gate_two));
  }

  static std::string line_of(const Item& item) {
    if (!item.result) return "queued";
    const SubmissionResult& r = *item.result;
    std::string text(name_of(r.state));
    if (r.fault != GradingFault::kNone) return fmt::format("{} ({}): {}", text, name_of(r.fault), r.why);
    return fmt::format("{}: human {}, model {}", text, cell_of(r.of("human")), cell_of(r.of("llm")));
  }

  std::string csv() const {
    std::vector<std::string> heading{"name", "people", "problem", "state", "fault", "late", "human_gate_one", "human_gate_two", "human_speedup", "llm_gate_one", "llm_gate_two", "llm_speedup"};
    for (const Criterion& criterion : rubric_.criteria) heading.push_back("suggested_" + criterion.id);
    heading.insert(heading.end(), {"suggested_total", "notes"});
    std::string text = csv_row(heading);
    for (const Item& item : items_) {
      static const SubmissionResult none;
      const SubmissionResult& r = item.result ? *item.result : none;
      std::vector<std::string> people;
      for (const Person& person : r.members) people.push_back(person.name);
      std::vector<std::string> cells{item.submission.name, join(people, "; "), r.problem, std::string(name_of(r.state)), std::string(name_of(r.fault)), item.submission.origin.late ? "late" : ""};
      for (const char* candidate : {"human", "llm"}) {
        const Measurement* m = r.of(candidate);
        const bool timed = m && m->gate_two != GateTwo::kNotJudged && m->measured && m->measured->speedup;
        cells.push_back(m ? std::string(label_of(m->gate_one)) : "");
        cells.push_back(m ? std::string(label_of(m->gate_two)) : "");
        cells.push_back(timed ? fmt::format("{:.4f}", m->measured->speedup->point) : "");
      }
      for (const Criterion& criterion : rubric_.criteria) {
        auto mark = std::find_if(r.suggested.begin(), r.suggested.end(), [&](const SuggestedMark& s) { return s.criterion == criterion.id; });
        cells.push_back(mark == r.suggested.end() ? "" : fmt::format("{:g}", mark->points));
      }
      cells.push_back(r.suggested.empty() ? "" : fmt::format("{:g}", r.suggested_total()));
      std::vector<std::string> notes;
      if (!r.why.empty()) notes.push_back(r.why);
      for (const Claim& claim : r.claims)
        if (claim.agreement != Agreement::kAgrees) notes.push_back(claim.candidate + ": " + claim.text);
      for (const std::string& version : r.left_out) notes.push_back("the worklog leaves out " + version);
      notes.insert(notes.end(), r.notes.begin(), r.notes.end());
      cells.push_back(join(notes, "; "));
      text += csv_row(cells);
    }
    return text;
  }

  Result<ExitCode> summary() const {
    const Terminal& t = context_.terminal;
    Table table({"submission", "state", "human", "model", "suggested"}, {false, false, false, false, true});
    std::map<std::string, int> states;
    std::vector<std::string> reasons;   // below the table: they are sentences
    for (const Item& item : items_) {
      const GradingState state = item.result ? item.result->state : GradingState::kQueued;
      ++states[std::string(name_of(state))];
      if (items_.size() > kLongSummary && state == GradingState::kGraded) continue;
      const SubmissionResult* r = item.result ? &*item.result : nullptr;
      table.row({item.submission.name, std::string(name_of(state)), r ? cell_of(r->of("human")) : "-", r ? cell_of(r->of("llm")) : "-",
                 r && state == GradingState::kGraded ? fmt::format("{:g}", r->suggested_total()) : "-"});
      if (r && !r->why.empty()) reasons.push_back(fmt::format("{}: {}", item.submission.name, to_utf8(r->why)));
    }
    t.out(table.text(t));
    for (const std::string& reason : reasons) t.out(reason);
    std::vector<std::string> counts;
    for (const auto& [state, count] : states) counts.push_back(fmt::format("{} {}", count, state));
    t.out(fmt::format("{} submissions: {}", items_.size(), join(counts, ", ")));
    for (const std::string& name : ignored_) t.out("not a submission: " + to_utf8(name));
    show_roster();
    t.out((out_ / "grades.csv").string());
    t.out("a suggestion is where to begin reading: the mentor's mark always wins");
    const bool whole = std::all_of(items_.begin(), items_.end(), [](const Item& item) { return item.result && item.result->state == GradingState::kGraded; });
    return whole ? ExitCode::kDone : ExitCode::kPartlyUngraded;
  }

  void show_roster() const {
    if (!has_roster_) return;
    const RosterMatch match = matched();
    const Terminal& t = context_.terminal;
    for (std::size_t i = 0; i < roster_.size(); ++i) {
      if (match.submissions[i].empty()) t.out("never submitted: " + roster_[i].name + (roster_[i].id.empty() ? "" : " (" + roster_[i].id + ")"));
      if (match.submissions[i].size() > 1) t.out("more than one submission: " + roster_[i].name + ": " + join(match.submissions[i], ", "));
    }
    for (const std::string& stranger : match.strangers) t.out("matches nobody in the roster: " + stranger);
  }

  const Context& context_;
  const GradeArguments& arguments_;
  fs::path out_, rubric_file_;
  Rubric rubric_;
  GradingInputs inputs_;
  std::vector<Item> items_;
  std::vector<std::string> ignored_;
  std::vector<RosterRow> roster_;
  bool has_roster_ = false;
  std::optional<Instant> deadline_;
  std::map<std::string, std::string> problems_;   ///< id → digest of the mentor's
};

// One submission; what `grade` starts.
Result<ExitCode> grade_one(const Context& context, const std::string& path) {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return fail("no task on standard input", {}, "`capstone grade` runs this command; it is not for people");
  GradingTask task = json.get<GradingTask>();
  task.submission.path = path;
  CAPSTONE_TRY(auto result, grade_submission(context, task));
  (void)result;
  return ExitCode::kDone;
}

}  // namespace

void add_grade(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("grade", "for mentors: judge every submission of a folder afresh");
  auto arguments = std::make_shared<GradeArguments>();
  command->add_option("folder", arguments->folder, "folders and archives made by `capstone submit`; or a bulk archive of Canvas, Moodle or Gradescope")->required();
  command->add_option("--out", arguments->out, "where results, score sheets and grades.csv go (default graded/)");
  command->add_option("--roster", arguments->roster, "CSV with name,id,email: who belongs to the course (default: roster.csv beside the submissions)");
  command->add_option("--deadline", arguments->deadline, "by when it was due, for example 2026-11-20T23:59+01:00; a roster's columns deadline and submitted stand in front; nothing is taken off")
      ->type_name("TIME");
  command->add_option("--rubric", arguments->rubric, "a rubric of the cohort's own (default: the course's)");
  command->add_option("--only", arguments->only, "grade this submission only; may be given again");
  command->add_option("-j,--jobs", arguments->parallel, "submissions at a time (default 1); timing waits for a GPU of its own")->check(CLI::Range(1, 256));
  command->add_flag("--force", arguments->force, "grade unchanged submissions again");
  command->add_flag("--dry-run", arguments->dry_run, "say what would be graded and why, write nothing");
  command->add_flag("--allow-unisolated", arguments->allow_unisolated, "run submissions even where nothing keeps them from this account's files");
  command->add_option("--executor", arguments->executor, "local (default), or slurm: a job array, a task a submission; then --collect")->check(CLI::IsMember({"local", "slurm"}));
  command->add_option("--partition", arguments->slurm.partition, "Slurm's partition (default: its own)");
  command->add_option("--gres", arguments->slurm.gres, "what each of Slurm's tasks needs (default gpu:1; none: nothing)");
  command->add_option("--at-a-time", arguments->slurm.parallel, "Slurm's tasks at a time (default: as Slurm likes)")->check(CLI::Range(1, 100'000));
  command->add_flag("--collect", arguments->collect, "take in what Slurm's tasks have left");
  add_judge_options(*command, arguments->judge);
  command->callback([&context, &action, arguments] { action = [&context, arguments] { return Batch(context, *arguments).run(); }; });

  auto* one = app.add_subcommand("grade-one")->group("");
  auto path = std::make_shared<std::string>();
  one->add_option("path", *path)->required();
  one->callback([&context, &action, path] { action = [&context, path] { return grade_one(context, *path); }; });
}

}  // namespace capstone::cli
