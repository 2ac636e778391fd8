#pragma once
// `measure --on`: a bundle judged where the GPU is, and its result brought home. What was begun there goes on when this side is killed or the
// line breaks; the same command again takes it up.
#include <filesystem>
#include <string>
#include <vector>

#include "cli/recording.h"
#include "cli/context.h"

namespace capstone::cli {

/// Where a bundle is judged.
struct Destination {
  enum class Kind { kSsh, kSlurm } kind = Kind::kSsh;
  std::string place;      ///< ssh's host ("lab", "ada@lab", "ssh://ada@lab:2222"), or Slurm's partition; empty: Slurm's default one
  std::string program;    ///< ssh: capstone over there, a name on its PATH or a path; "~/" is the home over there
  std::string gres;       ///< Slurm: what the job needs ("gpu:1"); empty: nothing
};

/// "ssh:HOST", "ssh://USER@HOST:PORT", "slurm" or "slurm:PARTITION". @error anything else.
Result<Destination> parse_destination(const std::string& text);

/// One bundle to be judged elsewhere.
struct RemoteTask {
  std::string id;                        ///< of bundle, options and destination: the same task has the same
  std::filesystem::path folder;          ///< its own, in the project; holds `bundle`
  std::vector<std::string> options;      ///< of the judge, as words of a command line
};

/// Versions that are being judged elsewhere have their names already: adds them to the view, for next_version().
void add_pending_versions(const Project& project, LedgerView& ledger);
/// Gives every candidate that has none its version's name, and writes the names into `file`: a task's versions.json, which add_pending_versions() reads.
/// @param ledger  with pending versions
Result<void> name_versions(const std::filesystem::path& file, const LedgerView& ledger, std::vector<CandidateVersion>& candidates);

/// Waits until the bundle is judged. @return the result: a ledger's bytes
/// @error not reachable; no capstone there; what the other side said; the result did not arrive whole; interrupted.
Result<std::string> judge_by_ssh(const Context& context, const Destination& destination, const RemoteTask& task);
Result<std::string> judge_by_slurm(const Context& context, const Destination& destination, const RemoteTask& task);

/// The result is safe at home: nothing of it is needed over there any more.
void forget_over_ssh(const Context& context, const Destination& destination, const RemoteTask& task);

/// The last "error: …" that a capstone wrote, with its lines; else the last line that it wrote.
std::string last_words(std::string_view err);

}  // namespace capstone::cli
