#pragma once
// The measured case on the GPU: one set of tensors that candidates see, and, in memory that only trusted
// processes map, the reference's results for the same inputs.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/correctness/cases.h"
#include "harness/runtime/cuda/gpu_host_client.h"
#include "harness/runtime/worker/arena.h"

namespace capstone {

class DeviceBuffers {
 public:
  DeviceBuffers(const Problem& problem, const Oracle& oracle, GpuHost& gpu_host)
      : problem_(problem), oracle_(oracle), gpu_host_(gpu_host) {}

  /// Call once, before anything else. `bytes`: the maximum that any arm needs.
  Result<void> lay_out(PrivateBytes bytes);

  /// New memory for all tensors, at the same addresses. Handles to the old memory become useless.
  Result<void> map();
  /// Lets an arm's process map the tensors, and a trusted process also the expected values.
  tl::expected<void, WorkerFailure> share(Runner& runner, bool trusted) const;

  /// Parameters only, and poison everywhere else: the state that prepare() may see. Only if the problem has
  /// `prepare`.
  Result<void> fill_parameters(std::uint64_t seed);
  /// New inputs from `seed`; outputs, workspace and guard bands poisoned; caches flushed. `dirty`: the L2
  /// cache is left full of written lines, else of lines that were only read.
  Result<void> fill(std::uint64_t seed, bool dirty = false);

  /// Requests for an arm, or for the reference with its own memory for outputs.
  Json run_request(bool into_expected, int repeat, std::int64_t hide_ns) const;
  Json prepare_request(bool into_expected) const;
  /// The guard bands with what they hold since the last fill(): for a run that is watched while it lasts.
  Json guard_bands() const;

  /// One fingerprint of the current contents of all outputs.
  Result<std::vector<std::uint64_t>> fingerprints();
  /// After the runs of the candidate and the reference: checks guard bands, inputs, outputs, and whether the
  /// outputs changed since `before` was taken. An element's error is measured by the scale of its own part of
  /// the tensor. Those that fail that but might pass by a scale of their own are put to the oracle. Returns
  /// an empty text if everything is correct.
  Result<std::string> verify(const std::vector<std::uint64_t>& before);
  /// Compares 2,048 random elements of every output with the oracle, one in each of as many equal parts: in
  /// the reference's copy or in the candidate's. The first call also sets the scales for comparisons on the
  /// device. Making gigabytes of inputs on the host takes seconds, so probes with one seed share the oracle's
  /// answers. If the oracle is the reference itself, nothing can be asked at this size: the reference's copy
  /// gives only one scale.
  /// Returns an empty text if everything is correct.
  Result<std::string> probe(bool expected_copy);

 private:
  const Parameter& parameter(const TensorSlot& slot) const {
    return problem_.signature[static_cast<std::size_t>(slot.parameter)];
  }
  /// Poisons the slots of a paged cache that no sequence uses.
  Json poison_step(const PagedCache& cache, const char* arena, std::size_t place, DType dtype) const;
  Result<void> fill_tensor_on_device(Json& steps, const TensorSlot& slot, const char* arena,
                                     std::size_t place, std::uint64_t seed);
  void add_fingerprints(Json& steps) const;
  /// The inputs of the current seed, made on the host; empty for outputs.
  Result<std::vector<std::vector<std::byte>>> inputs_on_host() const;
  Result<void> ask_oracle();
  /// The root mean square of random elements of the reference's outputs.
  Result<void> take_scale_of_reference();
  Result<void> send_scales(std::size_t tensor);
  /// Elements that their part's scale does not allow: whether the oracle does. What it allows, their part
  /// allows from now on. Returns an empty text if all are right.
  Result<std::string> decide_suspects(std::size_t tensor, const std::vector<std::int64_t>& indices);

  struct Probe {
    std::vector<std::int64_t> indices;  ///< ascending
    std::vector<double> value, scale;   ///< from the oracle
  };

  const Problem& problem_;
  const Oracle& oracle_;
  GpuHost& gpu_host_;
  Layout layout_;
  std::vector<std::size_t> expected_at_;  ///< [tensor] offset in the expected memory; only set for outputs
  std::size_t expected_bytes_ = 0, expected_prepared_ = 0;
  int memory_ = -1, expected_memory_ = -1;  ///< descriptors; owned by the GPU host's client
  Json args_, expected_args_;
  std::uint64_t seed_ = 0, probe_seed_ = 0, hash_seed_ = 0;
  std::vector<Probe> probes_;  ///< [tensor] for the inputs made from probe_seed_; empty for tensors that are
                               ///< not outputs
  std::vector<std::vector<double>> scales_;      ///< [tensor][part]; empty for tensors that are not outputs
  std::map<std::size_t, std::uint64_t> inputs_;  ///< tensor → fingerprint of an input after fill()
};

}  // namespace capstone
