// capstone-confine [--read PATH | --write FOLDER | --device PATH]… -- PROGRAM [ARGUMENT]…
// capstone-confine --only-calls yes -- PROGRAM [ARGUMENT]…   inside bubblewrap, which has restricted the
// files Gives up what an untrusted program must not have, then becomes that program. The filter of system
// calls is the same with bubblewrap and with Landlock. Exit code 125 and one line on stderr when the kernel
// cannot do it.
#include "harness/runtime/sandbox/confine.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

constexpr int kCannotConfine = 125;

int fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return kCannotConfine;
}

// Landlock's rules hold for root, too, but the modes of the system's files do not.
bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
         ::syscall(SYS_capset, &header, none) == 0;
}

// A descriptor can hold memory of the kernel's: what waits in a socket or in a pipe. It is also the limit on
// descriptors that are on their way through sockets. Most systems give a program no more than this anyway.
bool limit_descriptors() {
  constexpr rlim_t kMost = 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_max = std::min(limit.rlim_max, kMost);
  limit.rlim_cur = std::min(limit.rlim_cur, kMost);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace capstone::confine;
  Paths paths;
  bool only_calls = false;
  int at = 1;
  for (; at + 1 < argc && std::string_view(argv[at]) != "--"; at += 2) {
    const std::string_view flag = argv[at];
    if (flag == "--read")
      paths.read.push_back(argv[at + 1]);
    else if (flag == "--write")
      paths.write.push_back(argv[at + 1]);
    else if (flag == "--device")
      paths.device.push_back(argv[at + 1]);
    else if (flag == "--only-calls")
      only_calls = true;
    else
      return fail("unknown option " + std::string(flag));
  }
  if (at + 1 >= argc) return fail("no program to run");
  if (!only_calls && !drop_capabilities())
    return fail(std::string("capabilities cannot be dropped: ") + std::strerror(errno));
  if (!limit_descriptors())
    return fail(std::string("the number of descriptors cannot be limited: ") + std::strerror(errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail(std::string("no_new_privs is refused: ") + std::strerror(errno));
  if (!only_calls)
    if (std::string why = restrict_files(paths); !why.empty()) return fail(why);
  if (std::string why = restrict_system_calls(); !why.empty()) return fail(why);
  ::execvp(argv[at + 1], argv + at + 1);
  return fail(std::string("cannot start ") + argv[at + 1] + ": " + std::strerror(errno));
}
