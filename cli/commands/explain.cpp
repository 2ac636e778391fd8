#include "harness/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/recording.h"
#include "cli/rungs.h"
#include "cli/session.h"
#include "cli/sizes.h"
#include "cli/show_explanation.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "templates/explanation_page.h"

namespace capstone::cli {
namespace {

struct ExplainArguments {
  std::string what = "human", problem, size, device, html;
};

/// What is explained, and where its record goes.
struct Subject {
  Problem problem;
  fs::path source;
  std::string contestant;             ///< empty: a file that no ledger keeps
  std::optional<Project> project;
};

Result<Subject> contestant_of(const Session& session, const std::string& contestant) {
  CAPSTONE_TRY(Project project, project_here(session));
  CAPSTONE_CHECK(require_pinned_problem(project));
  fs::path source = project.human_kernel();
  if (contestant == "llm") {
    CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
    auto attempt = latest_attempt(project, ledger);
    if (!attempt)
      return fail("there is no model attempt with code yet", (project.root / "llm").string(),
                  "capstone llm prompt, give the prompt to a model, then: capstone llm add REPLY --model NAME");
    source = attempt->source;
  }
  return Subject{project.problem, source, contestant, project};
}

Result<Problem> problem_for(const Session& session, const std::string& named) {
  if (!named.empty()) return find_problem(session.resources.problems(), named);
  auto project = project_here(session);
  if (!project) return fail("which problem does this kernel solve?", {}, "say --problem ID (see: capstone problems), or call it inside a project");
  return project->problem;
}

Result<Subject> subject_of(const Session& session, const ExplainArguments& arguments) {
  if (arguments.what == "human" || arguments.what == "llm") return contestant_of(session, arguments.what);
  CAPSTONE_TRY(Problem problem, problem_for(session, arguments.problem));
  std::error_code code;
  if (arguments.what.ends_with(".cu") && !fs::is_regular_file(session.cwd / arguments.what, code))
    return fail("no such source file", (session.cwd / arguments.what).string(), "human, llm, a .cu file, or a reference kernel by number or name");
  CAPSTONE_TRY(fs::path source, find_rung(session, problem.id, arguments.what, "capstone explain {0} --problem {1}"));
  return Subject{std::move(problem), std::move(source), {}, std::nullopt};
}

// What the emulator's hooks can hold.
Result<Sizes> observable_sizes(const Problem& problem, const std::string& text) {
  CAPSTONE_TRY(Sizes sizes, parse_sizes(problem, problem.emulate, text));
  constexpr double kMostFlops = 2e9, kMostBytes = 1e8;   // about a minute; each byte has eight of shadow
  CAPSTONE_TRY(Cost cost, cost_at(problem, sizes));
  if (cost.flops > kMostFlops || cost.bytes > kMostBytes)
    return fail("too large to be observed on the CPU: " + to_string(sizes), problem.id, "counts per request do not depend on the size: take a smaller one");
  return sizes;
}

// The version under which this very source was measured.
std::string version_of(const LedgerView& ledger, const std::string& contestant, const std::string& digest) {
  for (const Measurement* m : ledger.versions(contestant))
    if (m->source_sha256 == digest) return m->version;
  return {};
}

Result<void> record(const Session& session, const Subject& subject, Explanation& e) {
  CAPSTONE_TRY(FileLock lock, lock_project(*subject.project));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(subject.project->ledger()));
  CAPSTONE_TRY(std::string text, read_file(subject.source, 16u << 20));
  if (sha256_hex(text) != e.source_sha256)
    return fail("the source changed while it was being explained; nothing was recorded", subject.source.string(), "run the command again", ExitCode::kUsage);
  CAPSTONE_CHECK(keep_source(subject.project->sources(), text));
  e.version = version_of(ledger, e.contestant, e.source_sha256);
  CAPSTONE_TRY(std::string machine, chain_id(session));
  CAPSTONE_CHECK(append_record(subject.project->ledger(), "explanation", Json(e), machine));
  return {};
}

Result<ExitCode> run(const Session& session, const ExplainArguments& arguments) {
  CAPSTONE_TRY(Subject subject, subject_of(session, arguments));
  ExplainRequest request{&subject.problem, subject.source, {}, {}};
  CAPSTONE_TRY(request.sizes, observable_sizes(subject.problem, arguments.size));
  if (!arguments.device.empty()) {
    CAPSTONE_TRY(request.device, find_device_like(arguments.device));
  }
  CAPSTONE_TRY(std::string digest, sha256_file(subject.source));
  CAPSTONE_TRY(Explanation e, explain(request, session.resources, [&](const std::string& text) { session.terminal.progress(text); }));
  session.terminal.end_progress();
  e.contestant = subject.contestant;
  e.source_sha256 = digest;
  std::error_code code;
  e.source = subject.project ? fs::relative(subject.source, subject.project->root, code).string() : subject.source.filename().string();
  if (subject.project) CAPSTONE_CHECK(record(session, subject, e));
  if (!arguments.html.empty()) {
    CAPSTONE_TRY(std::string page, explanation_page(e, subject.source, session.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(session.cwd / arguments.html, page));
  }
  session.terminal.out(session.json ? Json(e).dump(2) : explanation_text(e, session.terminal));
  if (!session.json && !arguments.html.empty()) session.terminal.out("heat-map: " + (session.cwd / arguments.html).string());
  return ExitCode::kDone;
}

}  // namespace

void add_explain(CLI::App& app, Session& session, Action& action) {
  auto* command = app.add_subcommand("explain", "what each line of a kernel costs, counted on the CPU: sectors, bank conflicts, lanes, FLOPs; judges nothing");
  auto arguments = std::make_shared<ExplainArguments>();
  command->add_option("what", arguments->what, "human (default), llm, a .cu file, or a reference kernel by number or name");
  command->add_option("--problem", arguments->problem, "the problem that the file solves (default: the project's)");
  command->add_option("--size", arguments->size, "rows=64,cols=512 (default: the problem's emulate size)");
  command->add_option("--on", arguments->device, "a GPU, for a modelled lower bound on time: h100, a100, 4090 …");
  command->add_option("--html", arguments->html, "write the whole source as a heat-map into FILE");
  add_format(*command, session);
  command->callback([&session, &action, arguments] { action = [&session, arguments] { return run(session, *arguments); }; });
}

}  // namespace capstone::cli
