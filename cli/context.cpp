#include "cli/context.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/base/files.h"

namespace capstone::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string user_name() {
  if (std::string user = environment("USER"); !user.empty()) return user;
  const passwd* entry = ::getpwuid(::getuid());  // cron, containers, `env -i`
  return entry ? entry->pw_name : "";
}

fs::path cache_folder(const std::string& home) {
  std::error_code code;
  if (std::string named = environment("CAPSTONE_CACHE"); !named.empty()) return fs::absolute(named, code);
  fs::path base = environment("XDG_CACHE_HOME");
  if (base.empty() && home.empty()) {  // made now, so that no other user makes it first
    fs::path own = fs::temp_directory_path(code) / ("capstone-" + std::to_string(::geteuid()));
    ::mkdir(own.c_str(), 0700);
    return fs::absolute(own, code);
  }
  if (base.empty()) base = fs::path(home) / ".cache";
  return fs::absolute(base / "capstone", code);
}

// Programs in the cache run as this user, so no other user may be able to write there.
Result<void> check_cache(const fs::path& cache) {
  struct stat entry {
  }, folder{};
  if (::lstat(cache.c_str(), &entry) != 0 || ::stat(cache.c_str(), &folder) != 0)
    return {};  // made on demand
  const auto trusted = [](uid_t owner) { return owner == ::geteuid() || owner == 0; };
  const char* hint = "programs in it would run as yours: set CAPSTONE_CACHE to a folder of your own";
  if (!trusted(entry.st_uid) || !trusted(folder.st_uid))
    return fail("the cache folder belongs to another user", cache.string(), hint, ExitCode::kEnvironment);
  if (folder.st_mode & S_IWOTH)
    return fail("every user can write to the cache folder", cache.string(),
                std::string(hint) + ", or delete this one if you do not need what is in it",
                ExitCode::kEnvironment);
  // Where new files are writable for the user's group (umask 002), the folders in it are, too.
  if ((folder.st_mode & S_IWGRP) && folder.st_uid == ::geteuid()) ::chmod(cache.c_str(), 0700);
  return {};
}

}  // namespace

workflows::ProgressSink Context::progress() const {
  return [this](const workflows::Progress& progress) {
    if (progress.kind == workflows::Progress::Kind::kStep)
      terminal.progress(progress.text);
    else
      terminal.say(progress.text);
  };
}

Result<Context> make_context() {
  std::error_code code;
  Context context;
  const fs::path executable = fs::read_symlink("/proc/self/exe", code);
  context.program = executable;
  context.home = environment("HOME");
  context.user = user_name();
  context.editor = environment("VISUAL");
  if (context.editor.empty()) context.editor = environment("EDITOR");
  context.desktop = {environment("BROWSER"),
                     !environment("DISPLAY").empty() || !environment("WAYLAND_DISPLAY").empty()};
  const fs::path cache = cache_folder(context.home);
  CAPSTONE_CHECK(check_cache(cache));
  context.state = cache / "state";
  if (std::string state = environment("XDG_STATE_HOME"); !state.empty())
    context.state = fs::path(state) / "capstone";
  const std::string path = environment("PATH");
  CAPSTONE_TRY(context.resources,
               locate_resources(executable, cache, path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path));
  if (const std::string named = environment("CAPSTONE_CUTLASS"); !named.empty())
    context.resources.cutlass = fs::absolute(named, code);
  context.resources.ignore_toolkit = !environment("CAPSTONE_IGNORE_TOOLKIT").empty();
  context.resources.isolation = environment("CAPSTONE_ISOLATION");
  if (const std::string& isolation = context.resources.isolation;
      !isolation.empty() && isolation != "bubblewrap" && isolation != "landlock" && isolation != "none")
    return fail("CAPSTONE_ISOLATION is " + isolation, {},
                "bubblewrap, landlock or none; unset it for the best that works here", ExitCode::kUsage);
  context.resources.visible_devices = environment("CUDA_VISIBLE_DEVICES");
  context.cwd = fs::current_path(code);
  if (code)
    return fail("the current folder no longer exists", {}, "cd to a folder that does", ExitCode::kUsage);
  utsname system{};
  ::uname(&system);
  context.host = system.nodename;
  context.terminal = Terminal::detect(!environment("NO_COLOR").empty());
  return context;
}

}  // namespace capstone::cli
