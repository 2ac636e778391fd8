// Landlock by its system calls: glibc has no functions for them, and the headers of older systems lack newer
// constants.
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "harness/runtime/sandbox/confine.h"

namespace capstone::confine {
namespace {

constexpr std::uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kRefer = 1u << 13, kTruncate = 1u << 14, kIoctl = 1u << 15;
constexpr std::uint64_t kDevice = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctl;
// Device nodes cannot be made anyway: the capability is gone.
constexpr std::uint64_t kWrite =
    kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | kRefer | kTruncate;
// What a rule for something that is no folder may name.
constexpr std::uint64_t kFileRights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                      LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctl;

struct RulesetAttributes {  // landlock_ruleset_attr as of ABI 6; an older kernel takes it when what it does
                            // not know is zero
  std::uint64_t files, network, scopes;
};

RulesetAttributes attributes_for(long abi) {
  std::uint64_t files = (std::uint64_t{1} << 13) - 1;
  if (abi >= 2) files |= kRefer;
  if (abi >= 3) files |= kTruncate;
  if (abi >= 5) files |= kIoctl;
  return {files, abi >= 4 ? 3u : 0u, abi >= 6 ? 3u : 0u};  // TCP bind, connect; abstract sockets, signals
}

std::string allow(int ruleset, const char* path, std::uint64_t rights) {
  const int fd = ::open(path, O_PATH | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT || errno == ENOTDIR || errno == EACCES
               ? ""
               : std::string(path) + ": " + std::strerror(errno);
  struct stat facts {};
  if (::fstat(fd, &facts) == 0 && !S_ISDIR(facts.st_mode)) rights &= kFileRights;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights;
  rule.parent_fd = fd;
  const long done = ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  const int why = errno;
  ::close(fd);
  return done == 0 ? "" : std::string("Landlock takes no rule for ") + path + ": " + std::strerror(why);
}

}  // namespace

std::string restrict_files(const Paths& paths) {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1)
    return std::string("the kernel has no Landlock (Linux 5.13 or newer has, unless it is switched off): ") +
           std::strerror(errno);
  const RulesetAttributes handled = attributes_for(abi);
  const int ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0));
  if (ruleset < 0) return std::string("Landlock refuses a ruleset: ") + std::strerror(errno);
  const std::pair<const std::vector<const char*>*, std::uint64_t> lists[] = {
      {&paths.read, kRead}, {&paths.write, kWrite}, {&paths.device, kDevice}};
  for (const auto& [list, rights] : lists)
    for (const char* path : *list)
      if (std::string why = allow(ruleset, path, rights & handled.files); !why.empty()) return why;
  if (::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
    return std::string("Landlock refuses to restrict: ") + std::strerror(errno);
  ::close(ruleset);
  return {};
}

}  // namespace capstone::confine
