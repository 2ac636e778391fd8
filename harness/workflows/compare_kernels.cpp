#include "harness/workflows/compare_kernels.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/project/stub.h"
#include "harness/workflows/origin.h"
#include "rubric/worklog.h"

namespace capstone::workflows {
namespace {

constexpr std::size_t kMostProse = 4u << 20;  // [B]

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
    if (!project.empty()) add_prose(submission, problem, project);
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
    for (SourcePair& pair : alike(worklogs_, given_prose_, least_ / 100)) {
      const NamedSource &a = worklogs_[pair.first], &b = worklogs_[pair.second];
      json_["prose"].push_back({{"first", a.name},
                                {"second", b.name},
                                {"share", pair.likeness.share},
                                {"fragments", fragments_json(pair.likeness)}});
      report_.prose.push_back({a.name, b.name, a.text, b.text, std::move(pair.likeness)});
    }
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
  // Worklogs of all problems are compared with each other; what `init` writes is common to all.
  void add_prose(const std::string& submission, const std::string& problem, const fs::path& project) {
    auto text = read_file(project / "worklog.md", kMostProse);
    if (!text) return;
    if (const auto course = find_problem(workspace_.resources.problems(), problem))
      add_prints(prose_fingerprints(worklog_scaffold(*course)), given_prose_);
    Fingerprints prints = prose_fingerprints(*text);
    worklogs_.push_back({submission, {}, std::move(*text), std::move(prints)});
  }

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
  std::vector<NamedSource> kernels_, worklogs_;
  std::set<std::uint64_t> common_, given_prose_;
  std::map<std::string, std::vector<NamedSource>> public_;  ///< by problem
  SimilarityReport report_;
  Json json_{
      {"schema_version", 1}, {"pairs", Json::array()}, {"origins", Json::array()}, {"prose", Json::array()}};
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
