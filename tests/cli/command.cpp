#include "tests/cli/command.h"

#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace capstone::cli_test {
namespace {

// The tester's own settings must not reach the command.
bool ours_to_set(std::string_view entry) {
  for (std::string_view name : {"NO_COLOR=", "HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "CAPSTONE_"})
    if (entry.starts_with(name)) return true;
  return false;
}

}  // namespace

std::string processes_left() {
  std::string text;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("/proc", code)) {
    std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat = slurp(entry.path() / "stat");
    std::size_t end = stat.rfind(')');
    if (end == std::string::npos) continue;
    char state = 0;
    int parent = 0;
    std::istringstream(stat.substr(end + 1)) >> state >> parent;
    if (parent == ::getpid() && state != 'Z') text += stat.substr(0, end + 1) + "\n";
  }
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
  return stream << "exit code " << outcome.code << "\n--- stdout\n"
                << outcome.out << "--- stderr\n"
                << outcome.err;
}

::testing::AssertionResult says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "nowhere `" << part << "` in:\n" << text;
}

std::string without_own(std::string text) {
  for (const char* own : {"\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[1m", "\x1b[0m", "\r\x1b[2K"})
    for (std::size_t at = text.find(own); at != text.npos; at = text.find(own, at))
      text.erase(at, std::string(own).size());
  return text;
}

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // a process that ends while its file in /proc is read is no exception: the text ends
                         // there
  return text.str();
}

void spit(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
}

std::string kernel(const std::string& before, const std::string& body) {
  return "#include <cuda_runtime.h>\n#include <cstdint>\n" + before +
         "\nextern \"C\" void launch(const float* x, const float* residual, const float* bias, const float* "
         "gamma, const float* beta, "
         "float* y, float eps, int64_t rows, int64_t cols, void* workspace, cudaStream_t stream) {\n" +
         body + "\n}\n";
}

std::string endless_kernel() {
  return kernel("__global__ void spin(float* y) { volatile int i = 0; while (true) i = i + 1; }",
                "  spin<<<1, 32, 0, stream>>>(y);");
}

void CliTest::SetUp() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::string pattern = (fs::temp_directory_path() / "capstone-cli-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  home_ = fs::canonical(pattern);
}

void CliTest::TearDown() {
  // Killed orphans need a moment to be reaped; a living one does not go away by itself.
  std::string left;
  for (int i = 0; i < 1000; ++i) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    left = processes_left();
    if (left.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(left, "") << "processes were left behind";
  std::error_code code;
  fs::remove_all(home_, code);
}

ProcessSpec CliTest::spec(std::vector<std::string> arguments, const How& how) const {
  ProcessSpec spec;
  spec.argv = std::move(arguments);
  spec.argv.insert(spec.argv.begin(), CAPSTONE_BINARY);
  spec.inherit_env = false;
  std::vector<std::pair<std::string, std::string>> all{{"HOME", (home_ / "home").string()},
                                                       {"XDG_STATE_HOME", (home_ / "state").string()},
                                                       {"CAPSTONE_CACHE", CAPSTONE_TEST_CACHE}};
  for (char** entry = environ; *entry; ++entry) {
    std::string text = *entry;
    std::size_t cut = text.find('=');
    if (cut != std::string::npos && !ours_to_set(text))
      all.emplace_back(text.substr(0, cut), text.substr(cut + 1));
  }
  for (const auto& [name, value] : how.env)
    std::erase_if(all, [&](const auto& one) { return one.first == name; });
  all.insert(all.end(), how.env.begin(), how.env.end());
  spec.env = std::move(all);
  spec.cwd = how.cwd.empty() ? home_ : how.cwd;
  spec.input = how.input;
  spec.timeout = how.patience;
  spec.max_file = how.max_file;
  return spec;
}

namespace {

Outcome outcome_of(const Result<ProcessResult>& result) {
  Outcome outcome;
  if (!result) {
    outcome.err = render(result.error());
    return outcome;
  }
  if (result->end == ProcessResult::End::kExited) outcome.code = result->status;
  outcome.out = result->out;
  outcome.err = result->err;
  outcome.seconds = std::chrono::duration<double>(result->wall).count();
  return outcome;
}

}  // namespace

Outcome CliTest::capstone(std::vector<std::string> arguments, const How& how) const {
  return outcome_of(run_process(spec(std::move(arguments), how)));
}

std::string CliTest::on_terminal(std::vector<std::string> arguments, int columns, int rows,
                                 const How& how) const {
  const ProcessSpec wanted = spec(std::move(arguments), how);
  std::vector<std::string> env;
  for (const auto& [name, value] : wanted.env) env.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (const std::string& word : wanted.argv) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : env) envp.push_back(const_cast<char*>(entry.c_str()));
  argv.push_back(nullptr), envp.push_back(nullptr);
  int terminal = -1;
  winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(columns), 0, 0};
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    if (::chdir(wanted.cwd.c_str()) == 0) ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) text.append(buffer, std::size_t(n));
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << text;
  return text;
}
Outcome CliTest::program(std::vector<std::string> argv, const How& how) const {
  ProcessSpec other = spec({}, how);
  other.argv = std::move(argv);
  return outcome_of(run_process(other));
}

Child CliTest::start(std::vector<std::string> arguments, const How& how) const {
  auto child = Child::start(spec(std::move(arguments), how));
  if (!child) throw std::runtime_error(render(child.error()));
  return std::move(*child);
}

fs::path CliTest::project(const std::string& name, const std::string& from,
                          const std::string& problem) const {
  std::vector<std::string> arguments{"init", problem, name, "--member",
                                     "Ada Lovelace <ada@example.org> (id 1815)"};
  if (!from.empty()) arguments.insert(arguments.end(), {"--from", from});
  Outcome made = capstone(arguments);
  EXPECT_EQ(made.code, 0) << made;
  return home_ / name;
}

fs::path CliTest::project_of_own_problem(const std::string& id, const std::string& name,
                                         const std::string& oracle) const {
  const fs::path definition = home_ / ("definition_of_" + name) / id,
                 problems = fs::path(CAPSTONE_BINARY).parent_path().parent_path() / "share" / "capstone" /
                            "problems";
  fs::create_directories(definition);
  fs::copy(problems / "vector_add", definition, fs::copy_options::recursive);
  std::string text = slurp(definition / "problem.yaml");
  spit(definition / "problem.yaml",
       text.replace(text.find("id: vector_add"), 14, "id: " + id) + "\n# of one's own\n");
  spit(definition / "oracle.cpp", slurp(definition / "oracle.cpp") + oracle);
  const fs::path root = project(name, {}, definition.string()),
                 like = project("like_" + name, "01", "vector_add");
  fs::copy_file(like / "human" / "kernel.cu", root / "human" / "kernel.cu",
                fs::copy_options::overwrite_existing);
  return root;
}

fs::path CliTest::project_with(const std::string& source) const {
  fs::path root = project();
  spit(root / "human" / "kernel.cu", source);
  return root;
}

Outcome CliTest::measure(const fs::path& root, std::vector<std::string> more) const {
  std::vector<std::string> arguments{"measure", "--backend", "emulated", "--hidden", "0"};
  if (std::find(more.begin(), more.end(), "--timeout") == more.end())
    arguments.insert(arguments.end(), {"--timeout", "5"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return capstone(arguments, {.cwd = root});
}

void CliTest::expect_ledger_intact(const fs::path& root) const {
  Outcome verified = capstone({"ledger", "--verify"}, {.cwd = root});
  EXPECT_EQ(verified.code, 0) << verified;
}

std::vector<Json> CliTest::records(const fs::path& root, const std::string& kind) const {
  Outcome all = capstone({"ledger", "--format", "json"}, {.cwd = root});
  EXPECT_EQ(all.code, 0) << all;
  std::vector<Json> found;
  Json parsed = Json::parse(all.out, nullptr, false);
  if (!parsed.is_array()) {
    ADD_FAILURE() << "not a JSON array: " << all;
    return found;
  }
  for (const Json& record : parsed)
    if (record.value("kind", "") == kind) found.push_back(record);
  return found;
}

bool wait_for(Child& child, const std::string& text, std::chrono::seconds patience) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (child.err_so_far().find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline || !child.running()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace capstone::cli_test
