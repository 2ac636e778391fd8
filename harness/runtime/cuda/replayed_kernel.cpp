#include "harness/runtime/cuda/replayed_kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace capstone {
namespace {

constexpr auto kSetUp = std::chrono::seconds(60);

tl::expected<std::vector<std::byte>, std::string> read_packet(const Packet& answer) {
  auto bytes = answer.message.find("bytes");
  if (!answer.fd || bytes == answer.message.end() || !bytes->is_number_unsigned()) return tl::unexpected(std::string("it sent none"));
  const auto size = bytes->get<std::size_t>();
  if (size < 8 || size > (std::size_t{512} << 20)) return tl::unexpected(std::string("its size makes no sense"));
  // read(), not mmap(): the file is the submission's, which may cut it while we look.
  std::vector<std::byte> packet(size);
  for (std::size_t at = 0; at < size;) {
    ssize_t n = ::pread(answer.fd.get(), packet.data() + at, size - at, static_cast<off_t>(at));
    if (n <= 0) return tl::unexpected(std::string("it is shorter than it says"));
    at += static_cast<std::size_t>(n);
  }
  return packet;
}

Descriptor memory_with(std::span<const std::byte> bytes) {
  Descriptor fd(::memfd_create("capstone-packet", MFD_CLOEXEC));
  for (std::size_t at = 0; fd && at < bytes.size();) {
    ssize_t n = ::write(fd.get(), bytes.data() + at, bytes.size() - at);
    if (n <= 0) return {};
    at += static_cast<std::size_t>(n);
  }
  return fd;
}

WorkerFailure our_fault(std::string what) {
  return {WorkerFailure::Kind::kReported, std::move(what), {}, "run `capstone doctor`", "exception"};
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) != 0) bits = 0x9e3779b97f4a7c15ull;
  return bits;
}

// What a recorder is asked.
Json question(const std::string& what, const Json& request) {
  Json wanted{{"op", "record"}, {"what", what}, {"args", request.at("args")}};
  for (const char* key : {"workspace", "prepared"})
    if (auto at = request.find(key); at != request.end()) wanted[key] = *at;
  return wanted;
}

}  // namespace

class SealedRunner : public Runner {
 public:
  SealedRunner(std::shared_ptr<SealedKernel> kernel, std::unique_ptr<Runner> launcher)
      : kernel_(std::move(kernel)), launcher_(std::move(launcher)) {}

  const Json& hello() const override { return launcher_->hello(); }
  tl::expected<Packet, WorkerFailure> ask(const Json& request) override { return ask(request, std::chrono::seconds(10), -1); }

  tl::expected<Packet, WorkerFailure> ask(const Json& request, std::chrono::milliseconds timeout, int fd) override {
    const std::string op = request.value("op", "");
    if (op == "workspace" || op == "prepared") {
      auto recorder = kernel_->recorder();
      if (!recorder) return tl::unexpected(recorder.error());
      return (*recorder)->ask(request, timeout);
    }
    if (op == "arena") {
      arena_bytes_ = request.value("bytes", std::size_t{0});
      loaded_.clear();  // a plan's addresses were checked against the arena of its time
      return launcher_->ask(request, timeout, fd);
    }
    if (op != "run" && op != "prepare") return launcher_->ask(request, timeout, fd);
    auto id = loaded(request);
    if (!id) return tl::unexpected(id.error());
    Json play{{"op", "run"}, {"plan", *id}};
    for (const char* key : {"repeat", "hide_ns"})
      if (auto at = request.find(key); at != request.end()) play[key] = *at;
    return launcher_->ask(play, timeout);
  }

 private:
  // The launcher's number for the plan of this request; recorded and handed over if it is new.
  tl::expected<int, WorkerFailure> loaded(const Json& request) {
    const Json wanted = question(request["op"], request);
    const std::string key = wanted.dump();
    if (auto known = loaded_.find(key); known != loaded_.end()) return known->second;
    auto plan = kernel_->plan(key, wanted, arena_bytes_);
    if (!plan) return tl::unexpected(plan.error());
    const std::vector<std::byte> packet = plan_packet((*plan)->document, (*plan)->data);
    Descriptor memory = memory_with(packet);
    if (!memory) return tl::unexpected(our_fault("no memory for a launch plan"));
    auto taken = launcher_->ask({{"op", "plan"}, {"plan", next_}, {"bytes", packet.size()}, {"seed", random_bits()}}, kSetUp, memory.get());
    if (!taken) return tl::unexpected(taken.error());
    if (auto foreign = taken->message.find("foreign"); foreign != taken->message.end())
      return tl::unexpected(kernel_->refuse(foreign->get<std::string>()));
    return loaded_[key] = next_++;
  }

  std::shared_ptr<SealedKernel> kernel_;
  std::unique_ptr<Runner> launcher_;
  std::size_t arena_bytes_ = 0;
  std::map<std::string, int> loaded_;
  int next_ = 0;
};

WorkerFailure SealedKernel::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = why;
  return {WorkerFailure::Kind::kReported, "cannot be sealed: " + std::move(why), {}, "measure with --tier host", kNotSealed};
}

tl::expected<Runner*, WorkerFailure> SealedKernel::recorder() {
  if (!recorder_) {
    auto started = programs_.recorder();
    if (!started) return tl::unexpected(started.error());
    recorder_ = std::move(*started);
  }
  return recorder_.get();
}

tl::expected<const Plan*, WorkerFailure> SealedKernel::plan(const std::string& key, const Json& request, std::size_t arena_bytes) {
  if (auto known = plans_.find(key); known != plans_.end()) return &known->second;
  auto recorder = this->recorder();
  if (!recorder) return tl::unexpected(recorder.error());
  auto mapped = (*recorder)->ask({{"op", "arena"}, {"bytes", arena_bytes}}, kSetUp);
  if (!mapped) return tl::unexpected(mapped.error());
  auto answer = (*recorder)->ask(request);
  if (!keep_recorder_) recorder_.reset();
  if (!answer) return tl::unexpected(answer.error());
  if (auto sealed = answer->message.find("sealed"); sealed == answer->message.end() || *sealed != true) {
    auto because = answer->message.find("because");
    return tl::unexpected(refuse(because != answer->message.end() && because->is_string() ? because->get<std::string>().substr(0, 300)
                                                                                          : "the recorder gave no plan"));
  }
  auto packet = read_packet(*answer);
  if (!packet) return tl::unexpected(refuse("the recorder's plan cannot be read: " + packet.error()));
  PlanLimits limits;
  limits.arena_bytes = arena_bytes;
  auto plan = read_plan(*packet, limits);
  if (!plan) return tl::unexpected(refuse("the recorder's plan is not valid: " + plan.error()));
  notes_.insert(plan->notes.begin(), plan->notes.end());
  launched_.insert(plan->kernels.begin(), plan->kernels.end());
  return &plans_.emplace(key, std::move(*plan)).first->second;
}

tl::expected<const Plan*, WorkerFailure> SealedKernel::record(const std::string& what, const Json& request, std::size_t arena_bytes) {
  const Json wanted = question(what, request);
  return plan(wanted.dump(), wanted, arena_bytes);
}

StartedRunner SealedKernel::start(const std::shared_ptr<SealedKernel>& self) {
  auto launcher = programs_.launcher();
  if (!launcher) return launcher;
  Descriptor memory = memory_with(device_code_);
  if (!memory) return tl::unexpected(our_fault("no memory for the device code"));
  auto taken = (*launcher)->ask({{"op", "module"}, {"bytes", device_code_.size()}}, kSetUp, memory.get());
  if (!taken) return tl::unexpected(taken.error());
  std::lock_guard lock(self->starting_);
  if (auto names = taken->message.find("functions"); names != taken->message.end() && names->is_array())
    for (const Json& name : *names)
      if (name.is_string()) defined_.insert(name.get<std::string>());
  return std::make_unique<SealedRunner>(self, std::move(*launcher));
}

}  // namespace capstone
