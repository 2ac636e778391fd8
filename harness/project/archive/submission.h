#pragma once
// One archive to hand in: what goes in, what stays out and why, and what must not leave the machine.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/project/project.h"

namespace capstone {

/// What names the student's machine. The command line reads it; nothing below does.
struct Identity {
  std::string user, home, host;
};

struct SubmissionOptions {
  Identity identity;
  bool allow_secrets = false;                       ///< hand in although something looks like a key
  std::size_t max_file = std::size_t{16} << 20;     ///< [B]
  std::size_t max_total = std::size_t{256} << 20;   ///< [B] before compression
  std::size_t max_files = 10000;
};

/// One file as it will be in the archive.
struct SubmissionFile {
  std::string path;         ///< inside the archive, below `prefix`
  std::string content;      ///< the very bytes that were checked
  int masked = 0;           ///< how many names were masked in this copy; the project's file is untouched
};

struct SkippedFile {
  std::string path;         ///< inside the project; a folder ends in '/'
  std::uintmax_t bytes = 0; ///< 0 for folders
  std::string reason;
};

struct SubmissionFinding {
  enum class Kind {
    kSecret,      ///< looks like a key; stops write_submission()
    kIdentity,    ///< names the machine or the user in a file that must not be changed
    kLedger,      ///< the same in the ledger
    kMissing,     ///< a part of a capstone that is not there
  } kind;
  std::string where;        ///< "human/kernel.cu:12"
  std::string what;         ///< never the secret itself
  std::string hint;
};

struct SubmissionPlan {
  std::string prefix;                       ///< the archive's one top-level folder
  std::vector<SubmissionFile> files;        ///< sorted by path
  std::vector<SkippedFile> skipped;         ///< sorted by path
  std::vector<SubmissionFinding> findings;
  std::uintmax_t bytes = 0;                 ///< of all files
  std::int64_t mtime = 0;                   ///< of every entry: the ledger's last record, Unix seconds
  bool allow_secrets = false;
};

/// Chooses, reads, masks and checks; writes nothing.
///
/// Host name, user name and home folder are masked in copies of texts that nothing is bound to by digest (worklog,
/// report, notes). Sources, prompts, replies, the problem and the ledger are handed in unchanged; what they reveal is
/// a finding. Symbolic links are followed only to files that would be handed in anyway.
/// @error a file cannot be read; a file or the whole is too large.
Result<SubmissionPlan> plan_submission(const Project& project, const SubmissionOptions& options);

/// What was written.
struct Receipt {
  std::filesystem::path file;
  std::uintmax_t bytes = 0;     ///< of the archive
  std::string sha256;
};

/// Writes the .tar.gz whole or not at all. The same plan gives the same bytes.
/// @error secrets were found and are not allowed; disk full.
Result<Receipt> write_submission(const SubmissionPlan& plan, const std::filesystem::path& out);

}  // namespace capstone
