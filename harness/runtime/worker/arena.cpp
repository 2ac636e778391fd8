#include "harness/runtime/worker/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/correctness/inputs.h"

namespace capstone {
namespace {

tl::expected<std::size_t, WorkerFailure> ask_bytes(Runner& worker, const char* op, const Json& args) {
  auto answer = worker.ask({{"op", op}, {"args", args}});
  if (!answer) return tl::unexpected(answer.error());
  auto bytes = answer->message.find("bytes");
  if (bytes == answer->message.end() || !bytes->is_number_unsigned() ||
      bytes->get<std::uint64_t>() > (1ull << 33))
    return tl::unexpected(
        WorkerFailure{WorkerFailure::Kind::kReported,
                      fmt::format("{}_bytes() asks for more than 8 GiB, or for nonsense", op),
                      {},
                      "return the bytes that are needed at these sizes",
                      "launch_error"});
  return bytes->get<std::size_t>();
}

}  // namespace

MemfdArena::~MemfdArena() { drop(); }

void MemfdArena::drop() {
  if (base_) ::munmap(base_, bytes_);
  if (fd_ >= 0) ::close(fd_);
  base_ = nullptr;
  bytes_ = 0;
  fd_ = -1;
}

Result<int> MemfdArena::resize(std::size_t bytes) {
  drop();
  fd_ = ::memfd_create("capstone-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // The size is sealed: a candidate that truncated the file would end the judge, which reads it, with SIGBUS.
  if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(fmt::format("cannot get {} bytes of shared memory: {}", bytes, std::strerror(errno)), {}, {},
                ExitCode::kEnvironment);
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED)
    return fail(std::string("cannot map shared memory: ") + std::strerror(errno), {}, {},
                ExitCode::kEnvironment);
  base_ = static_cast<std::byte*>(base);
  bytes_ = bytes;
  return fd_;
}

Result<void> MemfdArena::load(std::span<const std::byte> image) {
  std::memcpy(base_, image.data(), image.size());
  return {};
}

Result<void> MemfdArena::fetch(std::span<std::byte> image) {
  std::memcpy(image.data(), base_, image.size());
  return {};
}

Result<void> MemfdArena::poison(std::size_t offset, std::size_t bytes, std::uint64_t seed) {
  poison_bytes(this->bytes().subspan(offset, bytes), seed);
  return {};
}

Result<std::optional<std::size_t>> MemfdArena::overwritten(std::size_t offset, std::size_t bytes,
                                                           std::uint64_t seed) {
  const auto at = first_overwritten(this->bytes().subspan(offset, bytes), seed);
  return at ? std::optional(offset + *at) : std::nullopt;
}

namespace {

// Where the guard band behind the workspace begins.
std::size_t end_of_workspace(const Layout& layout) {
  return layout.workspace_offset + layout.workspace_bytes;
}

std::uint64_t seed_of_guard(const Layout& layout, std::uint64_t seed) {
  return seed ^ end_of_workspace(layout);
}

std::uint64_t seed_of_workspace(std::uint64_t seed) { return seed ^ 0x9e3779b97f4a7c15u; }

}  // namespace

Result<void> poison_workspace(ArenaHost& arena, const Layout& layout, std::uint64_t seed) {
  if (layout.workspace_bytes)
    CAPSTONE_CHECK(arena.poison(layout.workspace_offset, layout.workspace_bytes, seed_of_workspace(seed)));
  const std::size_t guard = end_of_workspace(layout);
  return arena.poison(guard, layout.bytes - guard, seed_of_guard(layout, seed));
}

Result<std::optional<std::size_t>> overwritten_workspace(ArenaHost& arena, const Layout& layout,
                                                         std::uint64_t seed, bool all) {
  const std::size_t guard = end_of_workspace(layout);
  CAPSTONE_TRY(const auto behind,
               arena.overwritten(guard, layout.bytes - guard, seed_of_guard(layout, seed)));
  if (behind || !all || !layout.workspace_bytes) return behind;
  return arena.overwritten(layout.workspace_offset, layout.workspace_bytes, seed_of_workspace(seed));
}

tl::expected<PrivateBytes, WorkerFailure> ask_private_bytes(Runner& worker, const Problem& problem,
                                                            const Json& args) {
  PrivateBytes bytes;
  auto workspace = ask_bytes(worker, "workspace", args);
  if (!workspace) return tl::unexpected(workspace.error());
  bytes.workspace = *workspace;
  if (!problem.prepare) return bytes;
  auto prepared = ask_bytes(worker, "prepared", args);
  if (!prepared) return tl::unexpected(prepared.error());
  bytes.prepared = *prepared;
  return bytes;
}

}  // namespace capstone
