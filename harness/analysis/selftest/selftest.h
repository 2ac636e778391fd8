#pragma once
// Judges the corpus and compares the verdicts with what the manifests promise.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/analysis/selftest/corpus.h"
#include "harness/base/json.h"
#include "harness/judge/judge.h"

namespace capstone {

enum class RowState {
  kOk,       ///< as promised
  kEscaped,  ///< a trick that succeeded
  kRefused,  ///< an honest kernel that did not pass
  kDiffers,  ///< caught, but not in the promised way
  kNotRun,   ///< no result here; `why` gives the reason
};
/// "ok", "ESCAPED", "REFUSED", "DIFFERS", "not run"
std::string_view label_of(RowState state);

struct RowResult {
  std::string name;
  int row = 0;                ///< 0: honest
  std::string expected, got;  ///< "WRONG or CRASH", "PASS, FASTER 3.1x"
  RowState state = RowState::kNotRun;
  std::string why;  ///< one line: the judge's own reason, or why it was not run
  double seconds = 0;
  std::optional<bool> replayed;  ///< on a GPU: whether replayed execution could judge it; absent if it
                                 ///< was not requested
  Json measurement;              ///< the whole record of a judged case, without samples
};

/// Reads a hostile file. Returns the reason why it was refused; empty if it was read.
using InputReader = std::function<std::optional<std::string>(const HostileInput& input)>;
/// Readers for reply, problem and submission. The caller adds the reader of the layer above (worklog).
std::map<std::string, InputReader> input_readers();
/// The text that a manifest describes.
std::string hostile_text(const HostileInput& input);

struct SelftestRequest {
  Backend backend = Backend::kEmulated;    ///< kEmulated or kCuda
  Execution execution = Execution::kAuto;  ///< kCuda only
  double budget_seconds = 3;               ///< [s] of timing per kernel
  std::map<std::string, InputReader> readers;
};

/// Groups the cases that are judged together. On a GPU a few honest kernels of one problem form a group,
/// because every race has the same start-up cost. Every other case is judged alone, so that no case suffers
/// from another's trick.
std::vector<std::vector<CorpusCase>> groups_of(const std::vector<CorpusCase>& cases, Backend backend);
/// Judges a group and returns one row per case. @error a fault of the machine, or interrupted.
Result<std::vector<RowResult>> run_group(const std::vector<CorpusCase>& group, const SelftestRequest& request,
                                         const Resources& resources, const Narration& say);

/// The row of a case that could not be judged because of a fault of the machine: a failure, with its reason.
RowResult faulty_row(const CorpusCase& corpus_case, const Error& error);

/// Compares a judgement with the manifest.
RowResult assess(const CorpusCase& corpus_case, Backend backend, Execution execution,
                 const Measurement& measurement);

struct Rate {
  int tricks = 0, caught = 0;  ///< tricks that ran; of these caught as promised
  int honest = 0, passed = 0;  ///< honest kernels that ran; of these passed
  int not_run = 0;
  int replayed = 0, in_process = 0;  ///< honest kernels on a GPU: judged in replayed execution; had to (or
                                     ///< would have to) fall back to in-process
  /// True if no trick escaped, no honest kernel was refused, and every trick was caught as promised.
  bool good() const { return caught == tricks && passed == honest; }
};
Rate rate_of(const std::vector<RowResult>& rows);
void to_json(Json& json, const RowResult& row);
void from_json(const Json& json, RowResult& row);
void to_json(Json& json, const Rate& rate);

}  // namespace capstone
