#pragma once
// Which submissions lie in a mentor's folder, and whose they are as far as file names tell.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/json.h"

namespace capstone {

/// What a learning platform wrote into a file's or folder's name, or beside it.
struct Origin {
  std::string platform;    ///< "Canvas", "Moodle", "Gradescope"; empty: none of them
  std::string person;      ///< as the platform writes the name
  std::string id;          ///< the platform's own number of the person (Canvas, Moodle) or the student id (Gradescope)
  std::string email;
  std::string submitted;   ///< UTC or as the platform writes it; empty: not told
  bool late = false;       ///< the platform says so
};

/// Canvas `lovelaceada_LATE_123_456_project.tar.gz`, Moodle `Ada Lovelace_123_assignsubmission_file_project.zip` (also as a
/// folder), Gradescope `submission_123`. Anything else: an Origin without a platform.
Origin origin_of(std::string_view file_name);

struct Submission {
  std::string name;               ///< unique among the cohort's; fit for a file's name
  std::filesystem::path path;     ///< a project folder or an archive
  std::string shown;              ///< the path as the mentor knows it: relative to what was named
  Origin origin;
  std::vector<std::string> rivals; ///< more archives of the same folder: which one counts is not for us to say
};

struct FoundSubmissions {
  std::vector<Submission> submissions;   ///< sorted by path, so that names are the same every time
  std::vector<std::string> ignored;      ///< files that are no submission
};

/// Looks into a folder, or into a bulk archive of a platform, which is unpacked below `scratch` first (once: a second call
/// with the same archive finds it there). Entries with a dot in front, `roster.csv` and whatever lies at `exclude` do not count.
/// @error neither a folder nor an archive; the bulk archive is damaged or refused; nothing is there.
Result<FoundSubmissions> find_submissions(const std::filesystem::path& where, const std::filesystem::path& scratch,
                                          const std::filesystem::path& exclude);

/// SHA-256 over all that is handed in: an archive's bytes; a folder's names, contents and link targets.
/// @error not readable.
Result<std::string> digest_of_submission(const std::filesystem::path& path);

bool is_archive_name(std::string_view file_name);

/// The folder with capstone.yaml: this one, or the only one in it that has it (an archive usually has one folder at its top).
/// Empty: there is none.
std::filesystem::path project_root(const std::filesystem::path& place);

void to_json(Json&, const Origin&);
void from_json(const Json&, Origin&);

}  // namespace capstone
