#pragma once
// Running a compiler, on our own source or on somebody else's.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/base/subprocess.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {

/// One step of a build: what runs, and all that it may touch.
struct CompilerStep {
  std::vector<std::string> argv;
  std::filesystem::path cwd;
  std::filesystem::path work;  ///< the only folder it may write to; temporary files go there, too
  std::vector<std::filesystem::path> read;  ///< besides the system and the compiler's own folders
  std::chrono::seconds timeout{120};
  std::size_t max_memory = std::size_t{3} << 30;  ///< [B]
  bool yields = false;                            ///< at a lower priority
};

/// Runs the step. With a sandbox (the source is not ours) it sees nothing else, has no network and a fixed
/// environment; a compiler cache is never used. Without one it runs like any program of the user's.
/// @error the compiler cannot be started; interrupted; it said that the disk was full or a quota used up
/// (exit code kEnvironment).
Result<ProcessResult> run_compiler(const CompilerStep& step, const Sandbox* sandbox,
                                   const Resources& resources);

/// Why a step that was not ok ended: the limit by its name, the signal or the exit code.
std::string explain_end(const ProcessResult& result, const CompilerStep& step);

/// A file that a build has made and that may be used: no link, which a hostile build could have put there
/// instead.
bool is_own_file(const std::filesystem::path& path);

}  // namespace capstone
