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
  /// "Canvas", "Moodle", "Gradescope" or "Git" (a repository of the roster); empty when it is none of them
  std::string platform;
  std::string person;    ///< the name as the platform writes it
  /// The platform's number for the person (Canvas, Moodle) or the student id (Gradescope).
  std::string id;
  std::string email;
  std::string submitted;  ///< in UTC, or as the platform writes it; empty when it is unknown
  bool late = false;      ///< the platform marked it as late
  std::string commit{};   ///< of a repository: the SHA that was taken
};

/// Reads the names that platforms give to files and folders: Canvas
/// `lovelaceada_LATE_123_456_project.tar.gz`, Moodle `Ada Lovelace_123_assignsubmission_file_project.zip` (or
/// a folder `Ada Lovelace_123_assignsubmission_file`), Gradescope `submission_123`. Any other name gives an
/// Origin without a platform.
Origin origin_of(std::string_view file_name);

struct Submission {
  std::string name;            ///< unique in the cohort; safe as a file name
  std::filesystem::path path;  ///< a project folder or an archive
  std::string shown;           ///< the path relative to the folder that the mentor named
  Origin origin;
  /// All archives of a folder with more than one, relative to it; a person must decide which one counts.
  std::vector<std::string> rivals;
};

struct FoundSubmissions {
  std::vector<Submission> submissions;  ///< sorted by path, so that names are the same every time
  std::vector<std::string> ignored;     ///< files that are not submissions
};

/// A name that is a valid file name on every system and does not look like an option or a hidden file: "Ada
/// Lovelace" becomes "Ada-Lovelace".
std::string file_name_of(std::string_view text);

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

/// The folders that contain capstone.yaml: `place` itself, or those nearest to it among the folders inside it
/// ("Downloads/my capstone/…"). Sorted.
std::vector<std::filesystem::path> project_roots(const std::filesystem::path& place);
/// The only one of project_roots(); empty when there is none, or more than one.
std::filesystem::path project_root(const std::filesystem::path& place);
/// The archives nearest to `place` among the files inside it, sorted.
std::vector<std::filesystem::path> archives_below(const std::filesystem::path& place);

void to_json(Json&, const Origin&);
void from_json(const Json&, Origin&);

}  // namespace capstone
