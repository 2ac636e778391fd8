#pragma once
// Submissions from Git: clones the repository of each person of a roster and takes the last commit before the
// deadline. A repository is untrusted: nothing in it runs, and only its files are taken.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/roster.h"

namespace capstone {

/// One commit, packed as an archive.
struct TakenCommit {
  std::string sha;   ///< all digits
  std::string time;  ///< of the commit, UTC; the author's machine wrote it
};

/// Takes the last commit of the repository's default branch at or before `deadline` (empty: the last one) and
/// writes its files to `archive`, a tar. The same commit gives the same bytes. An earlier archive stays as it
/// is when anything fails.
/// @param repository  a path, file://, ssh://, https:// or user@host:path
/// @error not such an address; git is missing; cannot be cloned, within two minutes and 1 GiB a file; no
/// commit
///        in time.
Result<TakenCommit> take_commit(const std::string& repository, const std::optional<Instant>& deadline,
                                const std::filesystem::path& archive, const std::string& path_variable);

/// The submissions of a roster with a column `repository`. People who share a repository share a submission.
struct TakenRepositories {
  std::vector<Submission> submissions;  ///< in the roster's order; their origin holds the commit
  std::vector<std::string> problems;    ///< "Ada: no commit before 2026-11-20T…"; no submission
};

/// Clones every repository of the roster, or only reports the archives that an earlier run made.
/// @param roster_file  paths of repositories are relative to its folder
/// @param deadline     for people without one of their own
/// @param place        where archives lie: PLACE/NAME.tar, and NAME.json with the commit
/// @param fetch        false: take what is there, clone nothing and write nothing
/// @error no row has a repository; interrupted. What is wrong with a repository is in `problems`.
Result<TakenRepositories> take_repositories(const std::vector<RosterRow>& roster,
                                            const std::filesystem::path& roster_file,
                                            const std::optional<Instant>& deadline,
                                            const std::filesystem::path& place,
                                            const std::string& path_variable, bool fetch);

}  // namespace capstone
