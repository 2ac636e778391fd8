#include "harness/workflows/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/files.h"
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

}  // namespace

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

namespace {
// The fingerprints of what every project of this problem begins with.
std::set<std::uint64_t> given_to_all(const Project& project) {
  std::set<std::uint64_t> common;
  for (const std::string& given : {launch_header(project.problem), stub_kernel(project.problem)})
    for (const Fingerprint& f : fingerprints(given)) common.insert(f.hash);
  return common;
}
}  // namespace

std::string label_of_model(const Project& project) {
  constexpr double kNearly = 0.9;
  constexpr std::size_t kFew = 30;  // fingerprints: two plain kernels of this size may be equal by themselves
  const auto human = source_of({}, {}, project.human_kernel());
  if (!human) return {};
  std::set<std::uint64_t> common = given_to_all(project), own;
  for (const Fingerprint& f : human->prints)
    if (!common.contains(f.hash)) own.insert(f.hash);
  std::string nearest;
  double share = 0;
  for (const char* ending : {".cu", ".py"})
    for (const fs::path& file : files_below(project.root / "llm", ending)) {
      const auto attempt = source_of({}, {}, file);
      if (!attempt) continue;
      const bool same = trim(attempt->text) == trim(human->text);
      const double part = same ? 1
                          : own.size() < kFew
                              ? 0
                              : compare_sources(human->prints, attempt->prints, common).of_first;
      if (part < kNearly || part <= share) continue;
      nearest = file.lexically_relative(project.root).string();
      share = part;
    }
  if (nearest.empty()) return {};
  return fmt::format("{:.0f} % of the human kernel is what the project's own model wrote in {}", share * 100,
                     nearest);
}

std::string label_of_origin(const Workspace& workspace, const Project& project, const fs::path& kernel) {
  constexpr double kNearly = 0.9;
  const auto source = source_of({}, {}, kernel);
  if (!source || source->prints.empty()) return {};
  const std::set<std::uint64_t> common = given_to_all(project);
  std::vector<NamedSource> origins;
  if (auto baseline = source_of("problem/baseline.cu", {}, project.root / "problem" / "baseline.cu"))
    origins.push_back(std::move(*baseline));
  for (NamedSource& each : public_sources(workspace, project.problem.id)) origins.push_back(std::move(each));
  const std::string start = "the rung " + project.config.started_from;
  const NamedSource* nearest = nullptr;
  double share = 0;
  for (const NamedSource& each : origins) {
    const double part = compare_sources(source->prints, each.prints, common).of_first;
    if (part < kNearly || part < share || (part == share && each.name != start)) continue;
    nearest = &each;
    share = part;
  }
  if (!nearest) return {};
  return fmt::format("similar: {:.0f} % of this kernel is in {}{}", share * 100, nearest->name,
                     nearest->name == start ? ", where the project started" : "");
}

}  // namespace capstone::workflows
