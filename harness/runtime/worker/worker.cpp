#include "harness/runtime/worker/worker.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstring>

#include "harness/base/text.h"

namespace capstone {
namespace {

std::string signal_text(int number) {
  switch (number) {
    case SIGSEGV:
      return "a segmentation fault (SIGSEGV)";
    case SIGBUS:
      return "a bus error (SIGBUS)";
    case SIGFPE:
      return "an arithmetic fault (SIGFPE)";
    case SIGABRT:
      return "abort() (SIGABRT)";
    case SIGILL:
      return "an illegal instruction (SIGILL)";
    case SIGKILL:
      return "SIGKILL";
    case SIGXFSZ:
      return "writing a file over the size limit (SIGXFSZ)";
    default:
      return fmt::format("signal {}", number);
  }
}

std::string text_or(const Json& message, const char* key) { return printable(text_at(message, key)); }

std::string triple(const Json& message, const char* key) {
  auto it = message.find(key);
  if (it == message.end() || !it->is_array() || it->size() != 3) return {};
  std::vector<std::string> parts;
  for (const Json& value : *it) parts.push_back(value.is_number() ? value.dump() : "?");
  return "(" + join(parts, ",") + ")";
}

// kernel, launch site, block and thread, as far as the worker could tell.
std::string place(const Json& message) {
  std::vector<std::string> parts;
  std::string file = text_or(message, "file");
  if (!file.empty()) {
    auto line = message.find("line");
    parts.push_back(line != message.end() && line->is_number_integer() ? file + ":" + line->dump() : file);
  }
  if (auto kernel = text_or(message, "kernel"); !kernel.empty()) parts.push_back("kernel " + kernel);
  if (auto site = text_or(message, "launched_at"); !site.empty()) parts.push_back("launched at " + site);
  if (auto block = triple(message, "block"); !block.empty()) parts.push_back("block " + block);
  if (auto thread = triple(message, "thread"); !thread.empty()) parts.push_back("thread " + thread);
  return join(parts, ", ");
}

ProcessSpec limited(const WorkerLimits& limits) {
  ProcessSpec spec;
  spec.max_output = limits.output;
  spec.max_file = limits.file;
  spec.max_memory = limits.memory;
  spec.max_tasks = limits.tasks;
  return spec;
}

WorkerFailure malformed() {
  return {WorkerFailure::Kind::kMalformed,
          "the process answered something that is not a result",
          {},
          "a kernel must not write to descriptors that it did not open",
          {}};
}

}  // namespace

tl::expected<Packet, WorkerFailure> read_answer(Packet packet) {
  const Json& message = packet.message;
  auto ok = message.find("ok");
  if (ok == message.end() || !ok->is_boolean()) return tl::unexpected(malformed());
  if (*ok) return packet;
  return tl::unexpected(WorkerFailure{WorkerFailure::Kind::kReported, text_or(message, "message"),
                                      place(message), text_or(message, "hint"), text_or(message, "kind"),
                                      text_or(message, "traceback")});
}

tl::expected<Worker, WorkerFailure> Worker::start(std::vector<std::string> argv, const Sandbox& sandbox,
                                                  const WorkerLimits& limits, bool gpu,
                                                  const Surroundings& more) {
  auto worker = launch(std::move(argv), sandbox, limits, gpu, more);
  if (!worker) return worker;
  if (auto greeted = worker->greet(); !greeted) return tl::unexpected(greeted.error());
  return worker;
}

tl::expected<Worker, WorkerFailure> Worker::launch(std::vector<std::string> argv, const Sandbox& sandbox,
                                                   const WorkerLimits& limits, bool gpu,
                                                   const Surroundings& more) {
  using Kind = WorkerFailure::Kind;
  auto pair = Channel::make();
  if (!pair) return tl::unexpected(WorkerFailure{Kind::kDied, pair.error().what, {}, pair.error().hint, {}});
  ProcessSpec spec = limited(limits);
  spec.argv = std::move(argv);
  spec.fds = {{pair->second.get(), 3}};
  spec.env = more.env;
  auto child =
      Child::start(sandbox.confine(std::move(spec), {.read = more.read, .write = more.write, .gpu = gpu}));
  if (!child)
    return tl::unexpected(
        WorkerFailure{Kind::kDied, child.error().what, child.error().where, child.error().hint, {}});
  pair->second = Descriptor();  // only the child holds its end now, so that its death is seen
  return Worker(std::move(*child), std::move(pair->first), limits);
}

tl::expected<Worker, WorkerFailure> Worker::adopt(ForkedProcess process, Channel channel,
                                                  const WorkerLimits& limits) {
  Worker worker(Child::adopt(std::move(process), limited(limits)), std::move(channel), limits);
  if (auto greeted = worker.greet(); !greeted) return tl::unexpected(greeted.error());
  return worker;
}

tl::expected<void, WorkerFailure> Worker::greet() {
  auto hello = ask({{"op", "hello"}}, limits_.start);
  if (!hello) return tl::unexpected(hello.error());
  hello_ = std::move(hello->message);
  return {};
}

StartedRunner Worker::start_runner(std::vector<std::string> argv, const Sandbox& sandbox,
                                   const WorkerLimits& limits, bool gpu, const Surroundings& more) {
  auto worker = start(std::move(argv), sandbox, limits, gpu, more);
  if (!worker) return tl::unexpected(worker.error());
  return std::make_unique<Worker>(std::move(*worker));
}

tl::expected<Packet, WorkerFailure> Worker::ask(const Json& request, std::chrono::milliseconds timeout,
                                                int fd) {
  using Kind = WorkerFailure::Kind;
  // An answer to nothing would be taken for the answer to this.
  if (channel_.pending()) return tl::unexpected(explain(ChannelEnd::kMalformed, timeout));
  if (auto sent = channel_.send(request, fd, timeout); !sent)
    return tl::unexpected(explain(sent.error(), timeout));
  auto packet = channel_.receive(timeout, [this] { return child_.running(); });
  if (!packet) return tl::unexpected(explain(packet.error(), timeout));
  auto answer = read_answer(std::move(*packet));
  if (!answer && answer.error().kind == Kind::kMalformed)
    return tl::unexpected(explain(ChannelEnd::kMalformed, timeout));
  return answer;
}

WorkerFailure Worker::explain(ChannelEnd end, std::chrono::milliseconds timeout) {
  using Kind = WorkerFailure::Kind;
  if (end == ChannelEnd::kInterrupted) return {Kind::kInterrupted, "interrupted", {}, {}, {}};
  if (end == ChannelEnd::kMalformed) {
    child_.finish(std::chrono::milliseconds(0));
    return malformed();
  }
  // A process that hung up is given a moment to end by itself, so that its own reason is heard.
  ProcessResult result = child_.finish(std::chrono::milliseconds(end == ChannelEnd::kTimedOut ? 0 : 2000));
  using End = ProcessResult::End;
  if (result.end == End::kTooMuchOutput)
    return {Kind::kFlooded,
            fmt::format("it printed more than {}", format_bytes(double(limits_.output))),
            {},
            "remove the printf from the kernel",
            {}};
  if (result.end == End::kTooMuchMemory)
    return {Kind::kMemory,
            fmt::format("it took more than {} of memory", format_bytes(double(limits_.memory))),
            {},
            "free what the kernel allocates, or allocate less",
            {}};
  if (result.end == End::kTooManyTasks)
    return {Kind::kTasks,
            fmt::format("it started more than {} processes and threads", limits_.tasks),
            {},
            "launch() needs no processes of its own, and few threads",
            {}};
  if (result.end == End::kInterrupted) return {Kind::kInterrupted, "interrupted", {}, {}, {}};
  if (end == ChannelEnd::kTimedOut)
    return {Kind::kTimedOut,
            fmt::format("no answer within {} s", double(timeout.count()) / 1000),
            {},
            "an endless loop, a barrier that not every thread reaches, or far too much work: try the "
            "smallest check "
            "size first",
            {}};
  if (result.end == End::kTimedOut)
    return {Kind::kDied,
            "it closed its channel to the judge and ran on",
            {},
            "a kernel must not close descriptors that it did not open",
            {}};
  std::string said(trim(printable(result.err)));
  if (said.size() > 600) said = "… " + to_utf8(said.substr(said.size() - 600));
  // The sandbox's own process hands a signal on as a shell does: 128 + its number.
  const bool through_sandbox = result.end == End::kExited && result.status > 128 && result.status < 128 + 32;
  const bool signalled = result.end == End::kSignalled || through_sandbox;
  std::string how =
      signalled ? "the process was ended by " + signal_text(result.status - (through_sandbox ? 128 : 0))
                : fmt::format("the process ended with exit code {} before it gave a result", result.status);
  return {Kind::kDied,
          how,
          said,
          signalled ? "look for an index that leaves its array, on the host side of launch() too"
                    : "launch() must return; it must not call exit()",
          {}};
}

}  // namespace capstone
