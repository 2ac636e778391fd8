#include <fmt/format.h>

#include <algorithm>

#include "cli/gradebook_tasks.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/similarity.h"
#include "harness/project/stub.h"
#include "templates/similarity_page.h"

namespace capstone::cli {
namespace {

constexpr std::size_t kMaxSource = 16u << 20;   // [B]

// Comments become spaces, so that lines and columns stay; the fingerprints know C++'s alone. A # within a string stays.
std::string without_python_comments(std::string text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') quote = 0;
    else if (quote) quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'') quote = c;
    else if (c == '#')
      while (i < text.size() && text[i] != '\n') text[i++] = ' ';
  }
  return text;
}

std::optional<NamedSource> source_of(const std::string& name, const std::string& group, const fs::path& file) {
  auto text = read_file(file, kMaxSource);
  if (!text) return std::nullopt;
  NamedSource source{name, group, std::move(*text), {}};
  source.prints = fingerprints(file.extension() == ".py" ? without_python_comments(source.text) : source.text);
  return source;
}

std::vector<fs::path> files_below(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::recursive_directory_iterator walk(folder, code), end; !code && walk != end; walk.increment(code))
    if (walk->is_regular_file(code) && walk->path().extension() == ending) files.push_back(walk->path());
  std::sort(files.begin(), files.end());
  return files;
}

void add_prints(const Fingerprints& prints, std::set<std::uint64_t>& common) {
  for (const Fingerprint& f : prints) common.insert(f.hash);
}

// Everything of a problem that every student was given: its files, the declaration of launch() and the stub to begin with.
// A problem of a project's own (KernelBench) is nowhere else than in the project; a copy that was changed says nothing.
void add_scaffold(const Context& context, const std::string& id, const fs::path& root, std::set<std::uint64_t>& common) {
  const auto project = open_project(root);
  const bool pinned = project && !project->problem_changed;
  const auto course = find_problem(context.resources.problems(), id);
  if (!pinned && !course) return;
  const Problem& problem = pinned ? project->problem : *course;
  for (const char* ending : {".cu", ".h", ".cpp", ".py"})
    for (const fs::path& file : files_below(problem.folder, ending))
      if (auto source = source_of({}, {}, file)) add_prints(source->prints, common);
  add_prints(fingerprints(launch_header(problem)), common);
  add_prints(fingerprints(stub_kernel(problem)), common);
}

// What a kernel of this problem may have been copied from, apart from a classmate.
std::vector<NamedSource> public_sources(const Context& context, const std::string& problem) {
  std::vector<NamedSource> sources;
  std::error_code code;
  for (const auto& part : fs::directory_iterator(context.resources.reference_kernels(), code))
    for (const fs::path& rung : files_below(part.path() / problem, ".cu"))
      if (auto source = source_of("the rung " + rung.lexically_relative(context.resources.reference_kernels()).string(), problem, rung)) sources.push_back(std::move(*source));
  for (const auto& example : fs::directory_iterator(context.resources.share / "examples", code)) {
    auto config = read_config(example.path() / "capstone.yaml");
    if (!config || config->problem_id != problem) continue;
    for (const fs::path& file : files_below(example.path(), ".cu"))
      if (const fs::path part = *file.lexically_relative(example.path()).begin(); part == "human" || part == "llm")
        if (auto source = source_of("the example " + file.lexically_relative(context.resources.share / "examples").string(), problem, file)) sources.push_back(std::move(*source));
  }
  return sources;
}

Json fragments_json(const Likeness& likeness) {
  Json all = Json::array();
  for (const Fragment& f : likeness.fragments) all.push_back({{"first", {f.first_from, f.first_to}}, {"second", {f.second_from, f.second_to}}});
  return all;
}

}  // namespace

Result<ExitCode> compare_kernels(const Context& context, OpenCohort& cohort, double least) {
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  std::map<std::string, std::string> problems;   // submission → problem
  for (const GradebookRow& row : rows) problems[row.submission] = row.problem;
  std::vector<NamedSource> kernels;
  std::set<std::uint64_t> common;
  std::map<std::string, std::vector<NamedSource>> given;   // problem → public sources
  SimilarityReport report;
  Json json{{"schema_version", 1}, {"pairs", Json::array()}, {"origins", Json::array()}};
  for (const auto& [submission, problem] : problems) {
    const fs::path project = cohort.project_of(submission);
    // The Python file counts where there is one, as it does for the judge.
    auto kernel = project.empty() ? std::nullopt : source_of(submission, problem, project / "human" / "kernel.py");
    if (!kernel && !project.empty()) kernel = source_of(submission, problem, project / "human" / "kernel.cu");
    if (!kernel) continue;
    add_scaffold(context, problem, project, common);
    if (!given.contains(problem)) given[problem] = public_sources(context, problem);
    std::vector<NamedSource> origins = given[problem];
    for (const char* ending : {".cu", ".py"})
      for (const fs::path& reply : files_below(project / "llm", ending))
        if (auto source = source_of("their own model's " + reply.lexically_relative(project).string(), problem, reply)) origins.push_back(std::move(*source));
    auto config = read_config(project / "capstone.yaml");
    for (const NamedSource& origin : origins) {
      Likeness like = compare_sources(kernel->prints, origin.prints, common);
      if (like.of_first * 100 < least) continue;
      const bool recorded = config && !config->started_from.empty() && origin.name == "the rung " + config->started_from;
      const std::string name = origin.name + (recorded ? " (the recorded start)" : "");
      json["origins"].push_back({{"submission", submission}, {"origin", name}, {"share", like.of_first}, {"recorded_start", recorded}, {"fragments", fragments_json(like)}});
      report.origins.push_back({submission, name, kernel->text, origin.text, std::move(like)});
    }
    kernels.push_back(std::move(*kernel));
  }
  for (SourcePair& pair : alike(kernels, common, least / 100)) {
    const NamedSource &a = kernels[pair.first], &b = kernels[pair.second];
    json["pairs"].push_back({{"first", a.name}, {"second", b.name}, {"share", pair.likeness.share}, {"fragments", fragments_json(pair.likeness)}});
    report.pairs.push_back({a.name, b.name, a.text, b.text, std::move(pair.likeness)});
  }
  std::stable_sort(report.origins.begin(), report.origins.end(), [](const auto& a, const auto& b) { return a.likeness.of_first > b.likeness.of_first; });
  CAPSTONE_CHECK(write_file_atomic(cohort.folder / "similarity.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
  CAPSTONE_TRY(std::string page, similarity_page(report, context.resources.templates()));
  CAPSTONE_CHECK(write_file_atomic(cohort.folder / "similarity.html", page));
  const Terminal& t = context.terminal;
  Table table({"submission", "shares code with", "share"}, {false, false, true});
  for (const SimilarityFinding& f : report.pairs) table.row({f.first, f.second, fmt::format("{:.0f} %", 100 * f.likeness.share)});
  for (const SimilarityFinding& f : report.origins) table.row({f.first, to_utf8(f.second), fmt::format("{:.0f} %", 100 * f.likeness.of_first)});
  t.out(table.text(t));
  t.out(fmt::format("{} kernels compared; the aligned fragments: {}", kernels.size(), (cohort.folder / "similarity.html").string()));
  t.out("evidence for a person to look at, never a penalty");
  return ExitCode::kDone;
}

}  // namespace capstone::cli
