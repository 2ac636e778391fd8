#include "harness/sandbox/sandbox.h"

#include "harness/base/subprocess.h"
#include "harness/base/text.h"

namespace capstone {
namespace fs = std::filesystem;
namespace {

// What a program needs of the system to start: loader, libraries, time zone and locale data; no home, no /etc beyond
// the loader's cache.
std::vector<std::string> system_binds() {
  std::vector<std::string> binds{"--ro-bind", "/usr", "/usr"};
  for (const char* folder : {"/lib", "/lib64", "/lib32", "/bin", "/sbin"}) {
    std::error_code ignored;
    if (fs::is_symlink(folder, ignored)) {
      binds.insert(binds.end(), {"--symlink", fs::read_symlink(folder, ignored).string(), folder});
    } else {
      binds.insert(binds.end(), {"--ro-bind-try", folder, folder});
    }
  }
  binds.insert(binds.end(), {"--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"});
  binds.insert(binds.end(), {"--ro-bind-try", "/etc/alternatives", "/etc/alternatives"});
  return binds;
}

std::vector<std::string> common(bool gpu) {
  std::vector<std::string> flags{"--unshare-all", "--die-with-parent", "--cap-drop", "ALL",
                                 "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"};
  auto binds = system_binds();
  flags.insert(flags.end(), binds.begin(), binds.end());
  if (gpu) {
    flags.insert(flags.end(), {"--ro-bind-try", "/sys", "/sys", "--ro-bind-try", "/opt", "/opt"});
    std::error_code code;
    for (const auto& entry : fs::directory_iterator("/dev", code)) {
      std::string name = entry.path().filename();
      if (name.starts_with("nvidia") && name != "nvidia-modeset")
        flags.insert(flags.end(), {"--dev-bind-try", entry.path().string(), entry.path().string()});
    }
  }
  return flags;
}

}  // namespace

Sandbox Sandbox::none(const Resources& resources, std::string why) {
  Sandbox sandbox;
  sandbox.description_ = "none: " + std::move(why);
  sandbox.visible_devices_ = resources.visible_devices;
  return sandbox;
}

Sandbox Sandbox::detect(const Resources& resources) {
  fs::path shipped = resources.libexec / "bwrap" / "bwrap";
  std::error_code ignored;
  Sandbox sandbox;
  sandbox.visible_devices_ = resources.visible_devices;
  if (auto found = find_program("bwrap", resources.path_variable)) {
    sandbox.bwrap_ = *found;
  } else if (fs::exists(shipped, ignored)) {
    sandbox.bwrap_ = shipped;
    sandbox.bwrap_libraries_ = shipped.parent_path();
  } else {
    return none(resources, "bwrap (bubblewrap) is not installed");
  }
  ProcessSpec probe;
  probe.argv = sandbox.wrap({"/usr/bin/true"}, false);
  probe.inherit_env = false;
  probe.env = sandbox.environment(false);
  probe.timeout = std::chrono::seconds(5);
  auto result = run_process(probe);
  if (!result || !result->ok()) {
    std::string why = result ? std::string(trim(result->err)) : result.error().what;
    why = why.substr(0, why.find(". See"));  // bwrap's advice is long, and `doctor` has its own
    return none(resources, "bwrap cannot make namespaces here (" + why.substr(0, why.find(", likely")) + ")");
  }
  sandbox.description_ = "bubblewrap";
  return sandbox;
}

std::vector<std::string> Sandbox::wrap(std::vector<std::string> argv, bool gpu) const {
  if (bwrap_.empty()) return argv;
  std::vector<std::string> command{bwrap_.string()};
  auto flags = common(gpu);
  command.insert(command.end(), flags.begin(), flags.end());
  std::vector<fs::path> seen = readable_;
  for (const std::string& argument : argv)
    if (argument.starts_with("/")) seen.push_back(argument);
  for (const fs::path& path : seen)
    if (!path.string().starts_with("/usr/"))
      command.insert(command.end(), {"--ro-bind", path.string(), path.string()});
  command.insert(command.end(), {"--chdir", "/tmp", "--"});
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

std::vector<std::pair<std::string, std::string>> Sandbox::environment(bool gpu) const {
  std::vector<std::pair<std::string, std::string>> env{{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                                       {"LANG", "C.UTF-8"}, {"HOME", "/tmp"}};
  if (!bwrap_libraries_.empty()) env.emplace_back("LD_LIBRARY_PATH", bwrap_libraries_.string());
  if (gpu) env.emplace_back("CUDA_MODULE_LOADING", "EAGER");
  if (gpu && !visible_devices_.empty()) env.emplace_back("CUDA_VISIBLE_DEVICES", visible_devices_);
  return env;
}

}  // namespace capstone
