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
  if (!answer.fd || bytes == answer.message.end() || !bytes->is_number_unsigned())
    return tl::unexpected(std::string("it sent none"));
  const auto size = bytes->get<std::size_t>();
  if (size < 8 || size > (std::size_t{512} << 20))
    return tl::unexpected(std::string("its size makes no sense"));
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

// What a capture worker is asked.
Json question(const std::string& what, const Json& request) {
  Json wanted{{"op", "record"}, {"what", what}, {"args", request.at("args")}};
  for (const char* key : {"workspace", "prepared"})
    if (auto at = request.find(key); at != request.end()) wanted[key] = *at;
  return wanted;
}

}  // namespace

class ReplayedRunner : public Runner {
 public:
  ReplayedRunner(std::shared_ptr<ReplayedKernel> kernel, std::unique_ptr<Runner> replayer)
      : kernel_(std::move(kernel)), replayer_(std::move(replayer)) {}

  const Json& hello() const override { return replayer_->hello(); }
  tl::expected<Packet, WorkerFailure> ask(const Json& request) override {
    return ask(request, std::chrono::seconds(10), -1);
  }

  tl::expected<Packet, WorkerFailure> ask(const Json& request, std::chrono::milliseconds timeout,
                                          int fd) override {
    const std::string op = request.value("op", "");
    if (op == "workspace" || op == "prepared") {
      auto capture_worker = kernel_->capture_worker();
      if (!capture_worker) return tl::unexpected(capture_worker.error());
      return (*capture_worker)->ask(request, timeout);
    }
    if (op == "arena") {
      arena_bytes_ = request.value("bytes", std::size_t{0});
      loaded_.clear();  // a captured graph's addresses were checked against the arena of its time
      return replayer_->ask(request, timeout, fd);
    }
    if (op != "run" && op != "prepare") return replayer_->ask(request, timeout, fd);
    auto id = loaded(request);
    if (!id) return tl::unexpected(id.error());
    Json play{{"op", "run"}, {"plan", *id}};
    for (const char* key : {"repeat", "hide_ns", "watch"})
      if (auto at = request.find(key); at != request.end()) play[key] = *at;
    return replayer_->ask(play, timeout);
  }

 private:
  // The replayer's number for the captured graph of this request; recorded and handed over if it is new.
  tl::expected<int, WorkerFailure> loaded(const Json& request) {
    const Json wanted = question(request["op"], request);
    const std::string key = wanted.dump();
    if (auto known = loaded_.find(key); known != loaded_.end()) return known->second;
    auto graph = kernel_->graph(key, wanted, arena_bytes_);
    if (!graph) return tl::unexpected(graph.error());
    const std::vector<std::byte> packet = graph_packet((*graph)->document, (*graph)->data);
    Descriptor memory = memory_with(packet);
    if (!memory) return tl::unexpected(our_fault("no memory for a launch plan"));
    auto taken =
        replayer_->ask({{"op", "plan"}, {"plan", next_}, {"bytes", packet.size()}, {"seed", random_bits()}},
                       kSetUp, memory.get());
    if (!taken) return tl::unexpected(taken.error());
    if (auto foreign = taken->message.find("foreign"); foreign != taken->message.end())
      return tl::unexpected(kernel_->refuse(foreign->get<std::string>()));
    return loaded_[key] = next_++;
  }

  std::shared_ptr<ReplayedKernel> kernel_;
  std::unique_ptr<Runner> replayer_;
  std::size_t arena_bytes_ = 0;
  std::map<std::string, int> loaded_;
  int next_ = 0;
};

WorkerFailure ReplayedKernel::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = why;
  return {WorkerFailure::Kind::kReported,
          "cannot be replayed: " + std::move(why),
          {},
          "measure with --execution in-process",
          kNotReplayable};
}

void ReplayedKernel::start_capture_worker() {
  if (!capture_worker_ && !coming_.valid())
    coming_ = std::async(std::launch::async, programs_.capture_worker);
}

tl::expected<Runner*, WorkerFailure> ReplayedKernel::capture_worker() {
  if (!capture_worker_) {
    auto started = coming_.valid() ? coming_.get() : programs_.capture_worker();
    if (!started) return tl::unexpected(started.error());
    capture_worker_ = std::move(*started);
  }
  return capture_worker_.get();
}

tl::expected<const CapturedGraph*, WorkerFailure> ReplayedKernel::graph(const std::string& key,
                                                                        const Json& request,
                                                                        std::size_t arena_bytes) {
  if (auto known = graphs_.find(key); known != graphs_.end()) return &known->second;
  auto capture_worker = this->capture_worker();
  if (!capture_worker) return tl::unexpected(capture_worker.error());
  auto mapped = (*capture_worker)->ask({{"op", "arena"}, {"bytes", arena_bytes}}, kSetUp);
  if (!mapped) return tl::unexpected(mapped.error());
  auto answer = (*capture_worker)->ask(request);
  if (!keep_capture_worker_) capture_worker_.reset();
  if (!answer) return tl::unexpected(answer.error());
  if (auto replayed = answer->message.find("replayed");
      replayed == answer->message.end() || *replayed != true) {
    auto because = answer->message.find("because");
    return tl::unexpected(refuse(because != answer->message.end() && because->is_string()
                                     ? because->get<std::string>().substr(0, 300)
                                     : "the capture worker gave no plan"));
  }
  auto packet = read_packet(*answer);
  if (!packet) return tl::unexpected(refuse("the capture worker's plan cannot be read: " + packet.error()));
  GraphLimits limits;
  limits.arena_bytes = arena_bytes;
  auto graph = read_graph(*packet, limits);
  if (!graph) return tl::unexpected(refuse("the capture worker's plan is not valid: " + graph.error()));
  notes_.insert(graph->notes.begin(), graph->notes.end());
  launched_.insert(graph->kernels.begin(), graph->kernels.end());
  return &graphs_.emplace(key, std::move(*graph)).first->second;
}

tl::expected<const CapturedGraph*, WorkerFailure> ReplayedKernel::record(const std::string& what,
                                                                         const Json& request,
                                                                         std::size_t arena_bytes) {
  const Json wanted = question(what, request);
  return graph(wanted.dump(), wanted, arena_bytes);
}

StartedRunner ReplayedKernel::start(const std::shared_ptr<ReplayedKernel>& self) {
  auto replayer = programs_.replayer();
  if (!replayer) return replayer;
  Descriptor memory = memory_with(device_code_);
  if (!memory) return tl::unexpected(our_fault("no memory for the device code"));
  auto taken = (*replayer)->ask({{"op", "module"}, {"bytes", device_code_.size()}}, kSetUp, memory.get());
  if (!taken) return tl::unexpected(taken.error());
  std::lock_guard lock(self->starting_);
  if (auto names = taken->message.find("functions"); names != taken->message.end() && names->is_array())
    for (const Json& name : *names)
      if (name.is_string()) defined_.insert(name.get<std::string>());
  return std::make_unique<ReplayedRunner>(self, std::move(*replayer));
}

}  // namespace capstone
