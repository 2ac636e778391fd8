#pragma once
// Judging with a record: what `measure`, `llm add` and `grade` share.
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/judge/judge.h"
#include "harness/project/ledger/ledger.h"

namespace capstone::cli {

void add_judge_options(CLI::App& command, JudgeOptions& options);
/// A request without entries.
JudgeRequest request_of(const Problem& problem, const JudgeOptions& options);

/// One candidate with what the student said about this version.
struct CandidateVersion {
  std::string name;                  ///< "human" or "llm"
  std::filesystem::path source;
  std::string reason;
  std::optional<double> expected_speedup;
  std::string version;                ///< empty: derived from the ledger
};

/// The newest attempt of the model that has code.
std::optional<CandidateVersion> latest_attempt(const Project& project, const LedgerView& ledger);

/// Snapshots the sources, judges, and appends one record a candidate. Returns what was recorded.
/// @param labels  of every record, before its own
Result<std::vector<Measurement>> judge_and_record(const Project& project, std::vector<CandidateVersion> candidates,
                                                  const JudgeOptions& options, const Context& context,
                                                  const std::vector<std::string>& labels = {});

/// Only one command at a time works in a project.
Result<FileLock> lock_project(const Project& project);

/// This machine's chain id.
Result<std::string> chain_id(const Context& context);

}  // namespace capstone::cli
