#include "harness/project/archive/symlink_check.h"

#include <fmt/format.h>

#include "harness/base/files.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxEntries = 100'000;

bool lies_inside(const fs::path& target, const fs::path& root) {
  const fs::path inside = target.lexically_relative(root);
  return !inside.empty() && *inside.begin() != "..";
}

// Returns an empty text if the entry is allowed.
std::string objection(const fs::directory_entry& entry, const fs::path& root) {
  std::error_code code;
  switch (entry.symlink_status(code).type()) {
    case fs::file_type::regular:
    case fs::file_type::directory:
      return {};
    case fs::file_type::symlink: {
      const fs::path target = fs::weakly_canonical(entry.path(), code);
      if (code) return "a link whose target does not exist";
      if (!lies_inside(target, root)) return "a link to a place outside of the submission";
      return fs::is_directory(target, code) || fs::is_regular_file(target, code)
                 ? std::string()
                 : "a link that leads nowhere";
    }
    default:
      return "neither a file nor a folder";
  }
}

}  // namespace

Result<void> check_unlinked(const fs::path& submission) {
  std::error_code code;
  const fs::path root = fs::canonical(submission, code);
  fs::recursive_directory_iterator at(root, code), end;
  for (std::size_t entries = 0; !code && at != end; at.increment(code)) {
    if (++entries > kMaxEntries)
      return fail(fmt::format("more than {} files", kMaxEntries), submission.string(),
                  "hand in the archive that `capstone submit` makes");
    const std::string name = at->path().filename().string();
    if (name.starts_with(".") && name != ".capstone" &&
        at->symlink_status().type() == fs::file_type::directory) {
      at.disable_recursion_pending();  // for example a Python environment or version control: many links, and
                                       // never read
      continue;
    }
    if (const std::string why = objection(*at, root); !why.empty())
      return fail(fmt::format("{} is {}", at->path().lexically_relative(root).string(), why),
                  submission.string(), "hand in the file itself, as `capstone submit` does");
  }
  if (code)
    return fail("cannot read the submission: " + code.message(), submission.string(), "fix its permissions");
  return {};
}

}  // namespace capstone
