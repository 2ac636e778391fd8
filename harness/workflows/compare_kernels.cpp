#include "harness/workflows/compare_kernels.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/course/similarity.h"
#include "harness/project/stub.h"

namespace capstone::workflows {
namespace {

constexpr std::size_t kMaxKernel = 16u << 20;  // [B]

// Comments become spaces, which keeps lines and columns. (The fingerprints know the comments of C++ only.)
std::string without_python_comments(std::string text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n')
      quote = 0;
    else if (quote)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '#')
      while (i < text.size() && text[i] != '\n') text[i++] = ' ';
  }
  return text;
}

std::optional<NamedSource> source_of(const std::string& name, const std::string& group,
                                     const fs::path& file) {
  auto text = read_file(file, kMaxKernel);
  if (!text) return std::nullopt;
  NamedSource source{name, group, std::move(*text), {}};
  source.prints =
      fingerprints(file.extension() == ".py" ? without_python_comments(source.text) : source.text);
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

// What every student was given: the problem's files, the declaration of launch() and the stub. A problem that
// is not in the catalogue (KernelBench) is taken from the project, unless its pinned copy was changed.
void add_scaffold(const Workspace& workspace, const std::string& id, const fs::path& root,
                  std::set<std::uint64_t>& common) {
  const auto project = open_project(root);
  const bool pinned = project && !project->problem_changed;
  const auto course = find_problem(workspace.resources.problems(), id);
  if (!pinned && !course) return;
  const Problem& problem = pinned ? project->problem : *course;
  for (const char* ending : {".cu", ".h", ".cpp", ".py"})
    for (const fs::path& file : files_below(problem.folder, ending))
      if (auto source = source_of({}, {}, file)) add_prints(source->prints, common);
  add_prints(fingerprints(launch_header(problem)), common);
  add_prints(fingerprints(stub_kernel(problem)), common);
}

// Public code that a kernel of this problem may have been copied from.
std::vector<NamedSource> public_sources(const Workspace& workspace, const std::string& problem) {
  std::vector<NamedSource> sources;
  std::error_code code;
  for (const auto& part : fs::directory_iterator(workspace.resources.reference_kernels(), code))
    for (const fs::path& rung : files_below(part.path() / problem, ".cu"))
      if (auto source = source_of(
              "the rung " + rung.lexically_relative(workspace.resources.reference_kernels()).string(),
              problem, rung))
        sources.push_back(std::move(*source));
  for (const auto& example : fs::directory_iterator(workspace.resources.share / "examples", code)) {
    auto config = read_config(example.path() / "capstone.yaml");
    if (!config || config->problem_id != problem) continue;
    for (const fs::path& file : files_below(example.path(), ".cu"))
      if (const fs::path part = *file.lexically_relative(example.path()).begin();
          part == "human" || part == "llm")
        if (auto source = source_of(
                "the example " + file.lexically_relative(workspace.resources.share / "examples").string(),
                problem, file))
          sources.push_back(std::move(*source));
  }
  return sources;
}

Json fragments_json(const Likeness& likeness) {
  Json all = Json::array();
  for (const Fragment& f : likeness.fragments)
    all.push_back({{"first", {f.first_from, f.first_to}}, {"second", {f.second_from, f.second_to}}});
  return all;
}

// A share of code that the ledger records is no finding: the project says that it started from this rung.
struct NamedOrigin {
  std::string name;
  bool recorded_start;
};
NamedOrigin origin_name(const NamedSource& origin, const Result<ProjectConfig>& config) {
  const bool recorded =
      config && !config->started_from.empty() && origin.name == "the rung " + config->started_from;
  return {origin.name + (recorded ? " (the recorded start)" : ""), recorded};
}

// The comparison of one cohort, submission by submission.
class Comparison {
 public:
  Comparison(const Workspace& workspace, const OpenCohort& cohort, double least)
      : workspace_(workspace), cohort_(cohort), least_(least) {}

  void add(const std::string& submission, const std::string& problem) {
    const fs::path project = cohort_.project_of(submission);
    // kernel.py wins over kernel.cu, as it does for the judge.
    auto kernel =
        project.empty() ? std::nullopt : source_of(submission, problem, project / "human" / "kernel.py");
    if (!kernel && !project.empty()) kernel = source_of(submission, problem, project / "human" / "kernel.cu");
    if (!kernel) return;
    add_scaffold(workspace_, problem, project, common_);
    const auto config = read_config(project / "capstone.yaml");
    for (const NamedSource& origin : origins_of(project, problem)) {
      Likeness like = compare_sources(kernel->prints, origin.prints, common_);
      if (like.of_first * 100 < least_) continue;
      const NamedOrigin named = origin_name(origin, config);
      json_["origins"].push_back({{"submission", submission},
                                  {"origin", named.name},
                                  {"share", like.of_first},
                                  {"recorded_start", named.recorded_start},
                                  {"fragments", fragments_json(like)}});
      report_.origins.push_back({submission, named.name, kernel->text, origin.text, std::move(like)});
    }
    kernels_.push_back(std::move(*kernel));
  }

  Result<KernelComparison> finish() {
    for (SourcePair& pair : alike(kernels_, common_, least_ / 100)) {
      const NamedSource &a = kernels_[pair.first], &b = kernels_[pair.second];
      json_["pairs"].push_back({{"first", a.name},
                                {"second", b.name},
                                {"share", pair.likeness.share},
                                {"fragments", fragments_json(pair.likeness)}});
      report_.pairs.push_back({a.name, b.name, a.text, b.text, std::move(pair.likeness)});
    }
    std::stable_sort(report_.origins.begin(), report_.origins.end(),
                     [](const auto& a, const auto& b) { return a.likeness.of_first > b.likeness.of_first; });
    const std::string text = json_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    CAPSTONE_CHECK(write_file_atomic(cohort_.folder / "similarity.json", text));
    CAPSTONE_TRY(std::string page, similarity_page(report_, workspace_.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(cohort_.folder / "similarity.html", page));
    return KernelComparison{kernels_.size(), std::move(report_), cohort_.folder / "similarity.html"};
  }

 private:
  std::vector<NamedSource> origins_of(const fs::path& project, const std::string& problem) {
    if (!public_.contains(problem)) public_[problem] = public_sources(workspace_, problem);
    std::vector<NamedSource> origins = public_[problem];
    for (const char* ending : {".cu", ".py"})
      for (const fs::path& reply : files_below(project / "llm", ending)) {
        const std::string name = "their own model's " + reply.lexically_relative(project).string();
        if (auto source = source_of(name, problem, reply)) origins.push_back(std::move(*source));
      }
    return origins;
  }

  const Workspace& workspace_;
  const OpenCohort& cohort_;
  const double least_;
  std::vector<NamedSource> kernels_;
  std::set<std::uint64_t> common_;
  std::map<std::string, std::vector<NamedSource>> public_;  ///< by problem
  SimilarityReport report_;
  Json json_{{"schema_version", 1}, {"pairs", Json::array()}, {"origins", Json::array()}};
};

}  // namespace

Result<KernelComparison> compare_kernels(const Workspace& workspace, OpenCohort& cohort, double least) {
  CAPSTONE_TRY(auto rows, cohort.book.rows(cohort.rubric));
  std::map<std::string, std::string> problems;  // by submission
  for (const GradebookRow& row : rows) problems[row.submission] = row.problem;
  Comparison comparison(workspace, cohort, least);
  for (const auto& [submission, problem] : problems) comparison.add(submission, problem);
  return comparison.finish();
}

}  // namespace capstone::workflows
