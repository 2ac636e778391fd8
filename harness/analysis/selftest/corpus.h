#pragma once
// The exploit corpus: small kernels and hostile files, each with a manifest that says how the judge must
// respond.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/model/problem.h"
#include "harness/model/record.h"

namespace capstone {

/// The required outcome of a case in one way of judging.
struct Expectation {
  enum class Kind {
    kPasses,      ///< honest: gate one must pass
    kCaught,      ///< gate one must give one of `verdicts`
    kLabelled,    ///< gate one passes, and a label contains `text`
    kNotFooled,   ///< a trick that gains nothing: any verdict but FASTER, and a complete record
    kFallsBack,   ///< replayed execution only: must fall back to in-process execution, where
                  ///< `cuda-in-process` applies
    kCannotShow,  ///< not run here; `text` gives the reason
  };
  Kind kind = Kind::kPasses;
  std::vector<GateOne> verdicts;
  std::string text;
  std::string because;  ///< for readers
};
/// "WRONG or CRASH", "label: library", "passes"
std::string to_string(const Expectation& expectation);

/// A hostile input file: `begin`, then `repeat` as many times as `times` says, then `end`; or an archive.
struct HostileInput {
  std::string reader;  ///< the program part that must survive it: reply, worklog, problem,
                       ///< submission
  std::string begin, repeat, end;
  std::int64_t times = 0;
  std::string archive;   ///< climbs, absolute, link, bomb; empty: not an archive
  bool refused = false;  ///< true: must be refused; false: the reader only has to end in time
};

struct CorpusCase {
  /// The folder: "03_caches_by_pointer"; a rung: "honest_reference_kernels/softmax/01_three_pass"
  std::string name;
  std::filesystem::path manifest;
  int row = 0;  ///< 1 … 28; 0: honest
  std::string what, fools;
  std::filesystem::path problem;  ///< folder; empty for a hostile file
  std::filesystem::path source;   ///< .cu or .py; empty for a hostile file
  double timeout_seconds = 10;    ///< one launch, or one hostile file
  bool needs_isolation = false;   ///< cannot be shown if untrusted processes are not isolated
  bool needs_nvcc = false;        ///< cannot be shown on a CPU without nvcc
  Expectation emulated, cuda_in_process, cuda_replayed;
  std::optional<HostileInput> input;

  bool honest() const { return row == 0; }
};

/// Every case below share/corpus, by name. A `kind: ladders` manifest becomes one case per reference kernel.
/// @error a manifest that breaks the strict rules (file:line:column), a missing kernel or problem.
Result<std::vector<CorpusCase>> load_corpus(const Resources& resources);

/// Reads one manifest. @error as for the corpus
Result<std::vector<CorpusCase>> load_manifest(const std::filesystem::path& folder,
                                              const Resources& resources);

}  // namespace capstone
