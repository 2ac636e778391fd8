#pragma once
// The memory that a worker computes in: the trusted side owns it, the worker maps it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "harness/base/error.h"
#include "harness/correctness/layout.h"
#include "harness/model/problem.h"
#include "harness/runtime/worker/worker.h"

namespace capstone {

/// Memory that the trusted side owns and a worker maps.
class ArenaHost {
 public:
  virtual ~ArenaHost() = default;
  /// Makes an arena of this size; the descriptor stays ours and is handed to the worker.
  virtual Result<int> resize(std::size_t bytes) = 0;
  virtual Result<void> load(std::span<const std::byte> image) = 0;
  virtual Result<void> fetch(std::span<std::byte> image) = 0;
  /// Writes the pattern of poison_bytes() where no image reaches.
  virtual Result<void> poison(std::size_t offset, std::size_t bytes, std::uint64_t seed) = 0;
  /// A byte that is no longer what poison() wrote; nothing where all are.
  virtual Result<std::optional<std::size_t>> overwritten(std::size_t offset, std::size_t bytes,
                                                         std::uint64_t seed) = 0;
};

/// Poisons what lies behind an image: the workspace and its guard band.
Result<void> poison_workspace(ArenaHost& arena, const Layout& layout, std::uint64_t seed);
/// A byte of the guard band behind the workspace that was written since; with `all`, of the workspace, too.
Result<std::optional<std::size_t>> overwritten_workspace(ArenaHost& arena, const Layout& layout,
                                                         std::uint64_t seed, bool all);

/// Host memory (memfd), for the emulated backend. Who is handed its descriptor can change its bytes, never
/// its size.
class MemfdArena : public ArenaHost {
 public:
  ~MemfdArena() override;
  Result<int> resize(std::size_t bytes) override;
  Result<void> load(std::span<const std::byte> image) override;
  Result<void> fetch(std::span<std::byte> image) override;
  Result<void> poison(std::size_t offset, std::size_t bytes, std::uint64_t seed) override;
  Result<std::optional<std::size_t>> overwritten(std::size_t offset, std::size_t bytes,
                                                 std::uint64_t seed) override;
  std::span<std::byte> bytes() { return {base_, bytes_}; }

 private:
  void drop();
  int fd_ = -1;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Bytes that a candidate wants in addition to the tensors at some sizes; both must be known before the arena
/// is laid out.
struct PrivateBytes {
  std::size_t workspace = 0, prepared = 0;
};
/// @param args  see workspace_arguments(). @error the worker's failure, or a number that makes no sense.
tl::expected<PrivateBytes, WorkerFailure> ask_private_bytes(Runner& worker, const Problem& problem,
                                                            const Json& args);

}  // namespace capstone
