#pragma once
// Plans one archive to hand in: what goes in, what stays out and why, and what must not leave the machine.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/project/project.h"

namespace capstone {

/// The names of the student's machine and account. Only the command line reads them from the system.
struct Identity {
  std::string user, home, host;
};

struct SubmissionOptions {
  Identity identity;
  bool allow_secrets = false;                      ///< hand in although something looks like a key
  std::size_t max_file = std::size_t{16} << 20;    ///< [B]
  std::size_t max_total = std::size_t{256} << 20;  ///< [B] before compression
  std::size_t max_files = 10000;
};

/// One file as it will be stored in the archive.
struct SubmissionFile {
  std::string path;     ///< inside the archive, below `prefix`
  std::string content;  ///< exactly the bytes that were checked
  int masked = 0;       ///< number of names masked in this copy; the project's file is unchanged
};

struct SkippedFile {
  std::string path;          ///< inside the project; a folder ends in '/'
  std::uintmax_t bytes = 0;  ///< 0 for folders
  std::string reason;
};

struct SubmissionFinding {
  enum class Kind {
    kSecret,    ///< looks like a key; write_submission() refuses
    kIdentity,  ///< names the machine or the user in a file that must not be changed
    kLedger,    ///< the same, in the ledger
    kMissing,   ///< a required file is missing
  } kind;
  std::string where;  ///< "human/kernel.cu:12"
  std::string what;   ///< never the secret itself
  std::string hint;
};

struct SubmissionPlan {
  std::string prefix;                 ///< the archive's one top-level folder
  std::vector<SubmissionFile> files;  ///< sorted by path
  std::vector<SkippedFile> skipped;   ///< sorted by path
  std::vector<SubmissionFinding> findings;
  std::uintmax_t bytes = 0;  ///< of all files
  std::int64_t mtime = 0;    ///< of every entry: the ledger's last record, Unix seconds
  bool allow_secrets = false;
};

/// Chooses, reads, masks and checks files; writes nothing.
///
/// Host name, user name and home folder are masked in copies of texts whose digest is not recorded (worklog,
/// report, notes). Sources, prompts, replies, the problem and the ledger are handed in unchanged; names in
/// them are reported as findings. Symbolic links are followed only to files that would be handed in anyway.
/// @error a file cannot be read; a file or the total is too large.
Result<SubmissionPlan> plan_submission(const Project& project, const SubmissionOptions& options);

/// What was written.
struct Receipt {
  std::filesystem::path file;
  std::uintmax_t bytes = 0;  ///< of the archive
  std::string sha256;
};

/// Writes the .tar.gz completely or not at all. The same plan gives the same bytes.
/// @error secrets were found and are not allowed; the disk is full.
Result<Receipt> write_submission(const SubmissionPlan& plan, const std::filesystem::path& out);

}  // namespace capstone
