#include "harness/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include "harness/base/memory_group.h"
#include "harness/base/process_tree.h"
#include "harness/base/text.h"

extern char** environ;

namespace capstone {
namespace {

using Clock = std::chrono::steady_clock;
std::atomic<bool> g_interrupted{false};

struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return false;
    read = above_standard(fds[0]);
    write = above_standard(fds[1]);
    return read >= 0 && write >= 0;
  }
  // If this process has no standard input (cron), we would get 0, 1 or 2 here, which the child needs for its
  // own streams.
  static int above_standard(int fd) {
    if (fd > 2) return fd;
    int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    ::close(fd);
    return moved;
  }
  static void shut(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

// Descriptors from this number on do not collide with the numbers that the child will see.
constexpr int kHighDescriptor = 200;

// Gives the child its declared descriptors and closes all others on exec. Returns errno; 0 on success.
int arrange_descriptors(std::vector<std::pair<int, int>> fds) {
  ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  // First move all of them out of the way: the number of one descriptor in the child may be another's number
  // here.
  for (auto& [from, to] : fds)
    if ((from = ::fcntl(from, F_DUPFD_CLOEXEC, kHighDescriptor)) < 0) return errno;
  for (auto& [from, to] : fds)
    if (::dup2(from, to) < 0) return errno;
  return 0;
}

// A file in memory that is read from its beginning.
Descriptor file_of(const std::string& text) {
  Descriptor file(::memfd_create("capstone-text", MFD_CLOEXEC));
  if (file && (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
               ::lseek(file.get(), 0, SEEK_SET) != 0))
    return {};
  return file;
}

[[noreturn]] void exec_child(const ProcessSpec& spec, const std::vector<std::pair<int, int>>& fds,
                             char* const* argv, char* const* envp, int in, int out, int err, int report,
                             pid_t parent, int memory_group) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before PR_SET_PDEATHSIG took effect
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans stay its descendants, where ProcessTree finds them
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int failure = 0;
  if (int high = ::fcntl(report, F_DUPFD_CLOEXEC, kHighDescriptor); high >= 0) report = high;
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  if (!spec.cwd.empty() && ::chdir(spec.cwd.c_str()) != 0) failure = errno;
  rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (spec.max_file) {
    rlimit file{spec.max_file, spec.max_file};
    ::setrlimit(RLIMIT_FSIZE, &file);
  }
  // 4 is two fifths of the share of others. With 10, a tenth, compilers ran into their time limits on a
  // machine that four other processes keep busy.
  if (spec.yields) ::setpriority(PRIO_PROCESS, 0, 4);
  if (memory_group >= 0 && ::write(memory_group, "0", 1) != 1) failure = errno;
  if (!failure) failure = arrange_descriptors(fds);
  if (!failure) {
    ::execve(argv[0], argv, envp);
    failure = errno;
  }
  [[maybe_unused]] ssize_t n = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

struct Started {
  pid_t pid = -1;
  int in = -1, out = -1, err = -1;
};

Result<Started> start(const ProcessSpec& spec, int memory_group) {
  if (spec.argv.empty()) return fail("no program to run", {}, {}, ExitCode::kInternal);
  std::vector<std::string> environment;
  if (spec.inherit_env)
    for (char** e = environ; *e; ++e) {
      std::string_view entry = *e;
      bool replaced = false;
      for (auto& [key, value] : spec.env) replaced |= entry.starts_with(key + "=");
      if (!replaced) environment.emplace_back(entry);
    }
  for (auto& [key, value] : spec.env) environment.push_back(key + "=" + value);
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  for (auto& entry : environment)
    if (entry.starts_with("PATH=")) path = entry.substr(5);
  std::string program = spec.argv[0];
  if (program.find('/') == std::string::npos) {
    auto found = find_program(program, path);
    if (!found)
      return fail("program not found: " + program, path, "install it, or put it on PATH",
                  ExitCode::kEnvironment);
    program = found->string();
  }
  std::vector<char*> argv, envp;
  argv.push_back(program.data());
  for (std::size_t i = 1; i < spec.argv.size(); ++i) argv.push_back(const_cast<char*>(spec.argv[i].c_str()));
  argv.push_back(nullptr);
  for (auto& entry : environment) envp.push_back(entry.data());
  envp.push_back(nullptr);

  std::vector<Descriptor> files;
  std::vector<std::pair<int, int>> fds = spec.fds;
  for (const auto& [text, number] : spec.texts) {
    files.push_back(file_of(text));
    if (!files.back())
      return fail(std::string("cannot hand a text to a process: ") + std::strerror(errno), spec.argv[0], {},
                  ExitCode::kEnvironment);
    fds.emplace_back(files.back().get(), number);
  }
  Pipe in, out, err, report;
  if (!in.open() || !out.open() || !err.open() || !report.open())
    return fail(std::string("cannot open a pipe: ") + std::strerror(errno), {}, {}, ExitCode::kEnvironment);
  const pid_t parent = ::getpid();
  pid_t pid = ::fork();
  const int fork_errno = errno;
  if (pid == 0)
    exec_child(spec, fds, argv.data(), envp.data(), in.read, out.write, err.write, report.write, parent,
               memory_group);
  Pipe::shut(in.read);
  Pipe::shut(out.write);
  Pipe::shut(err.write);
  Pipe::shut(report.write);
  int failure = 0;
  ssize_t n = -1;
  if (pid > 0) do
      n = ::read(report.read, &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
  Pipe::shut(report.read);
  if (pid < 0 || n == static_cast<ssize_t>(sizeof failure)) {
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    int why = pid < 0 ? fork_errno : failure;
    Pipe::shut(in.write);
    Pipe::shut(out.read);
    Pipe::shut(err.read);
    return fail(std::string("cannot start: ") + std::strerror(why), spec.argv[0], {}, ExitCode::kEnvironment);
  }
  ::setpgid(pid, pid);  // the child also calls it; the first call wins
  return Started{pid, in.write, out.read, err.read};
}

}  // namespace

// How often a child's memory and processes are checked.
constexpr std::chrono::milliseconds kLookInterval{50};

struct Child::State {
  ProcessSpec spec;
  Started process;
  std::thread drain;
  mutable std::mutex mutex;
  std::string out, err;
  std::size_t out_taken = 0, err_taken = 0;  // by take_printed()
  std::atomic<bool> flooded{false}, starved{false}, crowded{false}, done{false};
  bool reaped = false;
  int wait_status = 0;
  std::optional<ProcessResult> result;
  Clock::time_point begun = Clock::now();

  std::optional<ProcessTree> tree;          // set when the child runs
  std::optional<MemoryGroup> group;         // set where the kernel counts memory, too
  std::function<int(bool)> reap_elsewhere;  // set where another process forked it
  std::atomic<bool> killed{false};
  int handle = -1;  // of the child, readable when it has ended; set where this process forked it

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { Pipe::shut(handle); }

  void kill_all() {
    killed = true;
    tree->kill();
  }

  bool ended() const {
    if (reap_elsewhere) return tree->ended();
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
  }

  // Returns when the child has ended, and after a moment in any case: somebody may have interrupted.
  void await_end() const {
    constexpr int kPatience = 10;  // [ms]
    pollfd end{handle, POLLIN, 0};
    if (handle < 0)
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    else
      ::poll(&end, 1, kPatience);
  }

  // Appends the available data to `into`; closes `fd` at end of file.
  void take(const pollfd& ready, int& fd, std::string& into) {
    if (fd < 0 || !(ready.revents & (POLLIN | POLLHUP | POLLERR))) return;
    char buffer[1 << 16];
    std::lock_guard lock(mutex);
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) return Pipe::shut(fd);
    const std::size_t room = spec.max_output - into.size();
    into.append(buffer, std::min(room, static_cast<std::size_t>(n)));
    if (static_cast<std::size_t>(n) <= room) return;
    flooded = true;
    kill_all();
  }

  bool pipes_hold_something() const {
    std::lock_guard lock(mutex);
    for (const int fd : {process.out, process.err}) {
      int bytes = 0;
      if (fd >= 0 && ::ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0) return true;
    }
    return false;
  }

  static void give(const pollfd& ready, int& fd, std::string_view& input) {
    if (fd < 0 || !(ready.revents & (POLLOUT | POLLERR | POLLHUP))) return;
    ssize_t n = ::write(fd, input.data(), input.size());
    if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || input.empty()) Pipe::shut(fd);
  }

  void check_limits(Clock::time_point& checked) {
    if ((!spec.max_memory && !spec.max_tasks) || done || Clock::now() - checked < kLookInterval) return;
    checked = Clock::now();
    const ProcessTree::Usage usage = tree->look();
    starved = starved || (spec.max_memory && usage.memory > spec.max_memory);
    crowded = crowded || (spec.max_tasks && usage.tasks > spec.max_tasks);
    if (starved || crowded) kill_all();
  }

  void pump() {
    // A child that ends without reading its input must not end this process (SIGPIPE).
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    std::string_view input = spec.input;
    int in = process.in;
    int &out_fd = process.out, &err_fd = process.err;
    if (input.empty())
      Pipe::shut(in);
    else
      ::fcntl(in, F_SETFL, O_NONBLOCK);
    Clock::time_point checked = Clock::now();
    // Until the child is reaped, even if it closes its output: its memory must still be checked.
    for (;;) {
      const bool last_round = done;
      pollfd fds[3] = {{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}, {in, POLLOUT, 0}};
      // A child that has closed its output is usually about to end, and its end is waited for.
      const int patience = out_fd < 0 && err_fd < 0 ? 1 : 20;  // [ms]
      const int ready = ::poll(fds, 3, last_round ? 0 : patience);
      take(fds[0], out_fd, out);
      take(fds[1], err_fd, err);
      give(fds[2], in, input);
      check_limits(checked);
      // The child was reaped: read what is in the pipes, but do not wait for a surviving process that holds
      // them open.
      const bool readable = (fds[0].revents | fds[1].revents) & POLLIN;
      if (last_round && (ready <= 0 || !readable || flooded)) break;
    }
    Pipe::shut(in);
    Pipe::shut(out_fd);
    Pipe::shut(err_fd);
  }

  // True when the child was reaped. The rest of its group is killed before: as long as the child is not
  // reaped, no other process can get its number.
  bool try_reap() {
    if (reaped) return true;
    if (!ended()) return false;
    const bool by_itself = !killed;
    kill_all();
    int status = 0;
    if (reap_elsewhere)
      status = reap_elsewhere(by_itself);
    else
      while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
      }
    wait_status = status;
    starved = starved || (group && group->exhausted());
    reaped = true;
    done = true;
    return true;
  }
};

Child::Child(std::unique_ptr<State> state) : state_(std::move(state)) {}
Child::Child(Child&&) noexcept = default;
Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    Child dying(std::move(*this));
    state_ = std::move(other.state_);
  }
  return *this;
}

Result<Child> Child::start(const ProcessSpec& spec) {
  auto state = std::make_unique<State>();
  state->spec = spec;
  State* raw = state.get();
  std::promise<Result<Started>> promise;
  auto started = promise.get_future();
  // The draining thread starts the child: a child dies with the *thread* that forked it (PR_SET_PDEATHSIG),
  // and this thread lives exactly as long as the child, whichever thread holds the handle.
  state->drain = std::thread([raw, promise = std::move(promise)]() mutable {
    if (raw->spec.max_memory)
      raw->group = MemoryGroup::create(MemoryGroup::delegated(), raw->spec.max_memory);
    Result<Started> process = capstone::start(raw->spec, raw->group ? raw->group->entrance() : -1);
    if (process) {
      raw->process = *process;
      raw->tree.emplace(process->pid);
      raw->handle = Pipe::above_standard(static_cast<int>(::syscall(SYS_pidfd_open, process->pid, 0)));
    }
    const bool runs = process.has_value();
    promise.set_value(std::move(process));
    if (runs) raw->pump();
  });
  if (Result<Started> process = started.get(); !process) {
    state->drain.join();
    return fail(process.error());
  }
  return Child(std::move(state));
}

Child Child::adopt(ForkedProcess process, const ProcessSpec& spec) {
  auto state = std::make_unique<State>();
  state->spec = spec;
  state->process = {process.pid, -1, -1, process.output};
  state->tree.emplace(process.pid);
  state->reap_elsewhere = std::move(process.reap);
  state->drain = std::thread([raw = state.get()] { raw->pump(); });
  return Child(std::move(state));
}

Child::~Child() {
  if (!state_) return;
  finish(std::chrono::milliseconds(0));
}

bool Child::running() { return state_ && !state_->try_reap(); }
int Child::pid() const { return state_->process.pid; }
std::set<std::string> Child::libraries() {
  return state_->tree ? state_->tree->libraries() : std::set<std::string>();
}
std::string Child::take_printed() {
  State& s = *state_;
  constexpr int kLooks = 20;  // a thread reads the pipes: it may be a moment behind
  for (int look = 0; look < kLooks && s.pipes_hold_something(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::lock_guard lock(s.mutex);
  std::string text = s.out.substr(s.out_taken) + s.err.substr(s.err_taken);
  s.out_taken = s.out.size();
  s.err_taken = s.err.size();
  return text;
}
std::string Child::err_so_far() const {
  std::lock_guard lock(state_->mutex);
  return state_->err;
}

ProcessResult Child::finish(std::chrono::milliseconds patience) {
  State& s = *state_;
  if (s.result) return *s.result;
  auto deadline = Clock::now() + patience;
  bool timed_out = false, stopped = false;
  while (!s.try_reap()) {
    if (g_interrupted) stopped = true;
    if (Clock::now() >= deadline) timed_out = true;
    if (stopped || timed_out) {
      s.kill_all();
      while (!s.try_reap()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      break;
    }
    s.await_end();
  }
  if (s.drain.joinable()) s.drain.join();
  ProcessResult result;
  result.wall = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - s.begun);
  using End = ProcessResult::End;
  result.end = stopped                      ? End::kInterrupted
               : s.flooded                  ? End::kTooMuchOutput
               : s.starved                  ? End::kTooMuchMemory
               : s.crowded                  ? End::kTooManyTasks
               : timed_out                  ? End::kTimedOut
               : WIFSIGNALED(s.wait_status) ? End::kSignalled
                                            : End::kExited;
  result.status = WIFSIGNALED(s.wait_status) ? WTERMSIG(s.wait_status) : WEXITSTATUS(s.wait_status);
  result.out = s.out;
  result.err = s.err;
  s.result = result;
  return result;
}

Result<ProcessResult> run_process(const ProcessSpec& spec) {
  CAPSTONE_TRY(Child child, Child::start(spec));
  return child.finish(spec.timeout);
}

void request_interrupt() { g_interrupted = true; }
bool interrupted() { return g_interrupted; }

std::optional<std::filesystem::path> find_program(const std::string& name, const std::string& path_variable) {
  for (const std::string& folder : split(path_variable, ':')) {
    if (folder.empty()) continue;
    std::filesystem::path candidate = std::filesystem::path(folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate)) return candidate;
  }
  return std::nullopt;
}

}  // namespace capstone
