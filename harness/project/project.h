#pragma once
// A student's project on disk.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/model/problem.h"
#include "harness/model/record.h"

namespace capstone {

struct Person {
  std::string name, id, email;
};

/// The content of capstone.yaml.
struct ProjectConfig {
  std::vector<Person> members;  ///< one for a single author
  std::string problem_id, problem_digest;
  std::string started_from;  ///< the rung human/kernel.cu was copied from; empty: the stub
  std::string created;       ///< UTC
};

/// A project folder. Layout: capstone.yaml, problem/, human/kernel.cu,
/// llm/attempt-N/{prompt.md,reply.md,kernel.cu}, together/kernel.cu (once it was begun), worklog.md, report/,
/// .capstone/{ledger.jsonl,sources/}.
struct Project {
  std::filesystem::path root;
  ProjectConfig config;
  Problem problem;               ///< the pinned copy under problem/
  bool problem_changed = false;  ///< the pinned copy differs from what `init` wrote; see
                                 ///< require_pinned_problem()

  /// human/kernel.py if it exists, else human/kernel.cu.
  std::filesystem::path human_kernel() const;
  /// together/kernel.py if it exists, else together/kernel.cu; neither need exist.
  std::filesystem::path together_kernel() const;
  std::filesystem::path worklog() const { return root / "worklog.md"; }
  std::filesystem::path ledger() const { return root / ".capstone" / "ledger.jsonl"; }
  std::filesystem::path sources() const { return root / ".capstone" / "sources"; }
  std::filesystem::path attempt(int n) const { return root / "llm" / ("attempt-" + std::to_string(n)); }
  /// The code of an attempt, kernel.cu or kernel.py; missing if the reply had no code.
  std::filesystem::path attempt_kernel(int n) const;
};

/// Searches `start` and its parents for a project. A changed copy of the problem is flagged, not refused: the
/// records stay readable. @error names every path that was tried.
Result<Project> open_project(const std::filesystem::path& start);

/// Every command that builds or judges calls this first.
/// @error problem/ differs from the digest in capstone.yaml; the hint says how to restore it.
Result<void> require_pinned_problem(const Project& project);

/// Reads capstone.yaml strictly. @error file:line:column, with the most similar key if one is unknown.
Result<ProjectConfig> read_config(const std::filesystem::path& file);

/// The text of capstone.yaml; read_config() returns the same values.
std::string config_text(const ProjectConfig& config);

}  // namespace capstone
