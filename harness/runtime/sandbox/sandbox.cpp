#include "harness/runtime/sandbox/sandbox.h"

#include <algorithm>

#include "harness/base/memory_group.h"
#include "harness/base/text.h"
#include "harness/runtime/sandbox/orphans.h"

namespace capstone {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTmpfsBytes =
    "268435456";  // [B] of the private /tmp and of the private /dev/shm: they are memory

// Closed by bubblewrap when it has read its arguments from it.
constexpr int kArgumentsDescriptor = 9;

const std::vector<fs::path> kSystemFolders{"/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin"};
// No more of /etc than the loader and the compilers' links need.
const std::vector<fs::path> kSystemFiles{"/etc/ld.so.cache", "/etc/alternatives"};
const std::vector<fs::path> kGpuFolders{"/sys", "/opt"};

std::vector<std::string> gpu_devices() {
  std::vector<std::string> devices;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("/dev", code)) {
    const std::string name = entry.path().filename();
    if ((name.starts_with("nvidia") && name != "nvidia-modeset") || name == "dxg")
      devices.push_back(entry.path().string());
  }
  return devices;
}

bool inside(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

using Paths = std::vector<fs::path>;

bool inside_any(const fs::path& path, const Paths& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const fs::path& folder) { return inside(path, folder); });
}

// Whether reading `folder` shows the path: not where one of the hidden lies between them.
bool shows(const fs::path& folder, const fs::path& path, const Paths& hidden) {
  return inside(path, folder) && std::none_of(hidden.begin(), hidden.end(), [&](const fs::path& h) {
           return h != folder && inside(h, folder) && inside(path, h);
         });
}

bool any_shows(const Paths& folders, const fs::path& path, const Paths& hidden) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const fs::path& folder) { return shows(folder, path, hidden); });
}

// What `access` and the command line add to the system for reading.
Paths readable(const ProcessSpec& spec, const Access& access, const Paths& always, const Paths& hidden) {
  Paths all = access.read;
  all.insert(all.end(), always.begin(), always.end());
  std::error_code ignored;
  for (const std::string& argument : spec.argv)
    if (argument.starts_with("/") && fs::exists(argument, ignored)) all.emplace_back(argument);
  Paths wanted;
  for (const fs::path& path : all)
    if (!any_shows(kSystemFolders, path, hidden) && !inside_any(path, access.write) &&
        !any_shows(wanted, path, hidden))
      wanted.push_back(path);
  return wanted;
}

// `folder` for Landlock, which cannot take away again: all that is in it but the hidden. Links need no right,
// what they lead to has its own place.
void add_without_hidden(const fs::path& folder, const Paths& hidden, Paths& into) {
  std::error_code code;
  const fs::path real = fs::weakly_canonical(folder, code);
  if (std::find(hidden.begin(), hidden.end(), real) != hidden.end()) return;
  if (std::none_of(hidden.begin(), hidden.end(), [&](const fs::path& h) { return inside(h, real); })) {
    into.push_back(folder);
    return;
  }
  for (const auto& entry : fs::directory_iterator(real, fs::directory_options::skip_permission_denied, code))
    if (!entry.is_symlink(code)) add_without_hidden(entry.path(), hidden, into);
}

}  // namespace

Sandbox::Sandbox(const Resources& resources)
    : confine_(resources.libexec / "capstone-confine"), visible_devices_(resources.visible_devices) {
  std::error_code code;
  for (const fs::path& ours : {resources.share, resources.libexec / "oracles"})
    if (fs::is_directory(ours, code)) hidden_.push_back(fs::canonical(ours, code));
}

Sandbox Sandbox::none(const Resources& resources, std::string why) {
  Sandbox sandbox(resources);
  sandbox.description_ = "none: " + std::move(why);
  return sandbox;
}

Sandbox Sandbox::detect(const Resources& resources) {
  Sandbox sandbox = strongest(resources);
  if (!MemoryGroup::delegated().empty()) sandbox.description_ += "; memory counted by cgroup";
  return sandbox;
}

Sandbox Sandbox::strongest(const Resources& resources) {
  const std::string& wanted = resources.isolation;
  Sandbox sandbox(resources);
  std::error_code ignored;
  std::string no_bubblewrap = "not asked for", no_landlock = "not asked for";
  if (wanted.empty() || wanted == "bubblewrap") {
    const fs::path shipped = resources.libexec / "bwrap" / "bwrap";
    sandbox.kind_ = Isolation::kBubblewrap;
    if (auto found = find_program("bwrap", resources.path_variable)) {
      sandbox.program_ = *found;
    } else if (fs::exists(shipped, ignored)) {
      sandbox.program_ = shipped;
      sandbox.bwrap_libraries_ = shipped.parent_path();
    }
    no_bubblewrap = sandbox.program_.empty() ? "bwrap is not installed" : sandbox.probe();
    if (no_bubblewrap.empty()) {
      sandbox.description_ = "bubblewrap";
      return sandbox;
    }
  }
  if (wanted.empty() || wanted == "landlock") {
    sandbox = Sandbox(resources);
    sandbox.kind_ = Isolation::kLandlock;
    sandbox.program_ = sandbox.confine_;
    no_landlock = sandbox.probe();
    if (no_landlock.empty()) {
      sandbox.description_ = "Landlock + seccomp (bubblewrap: " + no_bubblewrap + ")";
      return sandbox;
    }
  }
  if (wanted == "none") return none(resources, "CAPSTONE_ISOLATION asks for it");
  return none(resources, "bubblewrap: " + no_bubblewrap + "; Landlock: " + no_landlock);
}

std::string Sandbox::probe() const {
  ProcessSpec spec;
  spec.argv = {"/usr/bin/true"};
  spec.timeout = std::chrono::seconds(5);
  auto result = run_process(confine(std::move(spec), {}));
  if (!result) return result.error().what + " " + result.error().where;
  if (result->ok()) return {};
  std::string why(trim(to_utf8(result->err)));
  for (const char* advice : {". See", ", likely"})
    why = why.substr(0, why.find(advice));  // `doctor` has its own
  if (why.starts_with("bwrap: ")) why = why.substr(7);
  return why.empty() ? "it does not start" : split(why, '\n').front();
}

void Sandbox::use_bubblewrap(ProcessSpec& spec, const Access& access) const {
  // Namespaces do not separate keyrings, and what lies in the IPC namespace counts for no process.
  spec.argv.insert(spec.argv.begin(), {confine_.string(), "--only-calls", "yes", "--"});
  // Not on the command line, which the confined process can read in /proc/1.
  std::string arguments;
  auto add = [&](std::initializer_list<std::string> words) {
    for (const std::string& word : words) arguments.append(word).push_back('\0');
  };
  add({"--dev", "/dev", "--size", kTmpfsBytes, "--tmpfs", "/dev/shm", "--size", kTmpfsBytes, "--tmpfs",
       "/tmp"});
  for (const fs::path& folder : kSystemFolders) {
    std::error_code ignored;
    if (fs::is_symlink(folder, ignored))
      add({"--symlink", fs::read_symlink(folder, ignored).string(), folder.string()});
    else
      add({"--ro-bind-try", folder.string(), folder.string()});
  }
  for (const fs::path& file : kSystemFiles) add({"--ro-bind-try", file.string(), file.string()});
  // The terminal that we were started from is no way out: a program that holds it could type into it.
  add({"--ro-bind-try", "/dev/null", "/dev/tty"});
  if (access.gpu) {
    for (const fs::path& folder : kGpuFolders) add({"--ro-bind-try", folder.string(), folder.string()});
    for (const std::string& device : gpu_devices()) add({"--dev-bind-try", device, device});
  }
  const Paths wanted = readable(spec, access, readable_, hidden_);
  auto bind = [&](const fs::path& path) { add({"--ro-bind", path.string(), path.string()}); };
  Paths shown = kSystemFolders, covered;
  if (access.gpu) shown.insert(shown.end(), kGpuFolders.begin(), kGpuFolders.end());
  for (const fs::path& path : wanted)
    if (!inside_any(path, hidden_)) bind(path), shown.push_back(path);
  for (const fs::path& folder : hidden_)
    if (inside_any(folder, shown)) add({"--tmpfs", folder.string()}), covered.push_back(folder);
  for (const fs::path& path : wanted)
    if (inside_any(path, hidden_)) bind(path);
  for (const fs::path& path : access.write) add({"--bind", path.string(), path.string()});
  // Last: these are memory, too, and have no limit on their size.
  for (const fs::path& folder : covered) add({"--remount-ro", folder.string()});
  add({"--remount-ro", "/dev", "--remount-ro", "/", "--chdir",
       spec.cwd.empty() ? "/tmp" : spec.cwd.string()});
  std::vector<std::string> command{program_.string()};
  command.insert(command.end(), kSandboxOpening.begin(), kSandboxOpening.end());
  command.insert(command.end(), {"--args", std::to_string(kArgumentsDescriptor), "--"});
  command.insert(command.end(), spec.argv.begin(), spec.argv.end());
  spec.argv = std::move(command);
  spec.texts.emplace_back(std::move(arguments), kArgumentsDescriptor);
}

std::vector<std::string> Sandbox::landlock_command(const ProcessSpec& spec, const Access& access) const {
  std::vector<std::string> command{program_.string()};
  auto add = [&](const char* flag, const std::string& path) { command.insert(command.end(), {flag, path}); };
  Paths shown = kSystemFolders;
  shown.insert(shown.end(), kSystemFiles.begin(), kSystemFiles.end());
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    add("--device", device);
  if (access.gpu) {
    shown.insert(shown.end(), kGpuFolders.begin(), kGpuFolders.end());
    // The driver reads its settings and this process's own memory map here; another process's secrets stay
    // closed, because Landlock answers for ptrace's permissions, too.
    add("--read", "/proc");
    add("--write", "/proc/self/task");  // it names its threads there, and gives up where it cannot
    add("--write", "/dev/shm");
    for (const std::string& device : gpu_devices()) add("--device", device);
  }
  Paths given;
  for (const fs::path& path : readable(spec, access, readable_, hidden_))
    (inside_any(path, hidden_) ? given : shown).push_back(path);
  for (const fs::path& path : shown) add_without_hidden(path, hidden_, given);
  for (const fs::path& path : given) add("--read", path.string());
  for (const fs::path& path : access.write) add("--write", path.string());
  command.push_back("--");
  command.insert(command.end(), spec.argv.begin(), spec.argv.end());
  return command;
}

ProcessSpec Sandbox::confine(ProcessSpec spec, const Access& access) const {
  std::vector<std::pair<std::string, std::string>> env{
      {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"HOME", "/tmp"}};
  if (!bwrap_libraries_.empty()) env.emplace_back("LD_LIBRARY_PATH", bwrap_libraries_.string());
  if (access.gpu) env.emplace_back("CUDA_MODULE_LOADING", "EAGER");
  if (access.gpu && !visible_devices_.empty()) env.emplace_back("CUDA_VISIBLE_DEVICES", visible_devices_);
  for (const auto& [name, value] : spec.env) {
    std::erase_if(env, [&](const auto& entry) { return entry.first == name; });
    env.emplace_back(name, value);
  }
  switch (kind_) {
    case Isolation::kBubblewrap:
      use_bubblewrap(spec, access);
      break;
    case Isolation::kLandlock:
      spec.argv = landlock_command(spec, access);
      break;
    case Isolation::kNone:
      break;
  }
  spec.env = std::move(env);
  spec.inherit_env = false;
  return spec;
}

}  // namespace capstone
