#include "harness/course/repositories.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr std::chrono::minutes kPatience{2};
constexpr std::size_t kLargestFile = std::size_t{1} << 30;  // [B] of a pack or of the archive

// Whether git may be given the address. What begins with "-" would be an option, and "ext::" runs a command.
Result<void> expect_address(const std::string& repository) {
  const bool odd = repository.empty() || repository.front() == '-' ||
                   repository.find("::") != std::string::npos ||
                   std::any_of(repository.begin(), repository.end(),
                               [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!odd) return {};
  return fail("not an address of a repository", to_utf8(repository.substr(0, 200)),
              "write a path, file://…, ssh://…, https://… or user@host:path");
}

bool is_path(const std::string& repository) {
  if (repository.find("://") != std::string::npos) return false;
  const std::size_t colon = repository.find(':');
  return colon == std::string::npos || repository.find('/') < colon;  // "user@host:path" is none
}

// Settings that no repository can change: no hooks, no helpers, no other protocols, no submodules.
std::vector<std::string> git(std::vector<std::string> words) {
  std::vector<std::string> all{"git"};
  for (const char* setting :
       {"core.hooksPath=/dev/null", "core.fsmonitor=false", "safe.directory=*", "protocol.allow=never",
        "protocol.file.allow=always", "protocol.ssh.allow=always", "protocol.https.allow=always",
        "submodule.recurse=false", "fetch.recurseSubmodules=false", "gc.auto=0", "tar.umask=0022"})
    all.insert(all.end(), {"-c", setting});
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Result<std::string> run_git(std::vector<std::string> words, const std::string& path_variable,
                            const std::string& repository) {
  if (!find_program("git", path_variable))
    return fail("git is missing", {}, "apt-get install git", ExitCode::kEnvironment);
  ProcessSpec spec;
  spec.argv = git(std::move(words));
  spec.env = {{"GIT_TERMINAL_PROMPT", "0"},
              {"GIT_CONFIG_NOSYSTEM", "1"},
              {"GIT_CONFIG_GLOBAL", "/dev/null"},
              {"GIT_ASKPASS", "true"},
              {"GIT_SSH_COMMAND", "ssh -oBatchMode=yes"},
              {"GIT_LFS_SKIP_SMUDGE", "1"},
              {"GIT_NO_REPLACE_OBJECTS", "1"},
              {"LC_ALL", "C"}};
  spec.timeout = kPatience;
  spec.max_file = kLargestFile;
  CAPSTONE_TRY(const ProcessResult run, run_process(spec));
  if (run.end == ProcessResult::End::kInterrupted) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  if (run.end == ProcessResult::End::kTimedOut)
    return fail("git took more than two minutes", repository, "is the repository very large?");
  if (run.ok()) return std::string(trim(run.out));
  const std::string said(trim(to_utf8(run.err)));
  return fail("git failed: " + said.substr(said.rfind('\n') == std::string::npos ? 0 : said.rfind('\n') + 1),
              repository, "is the address right, and may this account read it?");
}

std::string address_of(const std::string& repository, const fs::path& roster_file) {
  if (!is_path(repository)) return repository;
  return fs::absolute(roster_file.parent_path() / repository).lexically_normal().string();
}

}  // namespace

Result<TakenCommit> take_commit(const std::string& repository, const std::optional<Instant>& deadline,
                                const fs::path& archive, const std::string& path_variable) {
  CAPSTONE_CHECK(expect_address(repository));
  CAPSTONE_CHECK(make_folders(archive.parent_path()));
  const ScratchFolder clone(archive);
  const fs::path packed = temporary_beside(archive);
  CAPSTONE_TRY(const std::string cloned,
               run_git({"clone", "--quiet", "--bare", "--no-local", "--no-tags", "--single-branch",
                        "--no-recurse-submodules", "--template=", "--", repository, clone.path().string()},
                       path_variable, repository));
  std::vector<std::string> last{"-C", clone.path().string(), "log", "-1", "--format=%H %ct"};
  if (deadline) last.push_back("--before=" + utc_text(*deadline));
  last.insert(last.end(), {"HEAD", "--"});
  CAPSTONE_TRY(const std::string found, run_git(last, path_variable, repository));
  const std::size_t space = found.find(' ');
  if (space == std::string::npos)
    return fail("no commit before " + (deadline ? utc_text(*deadline) : std::string("now")), repository,
                "the deadline counts by the committer's clock");
  TakenCommit taken{found.substr(0, space), utc_text(std::stoll(found.substr(space + 1)))};
  CAPSTONE_TRY(const std::string written, run_git({"-C", clone.path().string(), "archive", "--format=tar",
                                                   "--output=" + packed.string(), taken.sha},
                                                  path_variable, repository));
  std::error_code code;
  fs::rename(packed, archive, code);
  if (code) {
    fs::remove(packed, code);
    return fail("cannot put the archive in place", archive.string(), "is the disk full?",
                ExitCode::kEnvironment);
  }
  return taken;
}

Result<TakenRepositories> take_repositories(const std::vector<RosterRow>& roster, const fs::path& roster_file,
                                            const std::optional<Instant>& deadline, const fs::path& place,
                                            const std::string& path_variable, bool fetch) {
  if (std::none_of(roster.begin(), roster.end(), [](const RosterRow& r) { return !r.repository.empty(); }))
    return fail("no row names a repository", roster_file.string(),
                "add a column `repository` with paths, file://, ssh:// or https:// addresses");
  TakenRepositories all;
  std::set<std::string> names, seen;
  for (const RosterRow& row : roster) {
    const std::string address = address_of(row.repository, roster_file);
    if (row.repository.empty() || !seen.insert(address).second) continue;
    Submission submission;
    for (int n = 1; submission.name.empty() || !names.insert(submission.name).second; ++n)
      submission.name = file_name_of(row.name) + (n > 1 ? fmt::format("~{}", n) : "");
    submission.path = place / (submission.name + ".tar");
    submission.shown = to_utf8(address);
    const fs::path note = place / (submission.name + ".json");
    if (fetch) {
      const auto taken =
          take_commit(address, row.deadline ? row.deadline : deadline, submission.path, path_variable);
      if (!taken && taken.error().code == ExitCode::kInterrupted) return fail(taken.error());
      if (taken)
        CAPSTONE_CHECK(
            write_file_atomic(note, Json{{"commit", taken->sha}, {"time", taken->time}}.dump() + "\n"));
      else
        all.problems.push_back(row.name + ": " + taken.error().what + " (" + to_utf8(address) + ")");
    }
    std::error_code code;
    const auto text = read_file(note, 1u << 16);
    if (!text || !fs::exists(submission.path, code)) continue;  // an earlier archive counts
    const Json json = parse_json(*text);
    submission.origin = {
        "Git", row.name, row.id, row.email, json.value("time", ""), false, json.value("commit", "")};
    all.submissions.push_back(std::move(submission));
  }
  return all;
}

}  // namespace capstone
