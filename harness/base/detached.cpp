#include "harness/base/detached.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

extern char** environ;

namespace capstone {
namespace {

// The child's settings for posix_spawn.
struct Settings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Settings() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
    sigset_t ignored;  // we ignore these; a program expects their usual meaning
    ::sigemptyset(&ignored);
    ::sigaddset(&ignored, SIGPIPE);
    ::sigaddset(&ignored, SIGXFSZ);
    ::posix_spawnattr_setsigdefault(&attributes, &ignored);
  }
  ~Settings() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
};

}  // namespace

Result<void> start_detached(const std::vector<std::string>& argv, std::chrono::milliseconds patience) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const Settings settings;
  pid_t pid = -1;
  if (const int problem =
          ::posix_spawn(&pid, words[0], &settings.files, &settings.attributes, words.data(), environ))
    return fail(std::string("cannot start this program: ") + std::strerror(problem), argv[0], {},
                ExitCode::kEnvironment);
  const auto end = std::chrono::steady_clock::now() + patience;
  for (int status = 0; std::chrono::steady_clock::now() < end;) {
    if (::waitpid(pid, &status, WNOHANG) == pid)
      return status == 0
                 ? Result<void>()
                 : fail(WIFEXITED(status)
                            ? "this program ended with exit code " + std::to_string(WEXITSTATUS(status))
                            : "this program was killed by signal " + std::to_string(WTERMSIG(status)),
                        argv[0], {}, ExitCode::kEnvironment);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

}  // namespace capstone
