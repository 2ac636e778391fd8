// A first `grade`: judges every submission of a folder afresh and writes one score sheet each and one CSV.
#include <fmt/format.h>

#include <algorithm>

#include "cli/recording.h"
#include "cli/session.h"
#include "cli/show.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/sandbox/sandbox.h"
#include "harness/submit/archive.h"
#include "harness/submit/unlinked.h"
#include "templates/report.h"

namespace capstone::cli {
namespace {

struct GradeArguments {
  std::string folder, out = "graded";
  bool allow_unisolated = false;
  JudgeOptions judge;
};

struct Graded {
  std::string name;                 ///< of the folder or archive
  std::string people, problem;
  std::string state = "failed";     ///< "graded" or "failed"
  std::string why;                  ///< when failed
  std::optional<Measurement> human, llm;
  std::vector<std::pair<std::string, double>> suggested;
  double total = 0;
  std::vector<std::string> notes;
};

bool is_archive(const fs::path& path) {
  std::string name = path.filename();
  return name.ends_with(".tar.gz") || name.ends_with(".tgz") || name.ends_with(".zip") || name.ends_with(".tar");
}

std::string plain_name(const fs::path& path) {
  std::string name = path.filename();
  for (const char* ending : {".tar.gz", ".tgz", ".zip", ".tar"})
    if (name.ends_with(ending)) return name.substr(0, name.size() - std::string(ending).size());
  return name;
}

// An unpacked archive usually has one folder at its top.
fs::path project_root(const fs::path& place) {
  std::error_code code;
  if (fs::exists(place / "capstone.yaml", code)) return place;
  for (const auto& entry : fs::directory_iterator(place, code))
    if (entry.is_directory() && !entry.is_symlink() && fs::exists(entry.path() / "capstone.yaml", code)) return entry.path();
  return place;
}

// RFC 4180, and a cell that a spreadsheet would take for a formula is made text.
std::string csv_cell(std::string text) {
  if (!text.empty() && std::string("=+-@\t\r").find(text[0]) != std::string::npos) text = "'" + text;
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return "\"" + replace_all(text, "\"", "\"\"") + "\"";
}

// What the student's ledger claims for the version that is handed in, beside what was found now.
void compare_claim(const LedgerView& ledger, const Measurement& now, Graded& graded) {
  const Measurement* claim = nullptr;
  for (const auto* list : {&ledger.human, &ledger.llm})
    for (const Measurement& m : *list)
      if (m.contestant == now.contestant && m.source_sha256 == now.source_sha256) claim = &m;
  if (!claim) {
    graded.notes.push_back("the handed-in " + now.contestant + " kernel was never measured in its ledger");
    return;
  }
  bool claimed = claim->gate_one == GateOne::kPassed, found = now.gate_one == GateOne::kPassed;
  if (claimed != found)
    graded.notes.push_back(fmt::format("{}: the ledger says {}, judged afresh: {}", now.contestant, label_of(claim->gate_one), label_of(now.gate_one)));
}

Result<Graded> grade_one(const Session& session, const fs::path& submission, const fs::path& out, const GradeArguments& arguments, const Rubric& rubric) {
  Graded graded;
  graded.name = plain_name(submission);
  fs::path place = submission;
  if (is_archive(submission)) {
    place = out / graded.name / "submission";
    std::error_code code;
    fs::remove_all(place, code);
    CAPSTONE_CHECK(make_folders(place.parent_path()));
    CAPSTONE_TRY(auto unpacked, unpack_archive(submission, place));
    (void)unpacked;
  }
  CAPSTONE_CHECK(check_unlinked(place));
  fs::path root = project_root(place);
  std::error_code code;
  if (!fs::exists(root / "capstone.yaml", code)) return fail("no capstone.yaml: this is not a capstone project", submission.string());
  CAPSTONE_TRY(Project project, open_project(root));
  std::vector<std::string> names;
  for (const Person& person : project.config.members) names.push_back(person.name);
  graded.people = join(names, "; ");
  graded.problem = project.config.problem_id;
  // The mentor's definition decides. The pinned copy is never built or run.
  CAPSTONE_TRY(Problem problem, find_problem(session.resources.problems(), project.config.problem_id));
  if (problem.digest != project.config.problem_digest || project.problem_changed)
    graded.notes.push_back("the pinned problem differs from the mentor's; the mentor's was used");
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(auto faults, verify_ledger(project.ledger(), project.sources()));
  for (const std::string& fault : faults) graded.notes.push_back("ledger: " + fault);

  JudgeRequest request;
  request.problem = &problem;
  request.backend = arguments.judge.backend;
  request.tier = arguments.judge.tier;
  request.budget_seconds = arguments.judge.budget_seconds;
  request.run_timeout_seconds = arguments.judge.timeout_seconds;
  request.hidden_cases = arguments.judge.hidden_cases;
  if (fs::is_regular_file(project.human_kernel(), code)) request.entries.push_back({"human", project.human_kernel()});
  if (auto attempt = latest_attempt(project, ledger)) request.entries.push_back({"llm", attempt->source});
  if (request.entries.empty()) return fail("neither human/kernel.cu nor a model attempt is there", root.string());
  CAPSTONE_TRY(auto measurements, judge(request, session.resources, [&](const std::string& text) {
                 session.terminal.progress(graded.name + ": " + text);
               }));
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    Measurement& m = measurements[i];
    CAPSTONE_TRY(std::string text, read_file(request.entries[i].source, 16u << 20));
    m.source_sha256 = sha256_hex(text);
    m.version = "handed in";
    compare_claim(ledger, m, graded);
    (m.contestant == "human" ? graded.human : graded.llm) = m;
  }

  std::string worklog_text;
  if (auto text = read_file(project.worklog())) worklog_text = *text;
  ScoreSheet sheet = score(rubric, project, ledger, parse_worklog(worklog_text));
  graded.total = sheet.suggested;
  for (const CriterionScore& criterion : sheet.criteria) graded.suggested.emplace_back(criterion.criterion->id, criterion.suggested);
  ReportInput input;
  input.project = &project;
  input.ledger = &ledger;
  input.resources = &session.resources;
  input.generated = utc_now();
  CAPSTONE_TRY(auto files, render_score_sheet(input, sheet, Audience::kMentor));
  ReportFiles written;
  written.files = std::move(files);
  Json result{{"schema_version", 1}, {"name", graded.name}, {"problem", graded.problem}, {"judged", Json(measurements)},
              {"suggested", sheet.suggested}, {"rubric", sheet.rubric_digest}, {"notes", graded.notes}, {"time", utc_now()}};
  written.files.push_back({"result.json", result.dump(2) + "\n"});
  CAPSTONE_CHECK(write_report(written, out / graded.name));
  graded.state = "graded";
  return graded;
}

std::string csv_of(const std::vector<Graded>& cohort, const Rubric& rubric) {
  std::string text = "name,people,problem,state,human_gate_one,human_gate_two,human_speedup,llm_gate_one,llm_gate_two,llm_speedup";
  for (const Criterion& criterion : rubric.criteria) text += ",suggested_" + criterion.id;
  text += ",suggested_total,notes\r\n";
  for (const Graded& g : cohort) {
    std::vector<std::string> cells{g.name, g.people, g.problem, g.state};
    for (const auto* m : {&g.human, &g.llm}) {
      cells.push_back(*m ? std::string(label_of((*m)->gate_one)) : "");
      cells.push_back(*m ? std::string(label_of((*m)->gate_two)) : "");
      bool judged = *m && (*m)->gate_two != GateTwo::kNotJudged && (*m)->measured && (*m)->measured->speedup;
      cells.push_back(judged ? fmt::format("{:.4f}", (*m)->measured->speedup->point) : "");
    }
    for (const Criterion& criterion : rubric.criteria) {
      auto mark = std::find_if(g.suggested.begin(), g.suggested.end(), [&](const auto& s) { return s.first == criterion.id; });
      cells.push_back(mark == g.suggested.end() ? "" : fmt::format("{:g}", mark->second));
    }
    cells.push_back(g.state == "graded" ? fmt::format("{:g}", g.total) : "");
    cells.push_back(g.why.empty() ? join(g.notes, "; ") : g.why);
    for (std::size_t i = 0; i < cells.size(); ++i) text += (i ? "," : "") + csv_cell(to_utf8(cells[i]));
    text += "\r\n";
  }
  return text;
}

Result<ExitCode> grade(const Session& session, const GradeArguments& arguments) {
  fs::path folder = session.cwd / arguments.folder, out = session.cwd / arguments.out;
  std::error_code code;
  if (!fs::is_directory(folder, code)) return fail("no such folder", folder.string(), "name the folder that holds the submissions");
  // Other people's code: not where it could read this account's files.
  if (Sandbox sandbox = Sandbox::detect(session.resources); !sandbox.isolated() && !arguments.allow_unisolated)
    return fail("submissions would run without isolation (" + sandbox.description() + ")", {},
                "`capstone doctor` tells how to mend it; --allow-unisolated runs them all the same, with all that this account may do",
                ExitCode::kEnvironment);
  CAPSTONE_TRY(Rubric rubric, load_rubric(session.resources.share / "rubric" / "rubric.yaml"));
  std::vector<fs::path> submissions;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (entry.path().filename().string().starts_with(".") || fs::equivalent(entry.path(), out, code)) continue;
    if (entry.is_directory() || is_archive(entry.path())) submissions.push_back(entry.path());
  }
  std::sort(submissions.begin(), submissions.end());
  if (submissions.empty()) return fail("nothing to grade: no folders and no archives", folder.string(), "submissions are folders or .tar.gz files made by capstone submit");
  CAPSTONE_CHECK(make_folders(out));
  std::vector<Graded> cohort;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    session.terminal.say(fmt::format("[{}/{}] {}", i + 1, submissions.size(), submissions[i].filename().string()));
    auto graded = grade_one(session, submissions[i], out, arguments, rubric);
    if (interrupted()) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    if (!graded) {
      Graded failed;
      failed.name = plain_name(submissions[i]);
      failed.why = graded.error().what;
      session.terminal.say("  not graded: " + failed.why);
      graded = failed;
    }
    cohort.push_back(std::move(*graded));
    // After each one, whole or not at all: an interrupted night keeps what was done.
    CAPSTONE_CHECK(write_file_atomic(out / "grades.csv", csv_of(cohort, rubric)));
  }
  const Terminal& t = session.terminal;
  Table table({"submission", "state", "human", "model", "suggested"}, {false, false, false, false, true});
  int ungraded = 0;
  for (const Graded& g : cohort) {
    ungraded += g.state != "graded";
    auto cell = [](const std::optional<Measurement>& m) {
      if (!m) return std::string("-");
      return m->gate_two == GateTwo::kNotJudged ? std::string(label_of(m->gate_one)) : fmt::format("{}, {}", label_of(m->gate_one), label_of(m->gate_two));
    };
    table.row({g.name, g.state, cell(g.human), cell(g.llm), g.state == "graded" ? fmt::format("{:g}", g.total) : g.why});
  }
  t.out(table.text(t));
  t.out((out / "grades.csv").string());
  t.out("a suggestion is where to begin reading: the mentor's mark always wins");
  return ungraded ? ExitCode::kPartlyUngraded : ExitCode::kDone;
}

}  // namespace

void add_grade(CLI::App& app, Session& session, Action& action) {
  auto* command = app.add_subcommand("grade", "for mentors: judge every submission of a folder afresh");
  auto arguments = std::make_shared<GradeArguments>();
  command->add_option("folder", arguments->folder, "folders and archives made by `capstone submit`")->required();
  command->add_option("--out", arguments->out, "where score sheets and grades.csv go (default graded/)");
  command->add_flag("--allow-unisolated", arguments->allow_unisolated, "run submissions even where nothing keeps them from this account's files");
  add_judge_options(*command, arguments->judge);
  command->callback([&session, &action, arguments] { action = [&session, arguments] { return grade(session, *arguments); }; });
}

}  // namespace capstone::cli
