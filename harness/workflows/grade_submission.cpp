#include "harness/workflows/grade_submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/explained.h"
#include "harness/course/recompute.h"
#include "harness/model/problem.h"
#include "harness/project/archive/archive.h"
#include "harness/project/archive/collect.h"
#include "harness/project/archive/symlink_check.h"
#include "harness/workflows/catalogue.h"
#include "harness/workflows/judge_and_record.h"
#include "harness/workflows/origin.h"
#include "harness/workflows/report.h"
#include "templates/report.h"

namespace capstone::workflows {
namespace {

constexpr int kMostLayers = 3;  // of archives in archives
constexpr std::size_t kMaxWorklog = 64u << 20, kMaxSource = 16u << 20;

// What ends the grading of a submission: the fault and its error.
struct Stop {
  GradingFault fault;
  Error error;
};
template <class T>
using Step = tl::expected<T, Stop>;

tl::unexpected<Stop> stop(GradingFault fault, Error error) {
  if (error.code == ExitCode::kEnvironment || error.code == ExitCode::kInternal)
    fault = GradingFault::kMachine;
  return tl::unexpected<Stop>(Stop{fault, std::move(error)});
}

#define GRADING_TRY(target, fault, ...)                                      \
  auto CAPSTONE_CONCAT(step_, __LINE__) = (__VA_ARGS__);                     \
  if (!CAPSTONE_CONCAT(step_, __LINE__))                                     \
    return stop(fault, std::move(CAPSTONE_CONCAT(step_, __LINE__)).error()); \
  target = std::move(*CAPSTONE_CONCAT(step_, __LINE__))

GradingState state_of(Stage stage) {
  switch (stage) {
    case Stage::kWait:
      return GradingState::kQueued;
    case Stage::kBuild:
    case Stage::kBuildInstrumented:
      return GradingState::kBuilding;
    case Stage::kGateTwo:
    case Stage::kSustained:
    case Stage::kExtraChecks:
      return GradingState::kMeasuring;
    case Stage::kNote:
    case Stage::kLoad:
    case Stage::kGateOne:
    case Stage::kEmulatedTimes:
      break;
  }
  return GradingState::kChecking;
}

class Grading {
 public:
  Grading(const Workspace& workspace, const GradingTask& task, const Rubric& rubric,
          const GradingSink& status)
      : workspace_(workspace), task_(task), rubric_(rubric), status_(status) {
    result_.name = task.submission.name;
    result_.path = task.submission.shown;
    result_.origin = task.submission.origin;
    result_.started = utc_now();
    result_.inputs = common_inputs(workspace, task.judge, rubric.digest);
    result_.cohort_findings = task.cohort_findings;
  }

  Result<SubmissionResult> run() {
    if (auto digest = digest_of_submission(task_.submission.path)) result_.inputs.files = *digest;
    Step<void> done = judge_and_score();
    if (interrupted()) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (!done) blame(done.error().fault, done.error().error);
    result_.state = capstone::state_of(result_.fault);
    result_.finished = utc_now();
    // Remove the pages of an earlier version.
    std::error_code code;
    if (pages_.files.empty())
      for (const char* folder : {"", "feedback"})  // published marks stay
        for (const char* page : {"score_sheet.md", "score_sheet.html", "score_sheet.json", "worklog.md",
                                 "worklog.html", "verdict.json"})
          fs::remove(task_.folder / folder / page, code);
    if (!pages_.files.empty()) CAPSTONE_CHECK(make_folders(task_.folder / "feedback"));
    CAPSTONE_CHECK(write_report(pages_, task_.folder));
    CAPSTONE_CHECK(write_result(result_, task_.folder / "result.json"));
    return result_;
  }

 private:
  void blame(GradingFault fault, const Error& error) {
    result_.fault = fault;
    result_.why = error.where.empty() ? error.what : error.what + " (" + relative(error.where) + ")";
    result_.hint = error.hint;
  }

  // Paths as the mentor knows them instead of those of the batch.
  std::string relative(const std::string& text) const {
    std::string out = replace_all(text, root_.empty() ? "\n" : root_.string() + "/", "");
    return replace_all(out, task_.submission.path.string(), task_.submission.shown);
  }

  Step<void> judge_and_score() {
    if (task_.submission.rivals.size() > 1)
      return stop(GradingFault::kAmbiguous,
                  {fmt::format("{} archives in one place: {}", task_.submission.rivals.size(),
                               join(task_.submission.rivals, ", ")),
                   task_.submission.shown, "leave the one that counts and grade again"});
    if (auto ok = find_root(); !ok) return ok;
    GRADING_TRY(ProjectConfig config, GradingFault::kNotAProject, read_config(root_ / "capstone.yaml"));
    result_.members = config.members;
    result_.problem = config.problem_id;
    // The catalogue's definition decides. The pinned copy is never built or run.
    auto problem = catalogue_problem(workspace_, config.problem_id);
    if (!problem) return stop(GradingFault::kUnknownProblem, problem.error());
    result_.inputs.problem = problem->digest;
    Project project{root_, config, *problem, true};
    if (auto opened = open_project(root_))
      project = std::move(*opened);
    else
      result_.notes.push_back("the pinned problem cannot be read: " + opened.error().what);
    if (problem->digest != config.problem_digest || project.problem_changed)
      result_.notes.push_back("the pinned problem differs from the catalogue's; the catalogue's was used");
    LedgerView ledger = read_records(project);
    result_.vouchers = ledger.vouchers();
    if (auto ok = judge_kernels(project, *problem, ledger); !ok) return ok;
    for (const Measurement& m : result_.judged) result_.claims.push_back(compare_claim(ledger, m));
    Recomputed recomputed = recompute(project, *problem, std::move(ledger), result_.judged);
    if (!recomputed.ledger.predictions.empty()) result_.prediction = recomputed.ledger.predictions.front();
    result_.findings = recomputed.contradicted;
    result_.notes.insert(result_.notes.end(), recomputed.notes.begin(), recomputed.notes.end());
    result_.findings.insert(result_.findings.end(), recomputed.missing.begin(), recomputed.missing.end());
    if (std::string copied = label_of_model(project); !copied.empty()) result_.findings.push_back(copied);
    if (auto ok = render(project, recomputed); !ok) return ok;
    return weigh();
  }

  void tell(const StageEvent& event) const {
    if (status_) status_({state_of(event.stage), event.line()});
  }

  Step<void> find_root() {
    fs::path place = task_.submission.path;
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(task_.folder, code))  // left by a killed run
      if (entry.path().filename().string().find(".unpacking-") != std::string::npos)
        fs::remove_all(entry.path(), code);
    if (!fs::is_directory(fs::symlink_status(place, code))) {
      place = kept();
      fs::remove_all(place, code);
      if (auto made = make_folders(task_.folder); !made) return stop(GradingFault::kMachine, made.error());
      if (auto ok = unpack(task_.submission.path, place); !ok) return ok;
    }
    if (auto safe = check_unlinked(place); !safe) return stop(GradingFault::kRefused, safe.error());
    std::vector<fs::path> roots = project_roots(place);
    for (int layers = 0; roots.empty() && layers < kMostLayers; ++layers) {
      const std::vector<fs::path> archives = archives_below(place);
      if (archives.size() != 1) break;
      if (auto ok = unpack_inner(archives.front()); !ok) return ok;
      place = kept();
      roots = project_roots(place);
    }
    if (roots.size() > 1) {
      std::vector<std::string> names;
      for (const fs::path& root : roots) names.push_back(to_utf8(root.lexically_relative(place).string()));
      return stop(GradingFault::kAmbiguous,
                  {fmt::format("{} projects in one place: {}", names.size(), join(names, ", ")),
                   task_.submission.shown, "ask which one counts, and leave that one"});
    }
    root_ = roots.empty() ? fs::path() : roots.front();
    if (root_.empty())
      return stop(GradingFault::kNotAProject,
                  {"no capstone.yaml: this is not a capstone project", task_.submission.shown,
                   "ask for what `capstone submit` makes"});
    return place == task_.submission.path ? keep_copy() : Step<void>();
  }

  fs::path kept() const { return task_.folder / "submission"; }

  static Step<void> unpack(const fs::path& archive, const fs::path& place) {
    auto unpacked = try_unpack_archive(archive, place);
    if (unpacked) return {};
    const bool refused = unpacked.error().kind == UnpackError::Kind::kRefused;
    return stop(refused ? GradingFault::kRefused : GradingFault::kDamaged, unpacked.error().error);
  }

  // An archive in an archive takes the place of the outer one.
  Step<void> unpack_inner(const fs::path& archive) {
    fs::path inner = kept();
    inner += ".unpacking-inner";
    std::error_code code;
    fs::remove_all(inner, code);
    if (auto made = make_folders(task_.folder); !made) return stop(GradingFault::kMachine, made.error());
    if (auto ok = unpack(archive, inner); !ok) return ok;
    fs::remove_all(kept(), code);
    fs::rename(inner, kept(), code);
    if (code)
      return stop(GradingFault::kMachine, {"cannot keep a copy: " + code.message(), kept().string(),
                                           "is the disk full?", ExitCode::kEnvironment});
    return {};
  }

  // Keep a copy of what is judged next to its result: appeals and comparisons read it.
  Step<void> keep_copy() {
    auto files = collect_files(root_, UnpackLimits{}.entries);
    if (!files) return stop(GradingFault::kRefused, files.error());
    std::uintmax_t total = 0;
    for (const CollectedFile& file : files->files) total += file.bytes;
    if (total > UnpackLimits{}.total)
      return stop(GradingFault::kRefused,
                  {fmt::format("{} to hand in, {} are allowed", format_bytes(static_cast<double>(total)),
                               format_bytes(static_cast<double>(UnpackLimits{}.total))),
                   task_.submission.shown, "ask for what `capstone submit` makes"});
    const fs::path copy = kept();
    std::error_code code;
    fs::remove_all(copy, code);
    for (const CollectedFile& file : files->files) {
      if (auto made = make_folders((copy / file.path).parent_path()); !made)
        return stop(GradingFault::kMachine, made.error());
      fs::copy_file(file.source, copy / file.path, code);
      if (code)
        return stop(GradingFault::kMachine,
                    {"cannot keep a copy: " + code.message(), (copy / file.path).string(),
                     "is the disk full?", ExitCode::kEnvironment});
    }
    root_ = copy;
    return {};
  }

  LedgerView read_records(const Project& project) {
    auto ledger = read_ledger(project.ledger());
    auto faults = ledger ? verify_ledger(project.ledger(), project.sources())
                         : Result<std::vector<std::string>>(fail(ledger.error()));
    if (!faults)
      ledger_faults_.push_back(faults.error().what);
    else
      ledger_faults_ = *faults;
    for (const std::string& fault : ledger_faults_) {
      result_.notes.push_back("ledger: " + fault);
      if (result_.notes.size() > 20) break;
    }
    if (!ledger) return {};
    if (auto lines = line_digests(project.ledger())) result_.lines = std::move(*lines);
    for (const Record& record : ledger->records)
      if (record.kind == "measurement")
        result_.measurements.push_back(
            sha256_hex(record.body.dump(-1, ' ', false, Json::error_handler_t::replace)));
    return std::move(*ledger);
  }

  Step<void> judge_kernels(const Project& project, const Problem& problem, const LedgerView& ledger) {
    JudgeRequest request = request_of(problem, task_.judge);
    request.extra_checks = ExtraChecks::kAlways;
    std::error_code code;
    if (fs::is_regular_file(project.human_kernel(), code))
      request.candidates.push_back({"human", project.human_kernel()});
    if (auto attempt = latest_attempt(project, ledger))
      request.candidates.push_back({"llm", attempt->source});
    if (fs::is_regular_file(project.together_kernel(), code) && !ledger.together.empty())
      request.candidates.push_back({"together", project.together_kernel()});
    if (request.candidates.empty())
      return stop(GradingFault::kNothingToJudge, {"neither human/kernel.cu nor a model's attempt is there",
                                                  {},
                                                  "ask the student whether the right folder was handed in"});
    std::vector<std::string> digests;
    for (const Candidate& entry : request.candidates) {
      GRADING_TRY(std::string text, GradingFault::kRefused, read_file(entry.source, kMaxSource));
      digests.push_back(sha256_hex(text));
    }
    auto judged = judge(request, workspace_.resources, [&](const StageEvent& event) { tell(event); });
    if (!judged) return stop(GradingFault::kMachine, judged.error());
    result_.judged = std::move(*judged);
    for (std::size_t i = 0; i < result_.judged.size(); ++i) {
      Measurement& m = result_.judged[i];
      m.source_sha256 = digests[i];
      m.source = request.candidates[i].source.lexically_relative(root_).string();
      m.version = "handed in";
      if (m.gate_one == GateOne::kMachineFault)
        return stop(GradingFault::kMachine, {m.candidate + ": the machine failed, not the kernel",
                                             {},
                                             "grade again; `capstone doctor` says what is missing"});
    }
    return {};
  }

  // Marks and pages use the recomputed ledger.
  Step<void> render(const Project& project, const Recomputed& recomputed) {
    const LedgerView& ledger = recomputed.ledger;
    std::string text;
    if (auto read = read_file(project.worklog(), kMaxWorklog))
      text = std::move(*read);
    else
      result_.notes.push_back("worklog.md cannot be read: " + read.error().what);
    Worklog worklog = parse_worklog(text);
    result_.left_out = left_out_versions(ledger, worklog);
    Rejudged rejudged;
    if (const Measurement* human = result_.of("human"); human && human->gate_one != GateOne::kNotJudgeable)
      rejudged.human = human->gate_one;
    for (const Claim& claim : result_.claims)
      if (claim.agreement == Agreement::kContradicts)
        rejudged.contradictions.push_back(claim.candidate + ": " + claim.text);
    for (const std::string& found : recomputed.contradicted) rejudged.contradictions.push_back(found);
    if (!result_.cohort_findings.empty())  // the student's sheet shows this, and must name no classmate
      rejudged.contradictions.push_back("a comparison within the cohort raises a question");
    ScoreSheet sheet = score(rubric_, project, ledger, worklog, &rejudged);
    sheet.findings = all_reasons();
    for (const Measurement& m : result_.judged) sheet.judged.push_back(explained(m));
    for (const CriterionScore& c : sheet.criteria)
      result_.suggested.push_back(
          {c.criterion->id, static_cast<double>(c.criterion->weight), c.suggested, c.because});
    ReportInput input = report_input(project, ledger, workspace_);
    input.generated = utc_now();
    render_worklog(input);
    for (Audience audience : {Audience::kMentor, Audience::kStudent}) {
      GRADING_TRY(auto files, GradingFault::kMachine, render_score_sheet(input, sheet, audience));
      for (ReportFile& file : files)
        pages_.files.push_back(
            {(audience == Audience::kStudent ? "feedback/" : "") + file.name, std::move(file.bytes)});
    }
    // What a student needs to reproduce the verdict: cases with their seeds, without timing samples.
    std::vector<Measurement> brief = result_.judged;
    for (Measurement& m : brief)
      if (m.measured)
        for (Arm& arm : m.measured->arms) arm.samples_ms.clear();
    pages_.files.push_back({"feedback/verdict.json", Json{{"schema_version", 1}, {"judged", brief}}.dump(
                                                         2, ' ', false, Json::error_handler_t::replace) +
                                                         "\n"});
    return {};
  }

  // Next to the score sheet, for the mentor who reads both.
  void render_worklog(const ReportInput& input) {
    auto report = render_report(input);
    if (!report) {
      result_.notes.push_back("the worklog cannot be rendered: " + report.error().what);
      return;
    }
    for (ReportFile& file : report->files)
      if (file.name.starts_with("worklog.")) pages_.files.push_back(std::move(file));
  }

  // Everything that a mentor must look at, whichever of it becomes the fault.
  std::vector<std::string> all_reasons() const {
    std::vector<std::string> reasons;
    for (const std::string& fault : ledger_faults_) reasons.push_back("ledger: " + fault);
    for (const Claim& claim : result_.claims)
      if (is_contradiction(claim)) reasons.push_back(claim.candidate + ": " + claim.text);
    for (const std::string& finding : result_.all_findings()) reasons.push_back(finding);
    return reasons;
  }
  static bool is_contradiction(const Claim& claim) {
    return claim.agreement == Agreement::kContradicts || claim.agreement == Agreement::kGateOneDiffers;
  }

  // Judged; decide whether a mentor must look before it counts.
  Step<void> weigh() {
    for (const Measurement& m : result_.judged)
      if (m.gate_one == GateOne::kNotJudgeable)
        return stop(GradingFault::kNotJudgeable,
                    {fmt::format("{}: not judgeable on this backend{}", m.candidate,
                                 m.cases.empty() ? "" : ": " + m.cases[0].problem),
                     {},
                     "grade it on a machine with a GPU"});
    if (!ledger_faults_.empty())
      return stop(
          GradingFault::kLedger,
          {fmt::format(
               "the ledger is damaged: {}{}", ledger_faults_[0],
               ledger_faults_.size() > 1 ? fmt::format(", and {} more", ledger_faults_.size() - 1) : ""),
           {},
           "ask the student; a crash of the machine can cause this too"});
    for (const Claim& claim : result_.claims)
      if (is_contradiction(claim))
        return stop(
            GradingFault::kContradicted,
            {claim.candidate + ": " + claim.text, {}, "look at the case that failed, and ask the student"});
    if (const auto found = result_.all_findings(); !found.empty())
      return stop(GradingFault::kUnsupported,
                  {found.size() > 1 ? fmt::format("{}, and {} more", found[0], found.size() - 1) : found[0],
                   {},
                   "the score sheet lists what was found; ask the student"});
    return {};
  }

  const Workspace& workspace_;
  const GradingTask& task_;
  const Rubric& rubric_;
  const GradingSink& status_;
  SubmissionResult result_;
  fs::path root_;
  std::vector<std::string> ledger_faults_;
  ReportFiles pages_;
};

}  // namespace

void to_json(Json& json, const GradingTask& t) {
  const Submission& s = t.submission;
  json = {{"name", s.name},           {"shown", to_utf8(s.shown)},   {"origin", s.origin},
          {"rivals", Json::array()},  {"folder", t.folder.string()}, {"rubric", t.rubric.string()},
          {"judge", json_of(t.judge)}};
  for (const std::string& rival : s.rivals) json["rivals"].push_back(to_utf8(rival));
  json["cohort_findings"] = t.cohort_findings;
}

void from_json(const Json& json, GradingTask& t) {
  json.at("name").get_to(t.submission.name);
  json.at("shown").get_to(t.submission.shown);
  json.at("origin").get_to(t.submission.origin);
  json.at("rivals").get_to(t.submission.rivals);
  json.at("cohort_findings").get_to(t.cohort_findings);
  t.folder = json.at("folder").get<std::string>();
  t.rubric = json.at("rubric").get<std::string>();
  auto judge = judge_options_from(json.at("judge"));
  if (!judge) throw std::invalid_argument(judge.error().what);
  t.judge = *std::move(judge);
}

GradingInputs common_inputs(const Workspace& workspace, const JudgeOptions& options,
                            const std::string& rubric_digest) {
  GradingInputs inputs;
  inputs.rubric = rubric_digest;
  inputs.tool = workspace.resources.version;
  if (choose_backend(options.backend, workspace.resources).backend == Backend::kCuda) {
    if (auto gpu = find_gpu(workspace.resources)) {
      inputs.device = gpu->name;
      inputs.driver = gpu->driver;
    }
  } else {
    inputs.device = "CPU (emulated CUDA)";
  }
  inputs.options = join(words_of(options), " ");
  return inputs;
}

Result<SubmissionResult> grade_submission(const GradingTask& task, const Workspace& workspace,
                                          const GradingSink& status) {
  CAPSTONE_TRY(Rubric rubric, load_rubric(task.rubric));
  return Grading(workspace, task, rubric, status).run();
}

std::string status_line(const GradingStatus& status) {
  return Json{{"state", name_of(status.state)}, {"text", to_utf8(status.text)}}.dump();
}

GradingStatus parse_status(const std::string& line) {
  const Json json = parse_json(line);
  GradingStatus status;
  if (!json.is_object()) return status;
  const std::string state = json.value("state", "");
  for (GradingState known : {GradingState::kBuilding, GradingState::kChecking, GradingState::kMeasuring})
    if (state == name_of(known)) status.state = known;
  status.text = json.value("text", "");
  return status;
}

}  // namespace capstone::workflows
