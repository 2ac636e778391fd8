#include "harness/runtime/sandbox/orphans.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/base/text.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;

// Files of /proc have no size: they are read to their end. Empty: the process is gone.
std::string read_proc(const std::string& pid, const char* file) {
  std::ifstream in("/proc/" + pid + "/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Kin {
  std::string name;
  std::string parent;
};

Kin kin_of(const std::string& pid) {
  const std::string stat = read_proc(pid, "stat");
  const std::size_t open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return {};
  Kin kin{stat.substr(open + 1, close - open - 1), {}};
  char state = 0;
  std::istringstream(stat.substr(close + 1)) >> state >> kin.parent;
  return kin;
}

// The inner half has a number of its own in a namespace below ours.
bool lives_in_a_namespace(const std::string& pid) {
  std::istringstream status(read_proc(pid, "status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("NSpid:")) return std::count(line.begin(), line.end(), '\t') > 1;
  return false;
}

bool is_ours(const std::string& pid) {
  struct stat owner {};
  const std::vector<std::string> words = split(read_proc(pid, "cmdline"), '\0');
  return words.size() > kSandboxOpening.size() &&
         std::equal(kSandboxOpening.begin(), kSandboxOpening.end(), words.begin() + 1) &&
         ::stat(("/proc/" + pid).c_str(), &owner) == 0 && (owner.st_uid == ::getuid() || ::getuid() == 0);
}

}  // namespace

int end_orphaned_sandboxes() {
  int ended = 0;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("/proc", code)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const Kin kin = kin_of(pid);
    if (kin.name != "bwrap" || kin_of(kin.parent).name == "bwrap" || !is_ours(pid) ||
        !lives_in_a_namespace(pid))
      continue;
    ended += ::kill(std::atoi(pid.c_str()), SIGKILL) == 0;
  }
  return ended;
}

}  // namespace capstone
