#include "harness/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

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
    read = fds[0];
    write = fds[1];
    return true;
  }
  static void shut(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

// Resident bytes of every process in the group, from /proc/<pid>/statm. A fork bomb shows here as well.
std::size_t group_memory(pid_t group) {
  std::size_t total = 0;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
    const std::string name = entry.path().filename();
    if (name.empty() || name[0] < '0' || name[0] > '9') continue;
    if (::getpgid(std::stoi(name)) != group) continue;
    std::ifstream statm(entry.path() / "statm");
    std::size_t size = 0, resident = 0;
    if (statm >> size >> resident) total += resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  return total;
}

[[noreturn]] void exec_child(const ProcessSpec& spec, char* const* argv, char* const* envp, int in, int out, int err,
                             int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int failure = 0;
  report = ::fcntl(report, F_DUPFD_CLOEXEC, 180);
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
  if (!failure) {
    auto fds = spec.fds;
    // Everything but the declared descriptors and the report pipe is closed on exec.
    ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    for (auto& [from, to] : fds) from = ::fcntl(from, F_DUPFD_CLOEXEC, 200);
    for (auto& [from, to] : fds) ::dup2(from, to);
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

Result<Started> start(const ProcessSpec& spec) {
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
      return fail("program not found: " + program, path, "install it, or put it on PATH", ExitCode::kEnvironment);
    program = found->string();
  }
  std::vector<char*> argv, envp;
  argv.push_back(program.data());
  for (std::size_t i = 1; i < spec.argv.size(); ++i) argv.push_back(const_cast<char*>(spec.argv[i].c_str()));
  argv.push_back(nullptr);
  for (auto& entry : environment) envp.push_back(entry.data());
  envp.push_back(nullptr);

  Pipe in, out, err, report;
  if (!in.open() || !out.open() || !err.open() || !report.open())
    return fail(std::string("cannot open a pipe: ") + std::strerror(errno), {}, {}, ExitCode::kEnvironment);
  pid_t pid = ::fork();
  if (pid == 0) exec_child(spec, argv.data(), envp.data(), in.read, out.write, err.write, report.write);
  Pipe::shut(in.read);
  Pipe::shut(out.write);
  Pipe::shut(err.write);
  Pipe::shut(report.write);
  int failure = 0;
  ssize_t n = pid < 0 ? -1 : ::read(report.read, &failure, sizeof failure);
  Pipe::shut(report.read);
  if (pid < 0 || n == static_cast<ssize_t>(sizeof failure)) {
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    int why = pid < 0 ? errno : failure;
    Pipe::shut(in.write);
    Pipe::shut(out.read);
    Pipe::shut(err.read);
    return fail(std::string("cannot start: ") + std::strerror(why), spec.argv[0], {}, ExitCode::kEnvironment);
  }
  ::setpgid(pid, pid);  // also done by the child; whoever is first wins
  return Started{pid, in.write, out.read, err.read};
}

}  // namespace

struct Child::State {
  ProcessSpec spec;
  Started process;
  std::thread drain;
  mutable std::mutex mutex;
  std::string out, err;
  std::atomic<bool> flooded{false}, starved{false}, done{false};
  bool reaped = false;
  int wait_status = 0;
  Clock::time_point begun = Clock::now();

  void kill_group() { ::kill(-process.pid, SIGKILL); }

  void pump() {
    std::string_view input = spec.input;
    int in = process.in, out_fd = process.out, err_fd = process.err;
    if (input.empty()) Pipe::shut(in);
    else ::fcntl(in, F_SETFL, O_NONBLOCK);
    Clock::time_point checked = Clock::now();
    while (out_fd >= 0 || err_fd >= 0) {
      pollfd fds[3] = {{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}, {in, POLLOUT, 0}};
      ::poll(fds, 3, 20);
      auto take = [&](pollfd& p, int& fd, std::string& into) {
        if (fd < 0 || !(p.revents & (POLLIN | POLLHUP | POLLERR))) return;
        char buffer[1 << 16];
        ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (n <= 0) return Pipe::shut(fd);
        std::lock_guard lock(mutex);
        if (into.size() + static_cast<std::size_t>(n) > spec.max_output) {
          into.append(buffer, spec.max_output - into.size());
          flooded = true;
          kill_group();
          return;
        }
        into.append(buffer, static_cast<std::size_t>(n));
      };
      take(fds[0], out_fd, out);
      take(fds[1], err_fd, err);
      if (in >= 0 && (fds[2].revents & (POLLOUT | POLLERR | POLLHUP))) {
        ssize_t n = ::write(in, input.data(), input.size());
        if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
        if ((n < 0 && errno != EAGAIN && errno != EINTR) || input.empty()) Pipe::shut(in);
      }
      if (flooded && done) break;
      if (spec.max_memory && Clock::now() - checked > std::chrono::milliseconds(50)) {
        checked = Clock::now();
        if (group_memory(process.pid) > spec.max_memory) {
          starved = true;
          kill_group();
        }
      }
      if (done) {  // reaped: whatever a surviving grandchild still holds open is not waited for
        ::kill(-process.pid, SIGKILL);
        pollfd last[2] = {{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}};
        if (::poll(last, 2, 0) <= 0) break;
      }
    }
    Pipe::shut(in);
    Pipe::shut(out_fd);
    Pipe::shut(err_fd);
  }

  // True once the child was reaped.
  bool try_reap() {
    if (reaped) return true;
    int status = 0;
    pid_t r = ::waitpid(process.pid, &status, WNOHANG);
    if (r == process.pid || (r < 0 && errno == ECHILD)) {
      wait_status = status;
      reaped = true;
      done = true;
    }
    return reaped;
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
  CAPSTONE_TRY(Started process, capstone::start(spec));
  auto state = std::make_unique<State>();
  state->spec = spec;
  state->process = process;
  State* raw = state.get();
  state->drain = std::thread([raw] { raw->pump(); });
  return Child(std::move(state));
}

Child::~Child() {
  if (!state_) return;
  finish(std::chrono::milliseconds(0));
}

bool Child::running() { return state_ && !state_->try_reap(); }
int Child::pid() const { return state_->process.pid; }
std::string Child::err_so_far() const {
  std::lock_guard lock(state_->mutex);
  return state_->err;
}

ProcessResult Child::finish(std::chrono::milliseconds patience) {
  State& s = *state_;
  auto deadline = Clock::now() + patience;
  bool timed_out = false, stopped = false;
  while (!s.try_reap()) {
    if (g_interrupted) stopped = true;
    if (Clock::now() >= deadline) timed_out = true;
    if (stopped || timed_out) {
      s.kill_group();
      while (!s.try_reap()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  ::kill(-s.process.pid, SIGKILL);  // stragglers of the group
  if (s.drain.joinable()) s.drain.join();
  ProcessResult result;
  result.wall = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - s.begun);
  using End = ProcessResult::End;
  result.end = stopped ? End::kInterrupted
               : s.flooded ? End::kTooMuchOutput
               : s.starved ? End::kTooMuchMemory
               : timed_out ? End::kTimedOut
               : WIFSIGNALED(s.wait_status) ? End::kSignalled
                                            : End::kExited;
  result.status = WIFSIGNALED(s.wait_status) ? WTERMSIG(s.wait_status) : WEXITSTATUS(s.wait_status);
  result.out = s.out;
  result.err = s.err;
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
