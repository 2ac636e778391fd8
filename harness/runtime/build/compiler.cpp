#include "harness/runtime/build/compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"

namespace capstone {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 30;  // [B]
constexpr int kMaxTasks = 256;

// Compilers that are no part of the system bring their libraries along, in the folder above their bin/. One
// that holds the judge's cache is somebody's home; there it is the bin/ alone.
std::vector<fs::path> compiler_folders(const CompilerStep& step, const Resources& resources) {
  std::vector<fs::path> folders;
  std::vector<std::optional<fs::path>> programs{fs::path(step.argv.front()),
                                                find_program("g++", resources.path_variable),
                                                find_program("gcc", resources.path_variable)};
  for (const auto& program : programs) {
    std::error_code code;
    if (!program) continue;
    const fs::path bin = fs::canonical(*program, code).parent_path(), above = bin.parent_path();
    if (code || !above.has_relative_path() || above == "/usr") continue;
    const fs::path towards_cache = fs::weakly_canonical(resources.cache, code).lexically_relative(above);
    const bool holds_cache = !towards_cache.empty() && *towards_cache.begin() != "..";
    folders.push_back(holds_cache ? bin : above);
  }
  return folders;
}

// The line in which compiler, assembler or linker says that it could not write what it made; empty: none
// does. What a source says itself (#error, a failed assertion, a quoted line of it) is no such line.
std::string_view no_room_to_write(std::string_view messages) {
  for (std::size_t at = 0; at < messages.size();) {
    const std::size_t end = std::min(messages.find('\n', at), messages.size());
    const std::string_view line = messages.substr(at, end - at);
    at = end + 1;
    auto has = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
    if (!has("No space left on device") && !has("Disk quota exceeded")) continue;
    if (has("#error") || has("assert") || has(" | ") || has("#pragma")) continue;
    if (has("writ") || has("clos") || has("open") || has("final link") || has("temporary") ||
        has("outputting") || has("copy"))
      return trim(line);
  }
  return {};
}

}  // namespace

Result<ProcessResult> run_compiler(const CompilerStep& step, const Sandbox* sandbox,
                                   const Resources& resources) {
  ProcessSpec spec;
  spec.argv = step.argv;
  spec.cwd = step.cwd;
  spec.env = {{"PATH", resources.path_variable}, {"LC_ALL", "C"}, {"TMPDIR", step.work.string()}};
  spec.timeout = step.timeout;
  spec.max_memory = step.max_memory;
  spec.max_tasks = kMaxTasks;
  spec.max_file = kMaxFile;
  spec.yields = step.yields;
  if (sandbox) {
    // What ccache keeps is shared with everything else that the user builds.
    spec.env.emplace_back("CCACHE_DISABLE", "1");
    Access access{step.read, {step.work}, false};
    auto own = compiler_folders(step, resources);
    access.read.insert(access.read.end(), own.begin(), own.end());
    spec = sandbox->confine(std::move(spec), access);
  }
  CAPSTONE_TRY(ProcessResult result, run_process(spec));
  if (result.end == ProcessResult::End::kInterrupted)
    return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  // The sandbox's own process hands a signal on as a shell does.
  if (result.end == ProcessResult::End::kExited && result.status > 128 && result.status < 128 + 32) {
    result.end = ProcessResult::End::kSignalled;
    result.status -= 128;
  }
  // A full disk is not a mistake in the source: it must not lead to a verdict.
  if (!result.ok())
    for (const std::string* said : {&result.err, &result.out})
      if (const std::string_view why = no_room_to_write(*said); !why.empty())
        return fail(
            "the compiler could not write what it made: " + std::string(why.substr(0, 300)),
            step.work.string(),
            "make room there, or set CAPSTONE_CACHE to a folder on another disk; then run the command again",
            ExitCode::kEnvironment);
  return result;
}

std::string explain_end(const ProcessResult& result, const CompilerStep& step) {
  using End = ProcessResult::End;
  switch (result.end) {
    case End::kTimedOut:
      return fmt::format("the compiler did not finish in {} s", step.timeout.count());
    case End::kTooMuchMemory:
      return fmt::format("the compiler needed more than {} of memory", format_bytes(double(step.max_memory)));
    case End::kTooManyTasks:
      return fmt::format("the compiler started more than {} processes and threads", kMaxTasks);
    case End::kTooMuchOutput:
      return "the compiler wrote more than 8 MiB of messages";
    case End::kInterrupted:
      return "interrupted";
    case End::kSignalled:
      return fmt::format("the compiler died of signal {}", result.status);
    case End::kExited:
      break;
  }
  return fmt::format("the compiler failed with status {}", result.status);
}

bool is_own_file(const fs::path& path) {
  std::error_code code;
  return fs::symlink_status(path, code).type() == fs::file_type::regular;
}

}  // namespace capstone
