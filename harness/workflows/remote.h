#pragma once
// Judging a bundle on another machine, over ssh or through Slurm, and bringing its result home. The work
// there continues when this side is killed or loses its connection; the same command resumes it.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// Where a bundle is judged.
struct Destination {
  enum class Kind { kSsh, kSlurm } kind = Kind::kSsh;
  std::string place;  ///< ssh: the host ("lab", "ada@lab", "ssh://ada@lab:2222"). Slurm: the partition;
                      ///< empty: the default
  /// Ssh: capstone on the remote machine, a name on PATH or a path; "~/" is the remote home
  std::string program;
  std::string gres;  ///< Slurm: what the job needs ("gpu:1"); empty: nothing
};

/// "ssh:HOST", "ssh://USER@HOST:PORT", "slurm" or "slurm:PARTITION". @error anything else.
Result<Destination> parse_destination(const std::string& text);

/// One bundle to be judged elsewhere.
struct RemoteTask {
  std::string id;                    ///< of bundle, options and destination: equal tasks have equal ids
  std::filesystem::path folder;      ///< of this task, in the project; holds `bundle`
  std::vector<std::string> options;  ///< of the judge, as words of a command line
};

/// Waits until the bundle is judged. @return the result: the bytes of a ledger
/// @error not reachable; no capstone there; the remote error message; the result is incomplete; interrupted.
Result<std::string> judge_by_ssh(const Workspace& workspace, const Destination& destination,
                                 const RemoteTask& task, const ProgressSink& progress);
Result<std::string> judge_by_slurm(const Workspace& workspace, const Destination& destination,
                                   const RemoteTask& task, const ProgressSink& progress);

/// Removes the task's folder from the remote machine, once its result is safe here.
void forget_over_ssh(const Workspace& workspace, const Destination& destination, const RemoteTask& task,
                     const ProgressSink& progress);

/// The script that judge_by_ssh() sends to a POSIX shell on the remote machine.
std::string remote_script(const Destination& destination, const RemoteTask& task, const std::string& bundle);
/// The result in what the script printed: its bytes, verified against their SHA-256.
/// @error there is none; it is incomplete.
Result<std::string> result_in(const std::string& out, const std::string& host);

/// The last "error: …" that a capstone process wrote, with its lines; else the last line that it wrote.
std::string last_words(std::string_view err);

}  // namespace capstone::workflows
