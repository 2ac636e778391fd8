#include "cli/context.h"

#include <pwd.h>
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
  if (base.empty()) base = home.empty() ? fs::temp_directory_path(code) : fs::path(home) / ".cache";
  return fs::absolute(base / "capstone", code);
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
  const fs::path cache = cache_folder(context.home);
  context.state = cache / "state";
  if (std::string state = environment("XDG_STATE_HOME"); !state.empty())
    context.state = fs::path(state) / "capstone";
  const std::string path = environment("PATH");
  CAPSTONE_TRY(context.resources,
               locate_resources(executable, cache, path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path));
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
