#pragma once
// Ladders: the reference kernels of a problem in teaching order, judged in one run and drawn as a ladder
// view.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/analysis/ladder/languages.h"
#include "harness/base/json.h"
#include "harness/judge/judge.h"

namespace capstone {

/// One reference kernel.
struct Rung {
  std::filesystem::path source;
  std::string name;     ///< "05_register_tile_2d"
  std::string session;  ///< the session whose folder holds it: "L5"
  std::string title;    ///< the first line of its header, without "Rung 5:"
  std::string changed;  ///< the header's paragraph "Changed", on one line; empty if there is none
};

/// The comment at the start of a rung's source.
struct RungHeader {
  std::string title;                                       ///< its first line, without "Rung 5:"
  std::string prose;                                       ///< what stands before the first note, on one line
  std::vector<std::pair<std::string, std::string>> notes;  ///< {"Prediction", "1.1 times rung 2."}, in order
};
RungHeader rung_header(std::string_view source);

/// The rungs of a problem over all sessions, by number. @error the problem has none: the hint lists those
/// that do.
Result<std::vector<Rung>> rungs_of(const Resources& resources, const std::string& problem);
/// Whether session `a` ("L5") is taught before `b` ("W1").
bool earlier_session(const std::string& a, const std::string& b);
/// Problems that have rungs in a session ("L5"), or in any (""), in the order of the sessions.
std::vector<std::string> ladders_of(const Resources& resources, const std::string& session);
/// How many rungs of a problem a session ("L5") has. Reads none of them.
int count_rungs(const Resources& resources, const std::string& session, const std::string& problem);

struct LadderRequest {
  const Problem* problem = nullptr;  ///< the rungs are timed at its `measure` size
  std::vector<Rung> rungs;
  Backend backend = Backend::kAuto;
  double budget_seconds = 2;  ///< [s] of timing per rung
  int restarts = 1;           ///< of all processes; one is enough for a ladder view, which shows
                              ///< gains of tens of percent; verdicts need more
  bool timing = true;         ///< false: only build and check
  bool sustained = false;     ///< also launches back to back on a warm chip
  // A ladder of languages:
  std::string ladder{};         ///< its id; empty: the problem's
  std::string library{};        ///< the arm of PyTorch that percentages refer to; empty: the native baseline
  std::string python = "auto";  ///< JudgeOptions::python and python_path
  std::string python_path{};
};

/// SHA-256 of a source without empty lines and lines that hold only a comment. A comment may be changed and
/// the measurement still belongs to this code. scripts/ladder_tables.py computes the same digest.
/// @param python  comments begin with #
std::string code_digest(std::string_view source, bool python = false);

/// The result of judging a ladder. As JSON it is an entry of a results file.
struct LadderStep {
  Rung rung;
  std::string code_sha256;  ///< code_digest() of the source that was judged
  std::string execution;
  std::string gate_one;  ///< "PASS", "WRONG" …
  std::string trouble;   ///< why it did not pass, or has no time
  std::vector<std::string> labels;
  Interval ms;  ///< cold GPU caches; all 0 if nothing was timed
  double warm_ms = 0;
  std::optional<Interval> dirty_ms;      ///< with an L2 cache full of written lines; absent in old results
  std::optional<Interval> sustained_ms;  ///< back to back on a warm chip; absent: not asked for
  double sustained_watts = 0, sustained_sm_mhz = 0;
  std::vector<double> samples_ms;  ///< cold GPU caches; not stored in results files
  double percent_of_peak = 0;      ///< [%] 0: unknown
  std::string peak, bound_by;
  Interval of_library;                       ///< the library's time divided by this step's
  std::optional<Interval> dirty_of_library;  ///< the same with a dirty cache; absent in old results
  std::string verdict;                       ///< of gate two against the library; empty in old results

  /// Without a GPU: counts of one observed run at the `emulate` sizes.
  struct Counts {
    double sectors_per_request = 0, wavefronts_over_ideal = 0;  ///< 0: no such access
    /// sectors touched, divided by what the problem has to move
    double moved_over_compulsory = 0;
    double at_measured = 0;  ///< the same at the measured size, by a rule; 0: the rule does not hold
  };
  std::optional<Counts> counts;  ///< empty: on a GPU, or the CPU cannot run it

  /// In a ladder of languages: what the author wrote, and what is paid besides the kernel's time.
  struct Effort {
    Written written;
    double compile_seconds = 0;  ///< [s] see BuildResult; 0: not measured
    double launch_ms = 0;        ///< [ms] of the host, as its process says; 0: not measured
  };
  std::optional<Effort> effort;

  bool timed() const { return ms.point > 0; }
};
struct Ladder {
  std::string problem, title;
  Json sizes;
  std::string backend, time, tool;
  std::string device, driver, nvcc;  ///< empty on the emulated backend
  double copy_bytes_per_second = 0;  ///< [B/s] of a device copy in the same run; 0: not measured
  double flops = 0, bytes = 0;       ///< of the best possible algorithm
  std::string library;               ///< name of the native baseline
  double library_ms = 0;
  double library_dirty_ms = 0, library_sustained_ms = 0;  ///< 0: not measured
  double seconds = 0;                                     ///< [s] of the whole climb()
  /// Whether its rungs are one kernel in several languages.
  bool of_languages() const { return !steps.empty() && steps.front().effort.has_value(); }
  Json telemetry;  ///< "seconds" by stage (building, checking, starting …), "run_again":
                   ///< why blocks were repeated; null: nothing was timed
  std::vector<LadderStep> steps;

  /// Whether both the lowest step and the library have a time.
  bool spans() const { return library_ms > 0 && !steps.empty() && steps.front().timed(); }
  /// The step that passed gate one in the shortest time; null if none has a time.
  const LadderStep* fastest() const;
  /// Speedup over the previous step; empty for the first timed step.
  std::optional<double> gain(std::size_t step) const;
  /// Whether percent_of_peak refers to arithmetic. Then the figure that goes with it is FLOP/s, else bytes
  /// per second.
  bool compute_bound() const;
  /// [B/s] and [FLOP/s]: the problem's cost divided by a step's time.
  double bandwidth(const LadderStep& step) const { return step.timed() ? bytes / step.ms.point * 1e3 : 0; }
  double throughput(const LadderStep& step) const { return step.timed() ? flops / step.ms.point * 1e3 : 0; }
  /// [%] of the copy's bandwidth; 0 if that was not measured.
  double percent_of_copy(const LadderStep& step) const {
    return copy_bytes_per_second > 0 ? 100 * bandwidth(step) / copy_bytes_per_second : 0;
  }
  /// "transpose rows=8192 cols=8192": identifies a ladder in a results file.
  std::string key() const;
};

/// How a rung compares with the library over the sizes of several ladders.
struct OverSizes {
  std::string problem, rung;
  int sizes = 0;          ///< at which it has a time
  double of_library = 0;  ///< geometric mean of the library's time divided by the rung's
};
/// One entry for each rung that has a time at more than one size, in the order of the ladders.
std::vector<OverSizes> over_sizes(const std::vector<Ladder>& ladders);

/// Judges all rungs in one interleaved run. On the emulated backend, rungs that pass are explained instead of
/// timed.
/// @error a fault of the machine.
Result<Ladder> climb(const LadderRequest& request, const Resources& resources, const Narration& say);

void to_json(Json& json, const Ladder& ladder);
void from_json(const Json& json, Ladder& ladder);

/// Recorded ladders of one device: reference_kernels/results/<device>.json.
struct LadderResults {
  std::string device;
  std::vector<Ladder> ladders;  ///< one per key
};
/// "h200" for "NVIDIA H200", "h100_80gb_hbm3" for "NVIDIA H100 80GB HBM3".
std::string results_name(const std::string& device);
/// @error unreadable, or not a results file.
Result<LadderResults> read_results(const std::filesystem::path& file);
/// Puts a ladder into a results file; replaces the one with its key. @error the file holds another device's
/// results.
Result<void> record_ladder(const std::filesystem::path& file, const Ladder& ladder);
/// The devices that have results, by the names of their files.
/// @param kind  the folder below the results: "languages"; empty: the results themselves
std::vector<std::string> recorded_devices(const Resources& resources, const std::string& kind = {});
/// Every recorded ladder of this kind of every device, in the order of recorded_devices(). @error as
/// read_results().
Result<std::vector<Ladder>> recorded_everywhere(const Resources& resources, const std::string& kind = {});

}  // namespace capstone
