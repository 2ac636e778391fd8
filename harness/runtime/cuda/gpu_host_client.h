#pragma once
// The judge's interface to the GPU host: GPU memory as an ArenaHost, and the steps of a sample.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/correctness/inputs.h"
#include "harness/runtime/worker/arena.h"

namespace capstone {

class GpuHost : public ArenaHost {
 public:
  /// Starts capstone-gpu-host. @error no driver, no GPU memory, an old Toolkit.
  static Result<std::unique_ptr<GpuHost>> start(const std::filesystem::path& program, const Sandbox& trusted);

  Result<int> resize(std::size_t bytes) override;
  Result<void> load(std::span<const std::byte> image) override;
  Result<void> fetch(std::span<std::byte> image) override;
  Result<void> poison(std::size_t offset, std::size_t bytes, std::uint64_t seed) override;
  Result<std::optional<std::size_t>> overwritten(std::size_t offset, std::size_t bytes,
                                                 std::uint64_t seed) override;
  /// Memory for the reference's outputs, which no candidate maps. The descriptor is not given to candidates.
  Result<int> make_expected(std::size_t bytes);
  /// Copies host bytes to an offset of an arena: "tensors" or "expected".
  Result<void> upload(std::size_t offset, std::span<const std::byte> bytes, const char* arena = "tensors");

  /// Performs steps in order (see gpu_host.cu) and waits for the device.
  Result<Json> batch(Json steps);
  Result<Json> telemetry();
  /// [B/s] read and written by a copy within the device: the upper limit for code that reads as much as it
  /// writes. Median of several copies.
  Result<double> copy_bandwidth();
  const Json& device() const { return worker_.hello(); }

 private:
  explicit GpuHost(Worker worker) : worker_(std::move(worker)) {}
  Result<void> stage(std::size_t bytes);
  Result<Descriptor> make(const char* arena, std::size_t bytes);
  Result<void> transfer(const char* op, std::size_t offset, std::size_t bytes, const char* arena);
  Worker worker_;
  Descriptor arena_, expected_;
  MemfdArena staging_;
  std::size_t staged_ = 0;
  int staging_fd_ = -1;
};

/// A device draw in the form that the GPU host reads. Floats are sent as their bits.
Json draw_json(const random::Draw& draw);

}  // namespace capstone
