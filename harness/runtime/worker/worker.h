#pragma once
// A worker process as the judge sees it: started, asked, and always accounted for.
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/base/subprocess.h"
#include "harness/runtime/sandbox/sandbox.h"
#include "harness/runtime/worker/channel.h"

namespace capstone {

/// How a request to a worker ended, when not with an answer.
struct WorkerFailure {
  enum class Kind { kReported, kDied, kTimedOut, kFlooded, kMemory, kTasks, kMalformed, kInterrupted } kind;
  std::string what;   ///< "killed by signal 11 (segmentation fault)", "no answer within 10 s", …
  std::string where;  ///< kernel, block, thread, file:line when the worker could say
  std::string hint;
  std::string report_kind;  ///< kReported: the protocol's `kind`
  std::string trace{};      ///< a Python traceback, where there is one
};

/// In the answer to a run, added by the judge's side: [s] by its own clock, where this was a first call at
/// new sizes, which may compile.
inline constexpr const char* kCompileSeconds = "compile_seconds";

/// What a packet means: the packet itself where it says "ok", kReported where it says why not, kMalformed
/// where it is no answer.
tl::expected<Packet, WorkerFailure> read_answer(Packet packet);

struct WorkerLimits {
  std::chrono::milliseconds start{20000};     ///< until it answers hello
  std::chrono::milliseconds request{10000};   ///< one run
  std::size_t memory = std::size_t{4} << 30;  ///< [B] resident, without device memory
  int tasks = 256;                            ///< processes and threads
  std::size_t output = 1u << 20;              ///< [B] of stdout, of stderr
  std::size_t file = 64u << 20;               ///< [B] a file it writes may have
};

/// What a process is given beyond the usual.
struct Surroundings {
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::filesystem::path> read;   ///< files and folders
  std::vector<std::filesystem::path> write;  ///< folders of its own
};

/// Something that runs one candidate and answers the protocol's requests: one worker process, or several
/// behind one face.
class Runner {
 public:
  virtual ~Runner() = default;
  /// Sends a request and waits for the answer; a failure that the runner reports itself is kReported.
  virtual tl::expected<Packet, WorkerFailure> ask(const Json& request, std::chrono::milliseconds timeout,
                                                  int fd = -1) = 0;
  virtual tl::expected<Packet, WorkerFailure> ask(const Json& request) = 0;
  virtual const Json& hello() const = 0;
  /// Shared objects in the memory of the candidate's process now, by name; none where its host code runs
  /// nowhere.
  virtual std::set<std::string> libraries() { return {}; }
  /// Names of the kernels that the last run launches, seen by running it once more; nothing where it cannot
  /// tell.
  virtual std::optional<std::vector<std::string>> kernels() { return std::nullopt; }
  /// What the candidate printed since the last call: printf in its kernels or in its host code.
  virtual std::string take_printed() { return {}; }
};
using StartedRunner = tl::expected<std::unique_ptr<Runner>, WorkerFailure>;

/// Owns the process and its channel. Killed, with all its children, on destruction.
class Worker : public Runner {
 public:
  /// Starts `argv` under the sandbox and waits for its hello. The failure says why it did not come.
  static tl::expected<Worker, WorkerFailure> start(std::vector<std::string> argv, const Sandbox& sandbox,
                                                   const WorkerLimits& limits, bool gpu,
                                                   const Surroundings& more = {});
  /// The same without waiting for it; greet() does.
  static tl::expected<Worker, WorkerFailure> launch(std::vector<std::string> argv, const Sandbox& sandbox,
                                                    const WorkerLimits& limits, bool gpu,
                                                    const Surroundings& more = {});
  /// A process that another one forked, and its channel; waits for its hello.
  static tl::expected<Worker, WorkerFailure> adopt(ForkedProcess process, Channel channel,
                                                   const WorkerLimits& limits);
  /// The same as start(), behind the interface.
  static StartedRunner start_runner(std::vector<std::string> argv, const Sandbox& sandbox,
                                    const WorkerLimits& limits, bool gpu, const Surroundings& more = {});

  tl::expected<Packet, WorkerFailure> ask(const Json& request, std::chrono::milliseconds timeout,
                                          int fd = -1) override;
  tl::expected<Packet, WorkerFailure> ask(const Json& request) override {
    return ask(request, limits_.request);
  }

  /// Waits for its hello. Once, before anything else is asked.
  tl::expected<void, WorkerFailure> greet();

  const Json& hello() const override { return hello_; }
  std::set<std::string> libraries() override { return child_.libraries(); }
  std::string take_printed() override { return child_.take_printed(); }
  bool running() { return child_.running(); }
  /// What the program printed to stderr, for the record.
  std::string printed() const { return child_.err_so_far(); }

 private:
  Worker(Child child, Channel channel, WorkerLimits limits)
      : child_(std::move(child)), channel_(std::move(channel)), limits_(limits) {}
  WorkerFailure explain(ChannelEnd end, std::chrono::milliseconds timeout);

  Child child_;
  Channel channel_;
  WorkerLimits limits_;
  Json hello_;
};

}  // namespace capstone
