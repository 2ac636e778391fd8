#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

/// How to start a child process. The child gets its own process group. The group and all descendants are
/// killed when the child ends, at a limit, and when the handle is destroyed; the child itself also when this
/// process dies.
struct ProcessSpec {
  std::vector<std::string> argv;  ///< argv[0] is looked up on PATH when it has no slash
  std::vector<std::pair<std::string, std::string>> env;  ///< the whole environment, unless inherit_env
  bool inherit_env = true;    ///< true: add `env` to our environment; false: replace it
  std::filesystem::path cwd;  ///< empty: the current directory
  std::string input;          ///< bytes for standard input, followed by end of file
  std::chrono::milliseconds timeout{60000};
  std::size_t max_output = 8u << 20;     ///< [B] of stdout and of stderr, each; more output kills the
                                         ///< group
  std::vector<std::pair<int, int>> fds;  ///< (our number, number in the child); all others are closed
  std::vector<std::pair<std::string, int>> texts;  ///< (bytes, number in the child) to be read from there
  std::size_t max_memory = 0;  ///< [B] of the child and its descendants; polled, and counted by
                               ///< the kernel where it can be (MemoryGroup); 0: unlimited
  int max_tasks = 0;           ///< processes and threads of the child and its descendants,
                               ///< polled; 0: unlimited
  std::size_t max_file = 0;    ///< [B] RLIMIT_FSIZE; 0: unlimited
  bool yields = false;         ///< runs at a lower priority: the user waits for something else first
};

/// How a child ended.
struct ProcessResult {
  enum class End {
    kExited,
    kSignalled,
    kTimedOut,
    kTooMuchOutput,
    kTooMuchMemory,
    kTooManyTasks,
    kInterrupted
  } end;
  int status = 0;        ///< exit code, or signal number when kSignalled
  std::string out, err;  ///< captured, cut at max_output
  std::chrono::milliseconds wall{0};
  bool ok() const { return end == End::kExited && status == 0; }
};

/// Runs a child to its end. @error the program does not exist or cannot be started.
Result<ProcessResult> run_process(const ProcessSpec& spec);

/// A process that another process forked for this one. It leads its own process group, adopts orphans
/// (PR_SET_CHILD_SUBREAPER) and dies with the process that forked it.
struct ForkedProcess {
  int pid = -1;
  int output = -1;  ///< the end to read of the pipe that its stdout and stderr go to; owned
  /// Has it reaped; only then another process can get its number. Called once, after it has ended.
  /// `wanted`: whether the wait status that it returns is looked at.
  std::function<int(bool wanted)> reap;
};

/// A running child that is used over a channel (see harness/runtime/worker/channel.h).
class Child {
 public:
  /// A thread drains stdout and stderr into bounded buffers; `timeout` is not used.
  static Result<Child> start(const ProcessSpec& spec);
  /// Of `spec`, the limits of output, memory and tasks are used.
  static Child adopt(ForkedProcess process, const ProcessSpec& spec);
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  ~Child();  ///< kills the process group

  /// Blocks until the child ends or the timeout expires; then kills it. Safe to call twice.
  ProcessResult finish(std::chrono::milliseconds patience);
  bool running();
  int pid() const;
  /// See ProcessTree.
  std::set<std::string> libraries();
  /// The child's stderr so far.
  std::string err_so_far() const;
  /// What the child printed since the last call, stdout before stderr.
  std::string take_printed();

 private:
  struct State;
  explicit Child(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Set by the command line's SIGINT handler: every running child is killed and every wait ends with
/// kInterrupted.
void request_interrupt();
bool interrupted();

/// The full path of a program on PATH, if it exists.
std::optional<std::filesystem::path> find_program(const std::string& name, const std::string& path_variable);

}  // namespace capstone
