#pragma once
// The exchange of tokens between two GPUs, for `capstone demo two-gpus`.
#include <vector>

#include "harness/base/units.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// One way to exchange at one setting. Pairs are GPU 0, GPU 1; bytes of a GPU are those that leave it.
struct ExchangeCase {
  std::string method;       ///< "copies", "kernels" or "nccl"
  std::string routing;      ///< share of the choices that fall on the experts of GPU 0 and 1: "70/30"
  std::string format;       ///< of dispatch: "bf16" or "e4m3"
  std::int64_t tokens = 0;  ///< of each GPU
  std::vector<std::int64_t> crossing;     ///< tokens of a GPU that cross
  std::vector<std::int64_t> expert_rows;  ///< (token, expert) pairs that a GPU computes
  std::vector<std::int64_t> dispatch_bytes, combine_bytes;
  std::int64_t checked = 0, wrong = 0;  ///< numbers of the result; those that differ from the host's
  std::int64_t lost = 0;                ///< repetitions in which the GPUs did not meet
  /// [repetition][12] µs: the ends of dispatch, experts and combine since the GPUs met, of GPU 0, of GPU 1,
  /// by the GPU's timer; then the lengths of the three by events, of GPU 0, of GPU 1. `queued`: the GPUs met
  /// after everything was launched.
  std::vector<std::vector<double>> launched, queued;
};

struct TwoGpusRun {
  std::string time, tool, device;                      ///< "2 x NVIDIA H100 80GB HBM3"
  std::string nccl, no_nccl;                           ///< its version; why it was left out
  std::string stopped;                                 ///< why the run ended early; empty: it did not
  double timer_step_ns = 0;                            ///< of the GPU's timer
  double link_bytes = 0;                               ///< of each plain copy
  std::vector<std::vector<double>> alone_us, both_us;  ///< [direction][repetition]; both: at the same time
  std::vector<ExchangeCase> cases;

  /// Of plain copies in both directions at once. @return  [B/s] out of a GPU; median
  double bandwidth(std::size_t gpu) const;
};
Json two_gpus_json(const TwoGpusRun& run);
/// @error another schema; a field is missing or has another type or length.
Result<TwoGpusRun> read_two_gpus(const Json& json);
/// @error no such file; as read_two_gpus().
Result<TwoGpusRun> two_gpus_record(const std::filesystem::path& file);

/// What the program printed: a JSON object a line. Lines of others, and one that was cut off, are skipped.
/// @error it measured nothing: why it stopped.
Result<TwoGpusRun> two_gpus_of_output(const std::string& text);

enum class Exchange { kDispatch, kCombine };

/// Where the time of an exchange goes. Times in µs; parts are differences of medians and may be negative.
struct ExchangeSplit {
  double bytes = 0;   ///< in the direction that takes longer
  Interval time;      ///< as launched, from the first GPU that begins to the last one that ends; 95 %
  double wire = 0;    ///< what the bytes take at the bandwidth of a plain copy
  double launch = 0;  ///< what is saved when everything is queued before it begins
  double other = 0;   ///< the first GPU that begins waits for the other one
  double rest = 0;    ///< packing, adding and synchronising, and what the way does worse than a plain copy
  double wait() const { return time.point - wire; }
};
ExchangeSplit split_of(const TwoGpusRun& run, const ExchangeCase& one, Exchange exchange);

/// The runs that are kept with the program, by device.
std::vector<TwoGpusRun> recorded_two_gpus(const Resources& resources);

/// Why it cannot run here; empty: it can.
std::string why_not_two_gpus(const Resources& resources);

/// Builds the program and runs it on the first two visible GPUs, outside of the sandbox, which NCCL needs.
/// What was measured before a time limit is kept.
/// @param nccl  libnccl.so.2; empty: that of PyTorch's wheel, else the one that the loader finds
/// @error no two GPUs, no nvcc; nothing was measured.
Result<TwoGpusRun> run_two_gpus(const std::filesystem::path& nccl, const Workspace& workspace,
                                const ProgressSink& progress);

}  // namespace capstone::workflows
