#include "harness/course/submissions.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/archive/archive.h"

namespace capstone {
namespace {

constexpr const char* kArchiveEndings[] = {".tar.gz", ".tgz", ".zip", ".tar"};
constexpr std::size_t kMaxName = 80;  // [B] longest name of a submission's folder
// Limits for a bulk archive, which holds a whole class. Each submission inside must keep the usual limits
// when it is unpacked.
constexpr UnpackLimits kBulkLimits{200'000, std::uintmax_t{64} << 30, std::uintmax_t{256} << 20, 24};

std::string without_ending(std::string name) {
  for (std::string_view ending : kArchiveEndings)
    if (name.size() > ending.size() && name.ends_with(ending))
      return name.substr(0, name.size() - ending.size());
  return name;
}

std::string name_of(const Submission& submission, const fs::path& entry) {
  if (submission.origin.platform == "Gradescope" && submission.origin.person.empty())
    return file_name_of(entry.filename().string());
  if (!submission.origin.person.empty()) return file_name_of(submission.origin.person);
  return file_name_of(without_ending(entry.filename().string()));
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (!entry.path().filename().string().starts_with(".")) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// The folders below `place` that have capstone.yaml, of the level nearest to it; at most `depth` levels down.
// Hidden folders and what macOS adds to archives are left out.
std::vector<fs::path> projects_below(const fs::path& place, int depth) {
  constexpr std::size_t kMostFolders = 2'000;  // bounds the work on a deep tree
  std::error_code code;
  if (fs::exists(place / "capstone.yaml", code)) return {place};
  std::vector<fs::path> level{place};
  for (std::size_t seen = 0; depth > 0 && !level.empty() && seen < kMostFolders; --depth) {
    std::vector<fs::path> next, found;
    for (const fs::path& folder : level)
      for (const fs::path& entry : entries_of(folder)) {
        if (++seen > kMostFolders) break;
        if (fs::symlink_status(entry, code).type() != fs::file_type::directory) continue;
        if (entry.filename() == "__MACOSX") continue;
        next.push_back(entry);
        if (fs::exists(entry / "capstone.yaml", code)) found.push_back(entry);
      }
    if (!found.empty()) return found;
    level = std::move(next);
  }
  return {};
}

// Looks inside a folder that the platform made for one upload. It contains the project itself, or an archive
// of it.
void look_inside(Submission& submission) {
  if (!project_roots(submission.path).empty()) return;
  const std::vector<fs::path> archives = archives_below(submission.path);
  if (archives.empty()) return;
  if (archives.size() > 1)
    for (const fs::path& archive : archives)
      submission.rivals.push_back(archive.lexically_relative(submission.path));
  submission.path = archives.front();
}

// Gradescope names the submitters in a separate YAML file whose keys are Ruby symbols.
std::map<std::string, Origin> gradescope_people(const fs::path& folder) {
  std::map<std::string, Origin> people;
  auto text = read_file(folder / "submission_metadata.yml", 64u << 20);
  if (!text) return people;
  try {
    for (const auto& entry : YAML::Load(*text)) {
      Origin origin;
      origin.platform = "Gradescope";
      std::vector<std::string> names;
      for (const YAML::Node& person : entry.second[":submitters"]) {
        if (person[":name"]) names.push_back(person[":name"].as<std::string>());
        if (origin.id.empty() && person[":sid"]) origin.id = person[":sid"].as<std::string>();
        if (origin.email.empty() && person[":email"]) origin.email = person[":email"].as<std::string>();
      }
      origin.person = join(names, " and ");
      if (entry.second[":created_at"]) origin.submitted = entry.second[":created_at"].as<std::string>();
      if (entry.second[":late"]) origin.late = entry.second[":late"].as<bool>(false);
      people[entry.first.as<std::string>()] = origin;
    }
  } catch (const YAML::Exception&) {
    return {};  // not fatal: the submissions are still matched by the members that they name
  }
  return people;
}

Result<fs::path> unpack_bulk(const fs::path& archive, const fs::path& scratch) {
  CAPSTONE_TRY(std::string digest, sha256_file(archive));
  fs::path place = scratch / ("bulk-" + digest.substr(0, 16));
  std::error_code code;
  if (fs::is_directory(place, code)) return place;  // unpacking is atomic, so an existing folder is complete
  CAPSTONE_CHECK(make_folders(scratch));
  CAPSTONE_TRY(auto unpacked, unpack_archive(archive, place, kBulkLimits));
  (void)unpacked;
  return place;
}

// A platform's archive often has a single folder at its top.
fs::path inner_folder(const fs::path& folder) {
  auto entries = entries_of(folder);
  std::error_code code;
  if (entries.size() == 1 && fs::is_directory(entries[0], code) && projects_below(folder, 1).empty())
    return entries[0];
  return folder;
}

}  // namespace

std::string file_name_of(std::string_view text) {
  std::string out;
  for (char c : to_utf8(text)) {
    auto u = static_cast<unsigned char>(c);
    bool plain = u >= 0x80 || (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') ||
                 u == '.' || u == '_' || u == '-' || u == '~';
    out += plain ? c : '-';
  }
  while (out.size() > kMaxName) {
    do out.pop_back();
    while (!out.empty() && !is_utf8(out));
  }
  while (!out.empty() && (out.front() == '.' || out.front() == '-')) out.erase(0, 1);
  return out.empty() ? "unnamed" : out;
}

bool is_archive_name(std::string_view name) {
  return std::any_of(std::begin(kArchiveEndings), std::end(kArchiveEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

std::vector<fs::path> project_roots(const fs::path& place) {
  constexpr int kDepth = 6;  // "Downloads/my capstone/capstone (1)/…"
  return projects_below(place, kDepth);
}

fs::path project_root(const fs::path& place) {
  const auto found = project_roots(place);
  return found.size() == 1 ? found.front() : fs::path();
}

std::vector<fs::path> archives_below(const fs::path& place) {
  constexpr int kDepth = 6;
  std::vector<fs::path> level{place}, found;
  for (int depth = 0; depth < kDepth && !level.empty() && found.empty(); ++depth) {
    std::vector<fs::path> next;
    for (const fs::path& folder : level)
      for (const fs::path& entry : entries_of(folder)) {
        std::error_code code;
        const auto type = fs::symlink_status(entry, code).type();
        if (type == fs::file_type::directory && entry.filename() != "__MACOSX") next.push_back(entry);
        if (type == fs::file_type::regular && is_archive_name(entry.filename().string()))
          found.push_back(entry);
      }
    level = std::move(next);
  }
  return found;
}

Origin origin_of(std::string_view file_name) {
  static const std::regex canvas("^([^_]+)(_LATE)?_([0-9]+)_([0-9]+)_.+$"),
      moodle("^(.+)_([0-9]+)_assignsubmission_file(?:_.*)?$"), gradescope("^submission_([0-9]+)$");
  std::string name(file_name.substr(0, 1024));
  std::smatch match;
  Origin origin;
  if (std::regex_match(name, match, moodle)) {
    origin = {"Moodle", match[1], match[2], {}, {}, false};
  } else if (std::regex_match(name, match, canvas)) {
    origin = {"Canvas", match[1], match[3], {}, {}, match[2].matched};
  } else if (std::regex_match(name, match, gradescope)) {
    origin.platform = "Gradescope";
  }
  return origin;
}

Result<FoundSubmissions> find_submissions(const fs::path& where, const fs::path& scratch,
                                          const fs::path& exclude) {
  std::error_code code;
  fs::path folder = where;
  if (fs::is_regular_file(where, code) && is_archive_name(where.filename().string())) {
    CAPSTONE_TRY(folder, unpack_bulk(where, scratch));
    folder = inner_folder(folder);
  } else if (!fs::is_directory(where, code)) {
    return fail("no such folder", where.string(),
                "name the folder with the submissions, or a bulk archive from Canvas, Moodle or Gradescope");
  }
  FoundSubmissions found;
  auto people = gradescope_people(folder);
  for (const fs::path& entry : entries_of(folder)) {
    std::string file = entry.filename();
    if (file == "roster.csv" || file == "judges.csv" || file == "submission_metadata.yml" ||
        fs::equivalent(entry, exclude, code))
      continue;
    const bool is_folder = fs::is_directory(entry, code);
    if (is_folder && file == "checkins" && projects_below(entry, 1).empty()) continue;
    if (!is_folder && !is_archive_name(file)) {
      found.ignored.push_back(file);
      continue;
    }
    Submission submission;
    submission.path = entry;
    submission.origin = origin_of(file);
    if (auto known = people.find(file); known != people.end()) submission.origin = known->second;
    if (is_folder) look_inside(submission);
    submission.name = name_of(submission, entry);
    submission.shown = submission.path.lexically_relative(folder).string();
    found.submissions.push_back(std::move(submission));
  }
  if (found.submissions.empty())
    return fail("nothing to grade: no folders and no archives", where.string(),
                "submissions are folders, or .tar.gz files that capstone submit wrote");
  std::set<std::string> taken;
  for (Submission& submission : found.submissions) {
    std::string base = submission.name;
    for (int n = 2; !taken.insert(submission.name).second; ++n)
      submission.name = fmt::format("{}~{}", base, n);
  }
  return found;
}

Result<std::string> digest_of_submission(const fs::path& path) {
  std::error_code code;
  if (!fs::is_directory(path, code)) return sha256_file(path);
  std::vector<fs::path> files;
  fs::recursive_directory_iterator walk(path, code), end;
  for (; !code && walk != end; walk.increment(code)) {
    std::string name = walk->path().filename();
    if (walk->is_directory() && !walk->is_symlink()) {
      if (name.starts_with(".") && name != ".capstone") walk.disable_recursion_pending();
      continue;
    }
    files.push_back(walk->path());
  }
  if (code) return fail("cannot read: " + code.message(), path.string());
  std::sort(files.begin(), files.end());
  DigestBuilder digest;
  for (const fs::path& file : files) {
    std::string content;
    fs::file_status status = fs::symlink_status(file, code);
    if (status.type() == fs::file_type::symlink) {
      content = "link " + fs::read_symlink(file, code).string();
    } else if (status.type() == fs::file_type::regular) {
      CAPSTONE_TRY(content, sha256_file(file));
    } else {
      content = "neither a file nor a link";  // grading refuses it later
    }
    digest.add(file.lexically_relative(path).string(), content);
  }
  return digest.hex();
}

void to_json(Json& json, const Origin& o) {
  json = {{"platform", o.platform},    {"person", to_utf8(o.person)},       {"id", to_utf8(o.id)},
          {"email", to_utf8(o.email)}, {"submitted", to_utf8(o.submitted)}, {"late", o.late}};
  if (!o.commit.empty()) json["commit"] = o.commit;
}

void from_json(const Json& json, Origin& o) {
  o = {json.value("platform", ""), json.value("person", ""),    json.value("id", ""),
       json.value("email", ""),    json.value("submitted", ""), json.value("late", false),
       json.value("commit", "")};
}

}  // namespace capstone
