#include "harness/project/staging.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

Error cannot(const std::string& verb, const fs::path& path, int why) {
  std::string hint = "nothing was written";
  if (why == EACCES || why == EPERM || why == EROFS) hint = "you cannot write there; choose another folder";
  return {"cannot " + verb + ": " + std::strerror(why), path.string(), hint, ExitCode::kEnvironment};
}

// A new clone may already hold .git; none of our files has that name.
bool may_stay(const fs::path& entry) { return entry.filename() == ".git"; }

Result<std::vector<std::string>> in_the_way(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  fs::directory_iterator entry(folder, code), end;
  for (; !code && entry != end; entry.increment(code))
    if (!may_stay(entry->path())) names.push_back(entry->path().filename().string());
  if (code) return fail("cannot read the folder: " + code.message(), folder.string());
  std::sort(names.begin(), names.end());
  return names;
}

Error not_empty(const fs::path& target, std::vector<std::string> names) {
  const std::size_t total = names.size();
  names.resize(std::min<std::size_t>(total, 5));
  std::string list = join(names, ", ");
  if (total > names.size()) list += " and " + std::to_string(total - names.size()) + " more";
  return {"the folder is not empty, and existing files are never overwritten", target.string(),
          "it holds " + list + "; choose another folder, or move them", ExitCode::kUsage};
}

// mkdir, so that the new folder follows the user's umask (mkdtemp would make it private).
Result<fs::path> make_temporary(const fs::path& parent, const std::string& stem) {
  for (int tries = 0;; ++tries) {
    fs::path folder = parent / (stem + std::to_string(::getpid()) + "-" + std::to_string(tries));
    if (::mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST || tries > 1000) return fail(cannot("create a folder", parent, errno));
  }
}

}  // namespace

Staging::Staging(Staging&& other) noexcept
    : target_(std::move(other.target_)),
      folder_(std::exchange(other.folder_, {})),
      target_existed_(other.target_existed_),
      made_parents_(std::exchange(other.made_parents_, {})) {}

Staging::~Staging() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
  for (auto parent = made_parents_.rbegin(); parent != made_parents_.rend(); ++parent)
    ::rmdir(parent->c_str());
}

Result<Staging> Staging::begin(const fs::path& target) {
  Staging staging;
  std::error_code code;
  staging.target_ = fs::absolute(target, code).lexically_normal();
  if (!staging.target_.has_filename()) staging.target_ = staging.target_.parent_path();  // "folder/"
  const fs::path& at = staging.target_;
  if (fs::exists(fs::symlink_status(at, code))) {
    if (!fs::is_directory(at, code))
      return fail("a file of that name exists already", at.string(), "choose another name");
    CAPSTONE_TRY(auto names, in_the_way(at));
    if (!names.empty()) return fail(not_empty(at, std::move(names)));
    staging.target_existed_ = true;
    CAPSTONE_TRY(staging.folder_, make_temporary(at, ".capstone-init-"));
    return staging;
  }
  std::vector<fs::path> missing;
  for (fs::path parent = at.parent_path(); !fs::exists(parent, code) && parent != parent.parent_path();
       parent = parent.parent_path())
    missing.push_back(parent);
  std::reverse(missing.begin(), missing.end());
  for (const fs::path& parent : missing) {
    if (::mkdir(parent.c_str(), 0777) != 0 && errno != EEXIST)
      return fail(cannot("create the folder", parent, errno));
    staging.made_parents_.push_back(parent);
  }
  CAPSTONE_TRY(staging.folder_,
               make_temporary(at.parent_path(), "." + at.filename().string() + ".capstone-init-"));
  return staging;
}

Result<void> Staging::move_entries(const std::string& last) {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder_, code))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return std::pair(a == last, a) < std::pair(b == last, b);
  });
  std::vector<fs::path> moved;
  for (const std::string& name : names) {
    const fs::path to = target_ / name;
    const bool taken = fs::exists(fs::symlink_status(to, code));
    if (!taken && ::rename((folder_ / name).c_str(), to.c_str()) == 0) {
      moved.push_back(to);
      continue;
    }
    const Error error = taken ? not_empty(target_, {name}) : cannot("move a file into place", to, errno);
    for (const fs::path& path : moved) fs::remove_all(path, code);
    return fail(error);
  }
  return {};
}

Result<void> Staging::commit(const std::string& last) {
  if (target_existed_) {
    // The folder itself stays: it may be the current directory of the user's shell, or a mount point.
    CAPSTONE_CHECK(move_entries(last));
    ::rmdir(folder_.c_str());
  } else if (::rename(folder_.c_str(), target_.c_str()) != 0) {
    return fail(cannot("move the new folder into place", target_, errno));
  }
  folder_.clear();
  made_parents_.clear();
  return {};
}

}  // namespace capstone
