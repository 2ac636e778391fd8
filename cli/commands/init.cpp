#include <fmt/format.h>

#include <algorithm>

#include "cli/session.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/project/init.h"
#include "rubric/worklog.h"

namespace capstone::cli {
namespace {

constexpr const char* kDefaultProblem = "bias_gelu_layernorm";

struct InitArguments {
  std::string problem = kDefaultProblem, directory, rung;
  std::vector<std::string> members;
};

// "Ada Lovelace <ada@example.org> (id 1815)": e-mail and id may be missing.
Person parse_member(const std::string& text) {
  Person person;
  std::string rest = text;
  auto take = [&rest](char open, char close) {
    std::size_t a = rest.find(open), b = rest.find(close, a == std::string::npos ? 0 : a);
    if (a == std::string::npos || b == std::string::npos) return std::string();
    std::string inside(trim(rest.substr(a + 1, b - a - 1)));
    rest.erase(a, b - a + 1);
    return inside;
  };
  person.email = take('<', '>');
  person.id = take('(', ')');
  if (person.id.starts_with("id ")) person.id = person.id.substr(3);
  person.name = trim(rest);
  return person;
}

// Where else a rung of about that name is: "`02_online` is a rung of softmax".
std::optional<std::string> rung_elsewhere(const Session& session, const std::string& wanted) {
  std::error_code code;
  std::vector<std::string> names, owners;
  for (const auto& file : fs::recursive_directory_iterator(session.resources.reference_kernels(), code)) {
    if (file.path().extension() != ".cu") continue;
    const std::string stem = file.path().stem();
    for (const std::string& name : {stem, stem.substr(stem.find('_') + 1)}) {
      names.push_back(name);
      owners.push_back(file.path().parent_path().filename());
    }
  }
  auto meant = nearest(wanted, names);
  if (!meant) return std::nullopt;
  const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), *meant) - names.begin());
  return fmt::format("`{0}` is a rung of {1}: capstone init {1} --from {0}", *meant, owners[at]);
}

// A rung by path, by file name, or by its number.
Result<fs::path> find_rung(const Session& session, const std::string& problem, const std::string& wanted) {
  std::error_code code;
  fs::path as_path = session.cwd / wanted;
  if (wanted.ends_with(".cu") && fs::is_regular_file(as_path, code)) return as_path;
  std::vector<fs::path> rungs;
  for (const auto& folder : fs::directory_iterator(session.resources.reference_kernels(), code))
    for (const auto& file : fs::directory_iterator(folder.path() / problem, code))
      if (file.path().extension() == ".cu") rungs.push_back(file.path());
  std::sort(rungs.begin(), rungs.end(), [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
  std::vector<std::string> names;
  for (const fs::path& rung : rungs) {
    std::string stem = rung.stem(), number = stem.substr(0, stem.find('_'));
    std::string bare = stem.substr(std::min(stem.size(), number.size() + 1));
    if (wanted == stem || wanted == bare || wanted == number || "0" + wanted == number) return rung;
    names.push_back(stem);
    names.push_back(bare);
  }
  std::string hint = "rungs of this problem: ";
  for (const fs::path& rung : rungs) hint += rung.stem().string() + " ";
  if (auto meant = nearest(wanted, names)) hint = "did you mean `" + *meant + "`?  " + hint;
  else if (auto elsewhere = rung_elsewhere(session, wanted)) hint = *elsewhere + "; " + hint;
  return fail("no rung named " + wanted + " for " + problem, session.resources.reference_kernels().string(),
              rungs.empty() ? "this problem ships no reference kernels; give the path of a .cu file" : hint);
}

Result<ExitCode> init(const Session& session, const InitArguments& arguments) {
  CAPSTONE_TRY(Problem problem, find_problem(session.resources.problems(), arguments.problem));
  InitOptions options;
  options.problem = problem;
  options.directory = session.cwd / (arguments.directory.empty() ? problem.id : arguments.directory);
  for (const std::string& member : arguments.members) options.members.push_back(parse_member(member));
  if (!arguments.rung.empty()) {
    CAPSTONE_TRY(options.from_rung, find_rung(session, problem.id, arguments.rung));
  }
  options.worklog_text = worklog_scaffold(problem);
  options.state = session.state;
  CAPSTONE_TRY(InitReport report, init_project(options, session.resources));
  const Terminal& t = session.terminal;
  t.out(fmt::format("{} ({}, tier {}) in {}", t.paint(Tone::kBold, problem.title), problem.id, problem.tier, report.root.string()));
  std::size_t width = 0;
  for (const CreatedFile& file : report.files) width = std::max(width, file.path.size());
  for (const CreatedFile& file : report.files) t.out(fmt::format("  {:<{}}  {}", file.path, width, t.paint(Tone::kDim, file.purpose)));
  t.out();
  t.out(fmt::format("next: cd {} && capstone predict memory|compute|latency --because \"…\"",
                    fs::proximate(report.root, session.cwd).string()));
  return ExitCode::kDone;
}

}  // namespace

void add_init(CLI::App& app, Session& session, Action& action) {
  auto* command = app.add_subcommand("init", "make a project: capstone init PROBLEM DIR");
  auto arguments = std::make_shared<InitArguments>();
  command->add_option("problem", arguments->problem, fmt::format("problem id, or the folder of your own problem (default {})", kDefaultProblem));
  command->add_option("dir", arguments->directory, "where the project shall be (default: the problem's id)");
  command->add_option("--from", arguments->rung, "begin with a reference kernel (number, name or path) instead of the stub");
  command->add_option("--member", arguments->members, "an author, once each: \"Name <e-mail> (id)\"")->type_name("WHO");
  command->callback([&session, &action, arguments] { action = [&session, arguments] { return init(session, *arguments); }; });
}

}  // namespace capstone::cli
