#pragma once
// The measured case on the GPU: one set of tensors that candidates see, and, in memory that only trusted
// processes map, what the reference makes of the same inputs.
#include <cstdint>
#include <string>
#include <utility>
#include <map>
#include <vector>

#include "harness/correctness/cases.h"
#include "harness/runtime/worker/arena.h"
#include "harness/runtime/cuda/gpu_host_client.h"

namespace capstone {

class DeviceBuffers {
 public:
  DeviceBuffers(const Problem& problem, const Oracle& oracle, GpuHost& gpu_host) : problem_(problem), oracle_(oracle), gpu_host_(gpu_host) {}

  /// Once, before anything else. `bytes`: the most that any arm wants.
  Result<void> lay_out(PrivateBytes bytes);

  /// New memory for all tensors, at the same addresses: what a process kept of the old is worthless.
  Result<void> map();
  /// Lets an arm's process map the tensors, and a trusted one also the expected values.
  tl::expected<void, WorkerFailure> share(Runner& runner, bool trusted) const;

  /// Parameters alone, and poison everywhere else: what prepare() may see. Only where the problem has `prepare`.
  Result<void> fill_parameters(std::uint64_t seed);
  /// Fresh inputs from `seed`; outputs, workspace and guard bands poisoned; caches flushed.
  Result<void> fill(std::uint64_t seed);

  /// Requests for an arm, or for the reference into its own memory.
  Json run_request(bool into_expected, int repeat, std::int64_t hide_ns) const;
  Json prepare_request(bool into_expected) const;

  /// A number for all outputs as they are now.
  Result<std::vector<std::uint64_t>> fingerprints();
  /// After the candidate's run and the reference's: guard bands, inputs, outputs, and whether the outputs changed since
  /// `before` was taken. Empty text: all well.
  Result<std::string> verify(const std::vector<std::uint64_t>& before);
  /// The oracle's word on 2,048 random elements of every output: of the reference's copy or of the candidate's. The first
  /// one also fixes the scale of the comparisons on the device. Making gigabytes of inputs on the host takes seconds: probes of
  /// one seed share the oracle's answers. Where the oracle is the reference itself, there is nothing to ask at this size: the
  /// reference's copy gives the scale alone. Empty text: all well.
  Result<std::string> probe(bool expected_copy);

 private:
  const Parameter& parameter(const TensorSlot& slot) const { return problem_.signature[static_cast<std::size_t>(slot.parameter)]; }
  Result<void> fill_tensor_on_device(Json& steps, const TensorSlot& slot, const char* arena, std::size_t place, std::uint64_t seed);
  void add_fingerprints(Json& steps) const;
  Result<void> ask_oracle();
  /// The root mean square of random elements of what the reference made.
  Result<void> take_scale_of_reference();

  struct Probe {
    std::vector<std::int64_t> indices;  ///< ascending
    std::vector<double> value, scale;   ///< the oracle's
  };

  const Problem& problem_;
  const Oracle& oracle_;
  GpuHost& gpu_host_;
  Layout layout_;
  std::vector<std::size_t> expected_at_;  ///< [tensor] offset in the expected memory; meaningful for written ones
  std::size_t expected_bytes_ = 0, expected_prepared_ = 0;
  int memory_ = -1, expected_memory_ = -1;  ///< descriptors; the GPU host's
  Json args_, expected_args_;
  std::uint64_t seed_ = 0, probe_seed_ = 0, hash_seed_ = 0;
  std::vector<Probe> probes_;  ///< [tensor] of the inputs made from probe_seed_; empty for what is not written
  std::vector<double> scale_;
  std::map<std::size_t, std::uint64_t> host_made_;  ///< tensor → fingerprint of an input that the device cannot make again
};

}  // namespace capstone
