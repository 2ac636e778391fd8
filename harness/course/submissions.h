#pragma once
// Finds the submissions in a mentor's folder, and what their file names say about their authors.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/json.h"

namespace capstone {

/// What a learning platform says about a submission, in the name of a file or folder or in a metadata file.
struct Origin {
  std::string platform;  ///< "Canvas", "Moodle" or "Gradescope"; empty when it is none of them
  std::string person;    ///< the name as the platform writes it
  /// The platform's number for the person (Canvas, Moodle) or the student id (Gradescope).
  std::string id;
  std::string email;
  std::string submitted;  ///< in UTC, or as the platform writes it; empty when it is unknown
  bool late = false;      ///< the platform marked it as late
};

/// Reads the names that platforms give to files and folders: Canvas
/// `lovelaceada_LATE_123_456_project.tar.gz`, Moodle `Ada Lovelace_123_assignsubmission_file_project.zip` (or
/// a folder), Gradescope `submission_123`. Any other name gives an Origin without a platform.
Origin origin_of(std::string_view file_name);

struct Submission {
  std::string name;            ///< unique in the cohort; safe as a file name
  std::filesystem::path path;  ///< a project folder or an archive
  std::string shown;           ///< the path relative to the folder that the mentor named
  Origin origin;
  /// Other archives in the same folder; a person must decide which one counts.
  std::vector<std::string> rivals;
};

struct FoundSubmissions {
  std::vector<Submission> submissions;  ///< sorted by path, so that names are the same every time
  std::vector<std::string> ignored;     ///< files that are not submissions
};

/// Finds the submissions in a folder or in a platform's bulk archive. A bulk archive is first unpacked below
/// `scratch`; a second call with the same archive uses the unpacked copy. Skips hidden entries, `roster.csv`,
/// the folder `checkins` and `exclude`.
/// @error `where` is neither a folder nor an archive; the bulk archive is damaged or refused; there is no
///        submission.
Result<FoundSubmissions> find_submissions(const std::filesystem::path& where,
                                          const std::filesystem::path& scratch,
                                          const std::filesystem::path& exclude);

/// SHA-256 of a submission: the bytes of an archive, or the names, contents and link targets of a folder.
/// @error not readable.
Result<std::string> digest_of_submission(const std::filesystem::path& path);

bool is_archive_name(std::string_view file_name);

/// The folder that contains capstone.yaml: `place` itself, or the only folder directly inside it that has the
/// file (an archive usually has one folder at its top). Empty when there is no such folder.
std::filesystem::path project_root(const std::filesystem::path& place);

void to_json(Json&, const Origin&);
void from_json(const Json&, Origin&);

}  // namespace capstone
