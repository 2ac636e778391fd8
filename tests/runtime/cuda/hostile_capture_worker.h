#pragma once
// A replayed kernel whose capture worker, the process that holds the submission, says and sends what a test
// wants.
#include <sys/mman.h>
#include <unistd.h>

#include "harness/runtime/cuda/replayed_kernel.h"
#include "tests/runtime/cuda/captured_graph_samples.h"

namespace capstone::testing {

/// Answers every request with the same message and, if there are bytes, a descriptor to them.
class Says : public Runner {
 public:
  explicit Says(Json message, std::vector<std::byte> bytes = {})
      : message_(std::move(message)), bytes_(std::move(bytes)) {}
  tl::expected<Packet, WorkerFailure> ask(const Json&, std::chrono::milliseconds, int) override {
    Packet packet{message_, {}};
    if (!bytes_.empty()) {
      packet.fd = Descriptor(::memfd_create("capstone-test", MFD_CLOEXEC));
      if (::write(packet.fd.get(), bytes_.data(), bytes_.size()) < 0) packet.fd = {};
    }
    return read_answer(std::move(packet));
  }
  tl::expected<Packet, WorkerFailure> ask(const Json& request) override { return ask(request, {}, -1); }
  const Json& hello() const override { return message_; }

 private:
  Json message_;
  std::vector<std::byte> bytes_;
};

/// One run of a replayed kernel with such a capture worker and a replayer of ours that agrees to everything.
inline tl::expected<Packet, WorkerFailure> run_sealed(const Json& message,
                                                      const std::vector<std::byte>& bytes,
                                                      std::shared_ptr<ReplayedKernel>* kept = nullptr) {
  ReplayedKernel::Programs programs;
  programs.capture_worker = [&]() -> StartedRunner { return std::make_unique<Says>(message, bytes); };
  programs.replayer = []() -> StartedRunner {
    return std::make_unique<Says>(Json{{"ok", true}, {"ms", 1.0}});
  };
  auto kernel = std::make_shared<ReplayedKernel>(std::move(programs), std::vector<std::byte>(16));
  if (kept) *kept = kernel;
  auto runner = kernel->start(kernel);
  if (!runner) return tl::unexpected(runner.error());
  const Descriptor arena(::memfd_create("capstone-test", MFD_CLOEXEC));
  if (auto mapped = (*runner)->ask({{"op", "arena"}, {"bytes", kArena}}, {}, arena.get()); !mapped)
    return mapped;
  return (*runner)->ask({{"op", "run"}, {"args", Json::array()}, {"workspace", nullptr}});
}

}  // namespace capstone::testing
