#include <fmt/format.h>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/course/jobs.h"
#include "harness/workflows/remote.h"
#include "templates/encode.h"

namespace capstone::workflows {
namespace {

// Exit codes of the script itself; every other code is capstone's.
constexpr int kNoFolder = 91, kNoProgram = 92, kNoTools = 93, kDied = 94, kSshItself = 255;
constexpr std::string_view kMark = "\ncapstone-result ";
constexpr std::chrono::hours kSshPatience{7 * 24};

std::string quoted(const std::string& word) { return "'" + replace_all(word, "'", "'\\''") + "'"; }

std::string folder_there(const RemoteTask& task) {
  return "${XDG_CACHE_HOME:-$HOME/.cache}/capstone/remote/" + task.id;
}

}  // namespace

// The script arrives on the standard input of a POSIX shell, so that no login shell has to quote it, and
// carries the bundle. Whoever may log in there may run code there anyway, so the bundle's problem definition
// is trusted. The judging is a process that holds `lock` while it runs and writes `exit` when it ends: a
// later script finds both.
std::string remote_script(const Destination& destination, const RemoteTask& task, const std::string& bundle) {
  std::string words;
  for (const std::string& word : task.options) words += " " + quoted(word);
  return fmt::format(R"sh(set -u
umask 077
for tool in flock setsid base64 sha256sum; do
  command -v $tool >/dev/null 2>&1 || {{ echo "error: no $tool there" >&2; exit {no_tools}; }}
done
d={folder}
mkdir -p "$d" && cd "$d" || exit {no_folder}
find .. -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {{}} + 2>/dev/null   # abandoned tasks
program={program}
case $program in "~/"*) program=$HOME/${{program#"~/"}} ;; esac
command -v "$program" >/dev/null 2>&1 || exit {no_program}
base64 -d > bundle.part <<'END' && mv bundle.part bundle || exit {no_folder}
{bundle}
END
exec 9>lock
if flock -n 9 && [ ! -f exit ]; then
  rm -f result.jsonl
  : > log
  setsid sh -c '"$@" > out 2>> log; echo $? > exit.part; mv exit.part exit' sh "$program" measure --from-bundle bundle --trust-problem --out result.jsonl{words} </dev/null >/dev/null 2>&1 &
fi
exec 9>&-
seen=0
while :; do
  over=no
  [ -f exit ] && over=yes
  now=$(wc -l < log)
  [ "$now" -le "$seen" ] || {{ sed -n "$((seen + 1)),${{now}}p" log >&2; seen=$now; }}
  [ $over = no ] || break
  if flock -n lock true; then
    sleep 1
    [ -f exit ] || exit {died}
  else
    sleep 1
  fi
done
code=$(cat exit)
if [ -f result.jsonl ]; then
  printf '\ncapstone-result %s\n' "$(sha256sum < result.jsonl | cut -d ' ' -f 1)"
  cat result.jsonl
else
  rm -f exit
fi
exit "$code"
)sh",
                     fmt::arg("no_tools", kNoTools), fmt::arg("no_folder", kNoFolder),
                     fmt::arg("no_program", kNoProgram), fmt::arg("died", kDied),
                     fmt::arg("folder", folder_there(task)), fmt::arg("program", quoted(destination.program)),
                     fmt::arg("bundle", base64(bundle)), fmt::arg("words", words));
}

namespace {

Result<ProcessSpec> ssh_spec(const Workspace& workspace, const Destination& destination, std::string script) {
  auto ssh = find_program("ssh", workspace.resources.path_variable);
  if (!ssh)
    return fail("ssh is not installed", {},
                "apt-get install openssh-client; or copy a bundle yourself: capstone measure --bundle FILE",
                ExitCode::kEnvironment);
  ProcessSpec spec;
  // Non-interactive: the script occupies standard input, so ssh cannot ask for a password.
  spec.argv = {ssh->string(),
               "-T",
               "-o",
               "BatchMode=yes",
               "-o",
               "ConnectTimeout=20",
               "-o",
               "ServerAliveInterval=15",
               destination.place,
               "sh"};
  spec.input = std::move(script);
  spec.timeout = kSshPatience;
  spec.max_output = 256u << 20;
  return spec;
}

}  // namespace

Result<std::string> result_in(const std::string& out, const std::string& host) {
  const std::size_t mark = out.find(kMark);
  const std::size_t line = mark == std::string::npos ? mark : out.find('\n', mark + kMark.size());
  if (line == std::string::npos)
    return fail("no result came from " + host, {}, "rerun the command", ExitCode::kEnvironment);
  std::string result = out.substr(line + 1);
  if (sha256_hex(result) != trim(out.substr(mark + kMark.size(), line - mark - kMark.size())))
    return fail("the result from " + host + " is incomplete", {},
                "rerun the command: the result is still there", ExitCode::kEnvironment);
  return result;
}

namespace {

Error explain(const ProcessResult& run, const Destination& destination) {
  const std::string& host = destination.place;
  const std::string words = last_words(run.err);
  if (run.end != ProcessResult::End::kExited)
    return {"the ssh connection to " + host + " ended",
            {},
            "rerun the command to resume",
            ExitCode::kEnvironment};
  switch (run.status) {
    case kSshItself:
      return {"no connection to " + host + ": " + words,
              {},
              "`ssh " + host +
                  " true` must succeed non-interactively (a key and ssh-agent, or ControlMaster in "
                  "~/.ssh/config); "
                  "the work there continues, rerun the command to resume",
              ExitCode::kEnvironment};
    case kNoFolder:
      return {"cannot make a folder on " + host + ": " + words,
              {},
              "is the disk full, or the home folder read-only?",
              ExitCode::kEnvironment};
    case kNoProgram:
      return {"no capstone on " + host + ": " + destination.program + " was not found",
              {},
              "install capstone there, or give its path: --program '~/capstone-0.2.0-x86_64/bin/capstone'",
              ExitCode::kEnvironment};
    case kNoTools:
      return {
          words + " (" + host + ")", {}, "install util-linux and coreutils there", ExitCode::kEnvironment};
    case kDied:
      return {"the judge on " + host + " ended without a result",
              {},
              "the machine may have restarted or run out of memory; rerun the command",
              ExitCode::kEnvironment};
    default:
      return {host + ": " + words,
              {},
              {},
              run.status == static_cast<int>(ExitCode::kUsage) ? ExitCode::kUsage : ExitCode::kEnvironment};
  }
}

}  // namespace

Result<std::string> judge_by_ssh(const Workspace& workspace, const Destination& destination,
                                 const RemoteTask& task, const ProgressSink& progress) {
  CAPSTONE_TRY(std::string bundle, read_file(task.folder / "bundle"));
  CAPSTONE_TRY(ProcessSpec spec, ssh_spec(workspace, destination, remote_script(destination, task, bundle)));
  report_step(progress, fmt::format("{}: sending {}", destination.place,
                                    format_bytes(static_cast<double>(bundle.size()))));
  ProcessResult run{};
  JobEvents events;
  events.starting = [](std::size_t, int, ProcessSpec&) {};
  events.finished = [&](std::size_t, const ProcessResult& result) { run = result; };
  events.running = [&](const std::vector<RunningJob>& running) {
    if (!running.empty() && !running[0].last_line.empty())
      report_step(progress, destination.place + ": " + to_utf8(running[0].last_line));
  };
  auto waited = run_jobs({{task.id, spec}}, 1, events);
  if (!waited && interrupted())
    report_note(progress, "the work on " + destination.place + " continues; rerun the command to resume");
  if (!waited) return fail(waited.error());
  if (run.out.find(kMark) == std::string::npos) return fail(explain(run, destination));
  return result_in(run.out, destination.place);
}

void forget_over_ssh(const Workspace& workspace, const Destination& destination, const RemoteTask& task,
                     const ProgressSink& progress) {
  auto spec = ssh_spec(workspace, destination, "rm -rf \"" + folder_there(task) + "\"\n");
  if (spec) spec->timeout = std::chrono::seconds(30);
  auto run = spec ? run_process(*spec) : Result<ProcessResult>(fail(spec.error()));
  if (!run || !run->ok())
    report_note(progress, fmt::format("note: cannot remove {} on {}; it is no longer needed",
                                      folder_there(task), destination.place));
}

}  // namespace capstone::workflows
