#include "harness/runtime/python/parent.h"

#include <signal.h>

#include <utility>

namespace capstone {
namespace {

// Also as long as an import lasts, which the parent does not interrupt.
constexpr auto kFork = std::chrono::seconds(120);

WorkerFailure became_a_worker() {
  return {WorkerFailure::Kind::kReported, "it has become a worker itself", {}, {}, kCannotFork};
}

WorkerFailure no_process() {
  return {WorkerFailure::Kind::kMalformed, "the process that forks Python workers named none", {}, {}, {}};
}

}  // namespace

tl::expected<std::shared_ptr<PythonParent>, WorkerFailure> PythonParent::start(std::vector<std::string> argv,
                                                                               const Sandbox& trusted,
                                                                               const WorkerLimits& limits,
                                                                               const Surroundings& more) {
  auto process = Worker::launch(std::move(argv), trusted, limits, true, more);
  if (!process) return tl::unexpected(process.error());
  return std::shared_ptr<PythonParent>(new PythonParent(std::move(*process)));
}

tl::expected<Worker, WorkerFailure> PythonParent::fork(const std::vector<std::string>& arguments,
                                                       const WorkerLimits& limits) {
  auto channel = Channel::make();
  if (!channel)
    return tl::unexpected(
        WorkerFailure{WorkerFailure::Kind::kDied, channel.error().what, {}, channel.error().hint, {}});
  ForkedProcess forked;
  {
    const std::lock_guard lock(mutex_);
    if (!process_) return tl::unexpected(became_a_worker());
    if (!greeted_) greeted_ = process_->greet();
    if (!*greeted_) return tl::unexpected(greeted_->error());
    const Json request{{"op", "fork"}, {"arguments", arguments}, {"ended", std::exchange(ended_, {})}};
    auto answer = process_->ask(request, kFork, channel->second.get());
    if (!answer) return tl::unexpected(answer.error());
    forked.pid = static_cast<int>(answer->number("pid").value_or(0));
    if (forked.pid <= 1 || !answer->fd) return tl::unexpected(no_process());
    forked.output = answer->fd.release();
  }
  channel->second = Descriptor();  // only the child holds its end now, so that its death is seen
  forked.reap = [self = shared_from_this(), pid = forked.pid](bool wanted) {
    return self->reap(pid, wanted);
  };
  return Worker::adopt(std::move(forked), std::move(channel->first), limits);
}

tl::expected<Worker, WorkerFailure> PythonParent::become(const std::vector<std::string>& arguments) {
  const std::lock_guard lock(mutex_);
  if (!process_) return tl::unexpected(became_a_worker());
  if (auto greeted = process_->greet(); !greeted) return tl::unexpected(greeted.error());
  if (auto answer = process_->ask({{"op", "become"}, {"arguments", arguments}}, kFork); !answer)
    return tl::unexpected(answer.error());
  Worker worker = std::move(*process_);
  process_.reset();
  if (auto greeted = worker.greet(); !greeted) return tl::unexpected(greeted.error());
  return worker;
}

int PythonParent::reap(pid_t child, bool wanted) {
  const std::lock_guard lock(mutex_);
  if (!wanted) {  // the parent may be busy with an import: do not wait for it
    ended_.push_back(child);
    return SIGKILL;
  }
  if (!process_) return SIGKILL;
  auto answer = process_->ask({{"op", "reap"}, {"pid", child}}, kFork, -1);
  // Without an answer the parent is gone, and took its children along.
  return answer ? static_cast<int>(answer->number("status").value_or(SIGKILL)) : SIGKILL;
}

}  // namespace capstone
