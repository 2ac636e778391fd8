#include "harness/runtime/cuda/gpu_host_client.h"

#include <unistd.h>

#include <algorithm>

#include "harness/correctness/narrow.h"

namespace capstone {
namespace {

Error machine_fault(const WorkerFailure& failure) {
  if (failure.kind == WorkerFailure::Kind::kInterrupted)
    return {"interrupted", {}, {}, ExitCode::kInterrupted};
  return {"the GPU host failed: " + failure.what, failure.where,
          failure.hint.empty() ? "run `capstone doctor`; free GPU memory or close other programs on this GPU"
                               : failure.hint,
          ExitCode::kEnvironment};
}

}  // namespace

Json draw_json(const random::Draw& draw) {
  Json choices = Json::array();
  for (int i = 0; i < draw.choices; ++i) choices.push_back(draw.choice[i]);
  return {{"kind", static_cast<int>(draw.kind)},
          {"twist", static_cast<int>(draw.twist)},
          {"stream", draw.stream},
          {"seed", draw.seed},
          {"a", narrow::bits_of(draw.a)},
          {"b", narrow::bits_of(draw.b)},
          {"min", draw.min},
          {"max", draw.max},
          {"rows", draw.rows},
          {"columns", draw.columns},
          {"hot", draw.hot},
          {"hot_value", narrow::bits_of(draw.hot_value)},
          {"choice", std::move(choices)}};
}

Result<std::unique_ptr<GpuHost>> GpuHost::start(const std::filesystem::path& program,
                                                const Sandbox& trusted) {
  WorkerLimits limits;
  limits.start = std::chrono::seconds(60);
  limits.memory = 0;
  auto worker = Worker::start({program.string()}, trusted, limits, true);
  if (!worker) return fail(machine_fault(worker.error()));
  return std::unique_ptr<GpuHost>(new GpuHost(std::move(*worker)));
}

Result<Descriptor> GpuHost::make(const char* arena, std::size_t bytes) {
  auto answer = worker_.ask({{"op", "arena"}, {"arena", arena}, {"bytes", bytes}}, std::chrono::seconds(60));
  if (!answer) return fail(machine_fault(answer.error()));
  if (!answer->fd) return fail("the GPU host sent no memory handle", {}, {}, ExitCode::kInternal);
  return std::move(answer->fd);
}

Result<int> GpuHost::resize(std::size_t bytes) {
  CAPSTONE_TRY(arena_, make("tensors", bytes));
  return arena_.get();
}

Result<int> GpuHost::make_expected(std::size_t bytes) {
  CAPSTONE_TRY(expected_, make("expected", bytes));
  return expected_.get();
}

Result<void> GpuHost::stage(std::size_t bytes) {
  if (staged_ >= bytes) return {};
  CAPSTONE_TRY(staging_fd_, staging_.resize(bytes));
  staged_ = bytes;
  return {};
}

Result<void> GpuHost::transfer(const char* op, std::size_t offset, std::size_t bytes, const char* arena) {
  auto answer = worker_.ask({{"op", op}, {"arena", arena}, {"at", offset}, {"bytes", bytes}},
                            std::chrono::seconds(120), staging_fd_);
  if (!answer) return fail(machine_fault(answer.error()));
  return {};
}

Result<void> GpuHost::upload(std::size_t offset, std::span<const std::byte> bytes, const char* arena) {
  CAPSTONE_CHECK(stage(bytes.size()));
  CAPSTONE_CHECK(staging_.load(bytes));
  return transfer("upload", offset, bytes.size(), arena);
}

Result<void> GpuHost::load(std::span<const std::byte> image) { return upload(0, image); }

Result<void> GpuHost::fetch(std::span<std::byte> image) {
  CAPSTONE_CHECK(stage(image.size()));
  CAPSTONE_CHECK(transfer("download", 0, image.size(), "tensors"));
  return staging_.fetch(image);
}

Result<void> GpuHost::poison(std::size_t offset, std::size_t bytes, std::uint64_t seed) {
  CAPSTONE_CHECK(
      batch(Json::array({Json{{"do", "poison_bytes"}, {"at", offset}, {"bytes", bytes}, {"seed", seed}}})));
  return {};
}

Result<std::optional<std::size_t>> GpuHost::overwritten(std::size_t offset, std::size_t bytes,
                                                        std::uint64_t seed) {
  CAPSTONE_TRY(
      const Json results,
      batch(Json::array({Json{{"do", "check_bytes"}, {"at", offset}, {"bytes", bytes}, {"seed", seed}}})));
  const bool intact = results.at(0).at("wrong").get<std::int64_t>() == 0;
  return intact ? std::nullopt : std::optional(offset);
}

Result<Json> GpuHost::batch(Json steps) {
  // A packet holds 192 KiB, and a deep network has hundreds of tensors.
  constexpr std::size_t kMost = 150;
  Json results = Json::array();
  for (std::size_t first = 0; first == 0 || first < steps.size(); first += kMost) {
    Json some = Json::array();
    for (std::size_t i = first; i < std::min(first + kMost, steps.size()); ++i)
      some.push_back(std::move(steps[i]));
    auto answer = worker_.ask({{"op", "batch"}, {"steps", std::move(some)}}, std::chrono::seconds(60));
    if (!answer) return fail(machine_fault(answer.error()));
    for (Json& result : answer->message.at("results")) results.push_back(std::move(result));
  }
  return results;
}

Result<Json> GpuHost::telemetry() {
  auto answer = worker_.ask({{"op", "telemetry"}}, std::chrono::seconds(20));
  if (!answer) return fail(machine_fault(answer.error()));
  return answer->message.at("telemetry");
}

Result<double> GpuHost::copy_bandwidth() {
  auto answer = worker_.ask({{"op", "copy_bandwidth"}}, std::chrono::seconds(20));
  if (!answer) return fail(machine_fault(answer.error()));
  return answer->number("bytes_per_second").value_or(0);
}

}  // namespace capstone
