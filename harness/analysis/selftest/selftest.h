#pragma once
// Shows the corpus to the judge and compares what it says with what the manifests promise.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/judge/judge.h"
#include "harness/analysis/selftest/corpus.h"

namespace capstone {

enum class RowState {
  kOk,        ///< as promised
  kEscaped,   ///< a trick that went through
  kRefused,   ///< an honest kernel that did not pass
  kDiffers,   ///< caught, but not as promised
  kNotRun,    ///< nothing can be said here; `why`
};
/// "ok", "ESCAPED", "REFUSED", "DIFFERS", "not run"
std::string_view label_of(RowState state);

struct RowResult {
  std::string name;
  int row = 0;                     ///< 0: honest
  std::string expected, got;       ///< "WRONG or CRASH", "PASS, FASTER 3.1x"
  RowState state = RowState::kNotRun;
  std::string why;                 ///< one line: the judge's own reason, or why it was not run
  double seconds = 0;
  std::optional<bool> replayed;      ///< on a GPU: whether replayed execution could judge it; absent where it was not asked to
  Json measurement;                ///< the whole record where something was judged, samples left out
};

/// Reads a hostile file. Returns why it was refused; nothing: it was read.
using InputReader = std::function<std::optional<std::string>(const HostileInput& input)>;
/// reply, problem and submission; the caller adds those of the layers above (worklog).
std::map<std::string, InputReader> input_readers();
/// The text that a manifest describes.
std::string hostile_text(const HostileInput& input);

struct SelftestRequest {
  Backend backend = Backend::kEmulated;   ///< kEmulated or kCuda
  Execution execution = Execution::kAuto;                ///< kCuda only
  double budget_seconds = 3;              ///< of timing, a kernel
  std::map<std::string, InputReader> readers;
};

/// CorpusCases in groups that are judged together: on a GPU the honest kernels of a problem, a few at a time, since every race costs the
/// same start; each other case alone, so that none suffers from another's trick.
std::vector<std::vector<CorpusCase>> groups_of(const std::vector<CorpusCase>& cases, Backend backend);
/// Judges a group; a row for each. @error the machine's fault, or interrupted.
Result<std::vector<RowResult>> run_group(const std::vector<CorpusCase>& group, const SelftestRequest& request, const Resources& resources,
                                         const Narration& say);

/// The row of a case that could not be judged because of a fault of the machine: a failure, with its reason.
RowResult faulty_row(const CorpusCase& corpus_case, const Error& error);

/// What a judgement is worth against the manifest.
RowResult assess(const CorpusCase& corpus_case, Backend backend, Execution execution, const Measurement& measurement);

struct Rate {
  int tricks = 0, caught = 0;      ///< that ran; of these as promised
  int honest = 0, passed = 0;      ///< that ran; of these passed
  int not_run = 0;
  int replayed = 0, in_process = 0;    ///< honest kernels on a GPU: judged in replayed execution; had to, or would have to, leave it
  /// No escape, no honest kernel refused, nothing caught otherwise than promised.
  bool good() const { return caught == tricks && passed == honest; }
};
Rate rate_of(const std::vector<RowResult>& rows);
void to_json(Json& json, const RowResult& row);
void from_json(const Json& json, RowResult& row);
void to_json(Json& json, const Rate& rate);

}  // namespace capstone
