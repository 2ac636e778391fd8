#include "harness/workflows/grade_cohort.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/gradebook.h"
#include "harness/course/gradebook/lateness.h"
#include "harness/course/jobs.h"
#include "harness/course/judges.h"
#include "harness/course/recompute.h"
#include "harness/course/repositories.h"
#include "harness/runtime/sandbox/orphans.h"
#include "harness/runtime/sandbox/sandbox.h"
#include "harness/workflows/catalogue.h"
#include "harness/workflows/class_progress.h"

namespace capstone::workflows {
namespace {

using Clock = std::chrono::steady_clock;
// A judgement that takes longer hangs in capstone itself: every run of a submission has its own, shorter
// limit.
constexpr std::chrono::hours kPatience{2};

class Batch {
 public:
  Batch(const Workspace& workspace, const GradeRequest& request, const GradeEvents& events)
      : workspace_(workspace), request_(request), events_(events), out_(workspace.cwd / request.out) {}

  Result<GradeOutcome> plan() {
    CAPSTONE_CHECK(prepare(false));
    return outcome();
  }

  Result<GradeOutcome> run() {
    // Submissions are other people's code: by default they run only where they cannot read this account's
    // files.
    if (Sandbox sandbox = Sandbox::detect(workspace_.resources);
        !sandbox.isolated() && !request_.allow_unisolated)
      return fail("submissions would run without isolation (" + sandbox.description() + ")", {},
                  "`capstone doctor` says how to fix it; --allow-unisolated runs them anyway, with all "
                  "rights of this account",
                  ExitCode::kEnvironment);
    CAPSTONE_CHECK(prepare(request_.executor != GradeRequest::Executor::kCollect));
    CAPSTONE_CHECK(make_folders(out_));
    CAPSTONE_TRY(FileLock lock, lock_cohort());
    if (int ended = end_orphaned_sandboxes())
      report_note(events_.progress,
                  fmt::format("{} sandbox{} of a killed run ended", ended, ended == 1 ? "" : "es"));
    // First the results of an earlier batch that was killed before it could enter them.
    CAPSTONE_TRY(Gradebook book, Gradebook::open(out_));
    book_ = std::move(book);
    CAPSTONE_CHECK(enter_results());
    CAPSTONE_TRY(std::string rubric, read_file(rubric_file_));
    CAPSTONE_CHECK(write_file_atomic(out_ / "rubric.yaml", rubric));  // marks use the rubric of this batch
    if (request_.executor == GradeRequest::Executor::kCollect)
      CAPSTONE_CHECK(collect());
    else
      CAPSTONE_CHECK(grade_all());
    CAPSTONE_CHECK(enter_results());
    CAPSTONE_CHECK(enter_missing());
    CAPSTONE_CHECK(read_rulings());
    note_lateness();
    CAPSTONE_CHECK(write_file_atomic(out_ / "grades.csv", grades_csv(items_, rubric_)));
    if (auto key = judge_key(workspace_)) judges_.emplace(key->public_key(), "this machine");
    return outcome();
  }

 private:
  fs::path folder_of(const Submission& s) const { return out_ / "submissions" / s.name; }

  GradeOutcome outcome() const {
    GradeOutcome all;
    all.items = items_;
    all.ignored = ignored_;
    all.problems = untaken_;
    all.has_roster = has_roster_;
    all.roster = roster_;
    if (has_roster_) all.match = matched();
    all.judges = judges_;
    all.gone = gone_;
    all.csv = out_ / "grades.csv";
    return all;
  }

  Result<FileLock> lock_cohort() const {
    auto lock = FileLock::acquire(out_ / ".lock", false);
    if (!lock && lock.error().code == ExitCode::kEnvironment)
      return fail("another `capstone grade` is working on this cohort", out_.string(),
                  "wait until it has finished", ExitCode::kEnvironment);
    return lock;
  }

  // Of a folder, or of the roster's repositories.
  Result<std::vector<Submission>> submissions(const fs::path& where, bool fetch) {
    if (request_.repos.empty()) {
      CAPSTONE_TRY(auto found, find_submissions(where, out_, out_));
      ignored_ = std::move(found.ignored);
      return std::move(found.submissions);
    }
    CAPSTONE_TRY(auto taken, take_repositories(roster_, workspace_.cwd / request_.repos, deadline_,
                                               out_ / "repos", workspace_.resources.path_variable, fetch));
    untaken_ = std::move(taken.problems);
    for (const Submission& s : taken.submissions)
      report_note(events_.progress, fmt::format("{}: commit {} of {}", s.name, s.origin.commit.substr(0, 12),
                                                s.origin.submitted));
    return std::move(taken.submissions);
  }

  // @param fetch  clone repositories; else what an earlier run has taken counts
  Result<void> prepare(bool fetch) {
    const fs::path where = request_.repos.empty() ? workspace_.cwd / request_.folder
                                                  : (workspace_.cwd / request_.repos).parent_path();
    rubric_file_ = request_.rubric.empty() ? workspace_.resources.share / "rubric" / "rubric.yaml"
                                           : workspace_.cwd / request_.rubric;
    CAPSTONE_TRY(rubric_, load_rubric(rubric_file_));
    if (!request_.deadline.empty()) {
      CAPSTONE_TRY(deadline_, parse_instant(request_.deadline));
    }
    std::error_code code;
    const std::string& named = request_.repos.empty() ? request_.roster : request_.repos;
    fs::path roster = named.empty() ? where / "roster.csv" : workspace_.cwd / named;
    has_roster_ = !named.empty() || fs::is_regular_file(roster, code);
    if (has_roster_) {
      CAPSTONE_TRY(roster_, read_roster(roster));
    }
    if (fs::is_regular_file(where / "judges.csv", code)) {
      CAPSTONE_TRY(judges_, read_judges(where / "judges.csv"));
    }
    CAPSTONE_TRY(std::vector<Submission> found, submissions(where, fetch));
    CAPSTONE_CHECK(check_names(found));
    CAPSTONE_CHECK(choose_archives(found));
    inputs_ = common_inputs(workspace_, request_.judge, rubric_.digest);
    for (Submission& submission : found) {
      if (interrupted()) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
      GradeItem item;
      item.submission = std::move(submission);
      if (auto result = read_result(folder_of(item.submission) / "result.json"))
        item.result = std::move(*result);
      item.because = why_again(item);
      item.chosen = request_.only.empty() || std::find(request_.only.begin(), request_.only.end(),
                                                       item.submission.name) != request_.only.end();
      items_.push_back(std::move(item));
    }
    if (fs::is_directory(where / "checkins", code))
      if (auto read = read_checkins(workspace_, {(where / "checkins").string()}, events_.progress))
        checkins_ = std::move(*read);
    CAPSTONE_CHECK(read_rulings());
    note_lateness();
    changed_by_the_cohort();
    return {};
  }

  // Of an earlier batch; none: this is the first one.
  Result<std::optional<Gradebook>> gradebook_so_far() const {
    std::error_code code;
    if (!fs::exists(out_ / "gradebook.sqlite", code)) return std::optional<Gradebook>();
    CAPSTONE_TRY(Gradebook book, Gradebook::open(out_));
    return std::optional<Gradebook>(std::move(book));
  }

  // Of several archives in one place, the one that a mentor has chosen.
  Result<void> choose_archives(std::vector<Submission>& submissions) const {
    CAPSTONE_TRY(const auto book, gradebook_so_far());
    if (!book) return {};
    CAPSTONE_TRY(const auto rulings, book->rulings());
    const auto chosen = of_kind(rulings, Ruling::Kind::kArchive);
    for (Submission& s : submissions) {
      const auto ruling = chosen.find(s.name);
      if (ruling == chosen.end()) continue;
      const std::string& archive = ruling->second.value;
      if (std::find(s.rivals.begin(), s.rivals.end(), archive) == s.rivals.end()) continue;
      // The first rival is the path that was found; the others lie in the same folder.
      const std::string path = s.path.string(), first = s.rivals.front();
      s.path = fs::path(path.substr(0, path.size() - first.size())) / archive;
      s.shown = s.shown.substr(0, s.shown.size() - first.size()) + archive;
      s.rivals.clear();
    }
    return {};
  }

  Result<void> read_rulings() {
    CAPSTONE_TRY(const auto book, gradebook_so_far());
    if (!book) return {};
    CAPSTONE_TRY(const auto rulings, book->rulings());
    const auto dropped = of_kind(rulings, Ruling::Kind::kDropped);
    const auto cleared = of_kind(rulings, Ruling::Kind::kCleared);
    const auto text = [](const std::map<std::string, Ruling>& all, const std::string& name) {
      const auto found = all.find(name);
      return found == all.end() ? std::string()
                                : fmt::format("{}, by {}", found->second.reason, found->second.grader);
    };
    for (GradeItem& item : items_) {
      item.dropped = text(dropped, item.submission.name);
      item.cleared = text(cleared, item.submission.name);
      item.chosen &= item.dropped.empty();
    }
    CAPSTONE_TRY(const auto rows, book->rows(rubric_));
    gone_.clear();
    for (const GradebookRow& row : rows)
      if (row.state != "missing" && std::none_of(items_.begin(), items_.end(), [&](const GradeItem& item) {
            return item.submission.name == row.submission;
          }))
        if (gone_.empty() || gone_.back() != row.submission) gone_.push_back(row.submission);
    return {};
  }

  void note_lateness() {
    const auto all = times();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      GradebookRow row;
      row.submitted = all[i].submitted;
      row.deadline = all[i].deadline;
      row.late = items_[i].submission.origin.late;
      items_[i].lateness = lateness_text(row);
    }
  }

  // Compares all results, and finds those that were graded without what this shows. They are graded again.
  std::vector<std::size_t> changed_by_the_cohort() {
    std::vector<const SubmissionResult*> results;
    for (const GradeItem& item : items_)
      if (item.result) results.push_back(&*item.result);
    cohort_findings_ = compare_cohort(results, checkins_);
    std::vector<std::size_t> changed;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (items_[i].chosen && items_[i].result && items_[i].result->fault != GradingFault::kMachine &&
          items_[i].result->cohort_findings != cohort_findings_of(items_[i])) {
        items_[i].because = "the cohort shows something new about it";
        changed.push_back(i);
      }
    return changed;
  }
  std::vector<std::string> cohort_findings_of(const GradeItem& item) const {
    auto found = cohort_findings_.find(item.submission.name);
    return found == cohort_findings_.end() ? std::vector<std::string>() : found->second;
  }

  Result<void> check_names(const std::vector<Submission>& submissions) const {
    std::vector<std::string> names;
    for (const Submission& s : submissions) names.push_back(s.name);
    for (const std::string& wanted : request_.only) {
      if (std::find(names.begin(), names.end(), wanted) != names.end()) continue;
      auto near = nearest(wanted, names);
      return fail("no submission is called '" + wanted + "'", request_.folder,
                  near ? "did you mean '" + *near + "'?" : "--dry-run lists them");
    }
    return {};
  }

  Result<void> enter_results() {
    std::vector<SubmissionResult> results;
    for (const GradeItem& item : items_)
      if (item.result) results.push_back(*item.result);
    CAPSTONE_CHECK(book_->take(results));
    return book_->keep_times(times());
  }

  // Only after every submission has said whose it is.
  Result<void> enter_missing() {
    const bool all = std::all_of(items_.begin(), items_.end(),
                                 [](const GradeItem& item) { return item.result || !item.dropped.empty(); });
    if (!has_roster_ || !all) return {};
    std::vector<Person> missing;
    const RosterMatch match = matched();
    for (std::size_t i = 0; i < roster_.size(); ++i)
      if (match.submissions[i].empty()) missing.push_back({roster_[i].name, roster_[i].id, roster_[i].email});
    return book_->keep_missing(missing);
  }

  RosterMatch matched() const {
    std::vector<Claimant> claimants;
    for (const GradeItem& item : items_)
      if (item.dropped.empty())
        claimants.push_back({item.submission.name, item.result ? item.result->members : std::vector<Person>{},
                             item.submission.origin});
    return match_roster(roster_, claimants);
  }

  // When each was handed in (as the platform says, else the roster) and its deadline: the roster's, for a
  // team the latest of its members', else the class's.
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
    for (const GradeItem& item : items_) {
      const std::string& name = item.submission.name;
      if (auto told = parse_instant(item.submission.origin.submitted)) came[name] = *told;
      if (!due.contains(name) && deadline_) due[name] = *deadline_;
      all.push_back({name, came.contains(name) ? utc_text(came[name]) : "",
                     due.contains(name) ? utc_text(due[name]) : ""});
    }
    return all;
  }

  // Why a submission is graded again; empty: its result has the same inputs.
  std::string why_again(const GradeItem& item) {
    if (!item.result) return "new";
    if (item.result->fault == GradingFault::kMachine) return "the machine failed last time";
    if (request_.force) return "--force";
    const GradingInputs& then = item.result->inputs;
    auto files = digest_of_submission(item.submission.path);
    if (!files || *files != then.files) return "handed in again";
    if (item.result->path != to_utf8(item.submission.shown)) return "it was " + item.result->path;
    if (problem_digest(item.result->problem) != then.problem) return "the problem changed";
    if (inputs_.rubric != then.rubric) return "the rubric changed";
    if (inputs_.tool != then.tool) return "it was judged by capstone " + then.tool;
    // With Slurm the device may differ from node to node.
    if (!remote() && (inputs_.device != then.device || inputs_.driver != then.driver))
      return "it was judged on " + then.device + " " + then.driver;
    return inputs_.options != then.options ? "other options: " + then.options : "";
  }

  const std::string& problem_digest(const std::string& id) {
    auto known = problems_.find(id);
    if (known != problems_.end()) return known->second;
    auto problem = catalogue_problem(workspace_, id);
    return problems_[id] = problem ? problem->digest : std::string();
  }

  Result<void> grade_all() {
    std::vector<std::size_t> queue;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (items_[i].chosen && !items_[i].because.empty()) queue.push_back(i);
    std::size_t unchanged = 0;
    for (const GradeItem& item : items_) unchanged += item.chosen && item.because.empty();
    if (unchanged)
      report_note(events_.progress,
                  fmt::format("{} unchanged since they were graded (--force grades them again)", unchanged));
    CAPSTONE_CHECK(grade(queue));
    if (remote()) return {};  // the next run compares what came back
    return grade(changed_by_the_cohort());
  }

  Result<void> grade(const std::vector<std::size_t>& queue) {
    std::vector<Job> jobs;
    for (std::size_t i : queue) jobs.push_back({items_[i].submission.name, process_for(items_[i])});
    if (remote()) return submit(jobs);
    const auto gpus =
        inputs_.driver.empty() ? std::vector<std::string>{} : visible_gpus(workspace_.resources);
    const auto begun = Clock::now();
    std::size_t started = 0, ended = 0;
    JobEvents events;
    events.starting = [&](std::size_t at, int place, ProcessSpec& spec) {
      if (!gpus.empty())
        spec.env.emplace_back("CUDA_VISIBLE_DEVICES", gpus[static_cast<std::size_t>(place) % gpus.size()]);
      ++started;
      if (events_.started) events_.started(started, jobs.size(), items_[queue[at]]);
    };
    std::optional<Error> broken;
    events.finished = [&](std::size_t at, const ProcessResult& result) {
      GradeItem& item = items_[queue[at]];
      if (auto taken = take_result(item, result); !taken && !broken) broken = taken.error();
      ++ended;
      const double seconds = std::chrono::duration<double>(result.wall).count();
      if (events_.finished) events_.finished(ended, jobs.size(), item, seconds);
    };
    events.running = [&](const std::vector<RunningJob>& running) {
      if (!events_.running) return;
      std::vector<GradeEvents::Running> now;
      for (const RunningJob& job : running)
        now.push_back({jobs[job.index].name, parse_status(job.last_line).state});
      events_.running(ended, jobs.size(), std::chrono::duration<double>(Clock::now() - begun).count(), now);
    };
    CAPSTONE_CHECK(run_jobs(jobs, request_.parallel, events));
    if (broken) return fail(*broken);
    return {};
  }

  bool remote() const { return request_.executor != GradeRequest::Executor::kLocal; }
  fs::path slurm_folder() const { return fs::absolute(out_ / "slurm").lexically_normal(); }

  // Tasks that still run are not submitted again.
  Result<void> submit(std::vector<Job> jobs) const {
    const std::size_t wanted = jobs.size();
    std::erase_if(jobs, [&](const Job& job) {
      return has_task(slurm_folder(), job.name) && !end_of_task(slurm_folder(), job.name);
    });
    if (jobs.size() < wanted)
      report_note(events_.progress,
                  fmt::format("{} are in Slurm's queue already; if Slurm has lost them, remove {}",
                              wanted - jobs.size(), (slurm_folder() / "tasks").string()));
    if (jobs.empty()) return {};
    SlurmOptions options = request_.slurm;
    if (options.gres == "none") options.gres.clear();
    CAPSTONE_TRY(std::string id,
                 submit_array(slurm_folder(), jobs, options, workspace_.resources.path_variable));
    report_note(
        events_.progress,
        fmt::format("{} tasks submitted as job array {}; squeue -j {} shows them; "
                    "then: capstone grade {} --out {} --collect",
                    jobs.size(), id, id,
                    request_.repos.empty() ? request_.folder : "--repos " + request_.repos, request_.out));
    return {};
  }

  // The tasks that Slurm has finished. Their results are read already; a task that failed is the machine's
  // fault.
  Result<void> collect() {
    std::size_t waiting = 0, taken = 0;
    for (GradeItem& item : items_) {
      const std::string& name = item.submission.name;
      if (!item.chosen || !has_task(slurm_folder(), name)) continue;
      auto end = end_of_task(slurm_folder(), name);
      if (!end) {
        ++waiting;
        continue;
      }
      CAPSTONE_CHECK(take_result(item, *end));
      if (events_.finished) events_.finished(taken + 1, 0, item, 0);
      forget_task(slurm_folder(), name);
      ++taken;
    }
    report_note(events_.progress, fmt::format("{} collected, {} still in Slurm's queue", taken, waiting));
    return {};
  }

  ProcessSpec process_for(const GradeItem& item) const {
    GradingTask task{item.submission, folder_of(item.submission), rubric_file_, request_.judge,
                     cohort_findings_of(item)};
    ProcessSpec spec;
    spec.argv = {workspace_.program.string(), "grade-one", item.submission.path.string()};
    spec.input = Json(task).dump();
    spec.cwd = workspace_.cwd;
    spec.timeout = kPatience;
    return spec;
  }

  // The result that the process wrote. Without one the machine is at fault, and an earlier result stays.
  Result<void> take_result(GradeItem& item, const ProcessResult& process) {
    if (process.ok())
      if (auto result = read_result(folder_of(item.submission) / "result.json")) {
        item.result = std::move(*result);
        // At once: a mark that is given while the batch runs belongs to this version.
        return book_->take({*item.result});
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
    failed.why = process.end == ProcessResult::End::kTimedOut ? "judging it took too long"
                 : process.end == ProcessResult::End::kSignalled
                     ? fmt::format("the judging process was killed by signal {}", process.status)
                     : "judging it failed: " + said;
    failed.hint = "grade again; `capstone doctor` says what is missing";
    failed.inputs = inputs_;
    if (auto files = digest_of_submission(item.submission.path)) failed.inputs.files = *files;
    failed.started = failed.finished = utc_now();
    const bool same = item.result && item.result->fault != GradingFault::kMachine &&
                      item.result->inputs.files == failed.inputs.files;
    if (same) {
      report_note(events_.progress,
                  fmt::format("{}: {}; its earlier result stays", item.submission.name, failed.why));
      return {};
    }
    item.result = failed;
    CAPSTONE_CHECK(book_->take({failed}));
    return write_result(failed, folder_of(item.submission) / "result.json");
  }

  const Workspace& workspace_;
  const GradeRequest& request_;
  const GradeEvents& events_;
  fs::path out_, rubric_file_;
  Rubric rubric_;
  GradingInputs inputs_;
  std::vector<GradeItem> items_;
  std::vector<std::string> ignored_, untaken_;
  std::vector<RosterRow> roster_;
  bool has_roster_ = false;
  std::optional<Gradebook> book_;  ///< open while grading
  std::vector<std::string> gone_;
  std::map<std::string, std::string> judges_;
  std::optional<Instant> deadline_;
  std::vector<CheckIn> checkins_;
  std::map<std::string, std::vector<std::string>> cohort_findings_;  ///< by submission
  std::map<std::string, std::string> problems_;                      ///< id → digest of the catalogue's
};

}  // namespace

Result<GradeOutcome> plan_grading(const GradeRequest& request, const Workspace& workspace) {
  const GradeEvents none;
  return Batch(workspace, request, none).plan();
}

Result<GradeOutcome> grade_cohort(const GradeRequest& request, const Workspace& workspace,
                                  const GradeEvents& events) {
  return Batch(workspace, request, events).run();
}

}  // namespace capstone::workflows
