#include <fstream>

#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {
namespace {

// The first word of a file below /proc; empty when there is none.
std::string setting(const char* path) {
  std::ifstream file(path);
  std::string value;
  file >> value;
  return value;
}

bool in_container() {
  std::error_code ignored;
  return std::filesystem::exists("/.dockerenv", ignored) ||
         std::filesystem::exists("/run/.containerenv", ignored);
}

}  // namespace

std::string isolation_advice(const Sandbox& sandbox, const Resources& resources) {
  if (sandbox.kind() == Isolation::kBubblewrap) return {};
  std::error_code ignored;
  std::string advice;
  if (!resources.isolation.empty())
    advice = "unset CAPSTONE_ISOLATION";
  else if (!find_program("bwrap", resources.path_variable) &&
           !std::filesystem::exists(resources.libexec / "bwrap" / "bwrap", ignored))
    advice = "apt install bubblewrap";
  else if (in_container())
    advice =
        "this is a container: start it with --security-opt seccomp=unconfined --security-opt "
        "apparmor=unconfined "
        "--security-opt systempaths=unconfined, so that bubblewrap can make namespaces";
  else if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1")
    advice =
        "AppArmor refuses user namespaces (Ubuntu's default): allow them for bwrap with the profile "
        "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict (apt install apparmor-profiles, copy it to "
        "/etc/apparmor.d/, run "
        "apparmor_parser -r on it), or for all programs with sudo sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0";
  else if (setting("/proc/sys/kernel/unprivileged_userns_clone") == "0")
    advice = "sudo sysctl kernel.unprivileged_userns_clone=1, so that bubblewrap can make namespaces";
  else if (setting("/proc/sys/user/max_user_namespaces") == "0")
    advice = "sudo sysctl user.max_user_namespaces=10000, so that bubblewrap can make namespaces";
  else
    advice = "ask the administrator to allow user namespaces, which bubblewrap needs";
  if (sandbox.kind() == Isolation::kNone)
    return "kernels run under limits only: " + advice + "; or use Linux 5.13 or newer with Landlock";
  return "good; bubblewrap would be better: " + advice;
}

}  // namespace capstone
