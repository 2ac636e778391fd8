#pragma once
// The exploit corpus: small kernels and hostile files, each with a manifest that says what the judge must make of it.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/resources.h"
#include "harness/model/record.h"
#include "harness/model/problem.h"

namespace capstone {

/// What must come of a case on one way of judging.
struct Expectation {
  enum class Kind {
    kPasses,       ///< honest: gate one must pass
    kCaught,       ///< gate one must say one of `verdicts`
    kLabelled,     ///< gate one passes, and a label contains `text`
    kNotFooled,    ///< a trick that gains nothing: anything but FASTER, and a whole record
    kFallsBack,    ///< replayed alone: it must go to in-process execution, where `cuda-in-process` holds
    kCannotShow,   ///< not run here; `text` says why
  };
  Kind kind = Kind::kPasses;
  std::vector<GateOne> verdicts;
  std::string text;
  std::string because;             ///< for readers
};
/// "WRONG or CRASH", "label: library", "passes"
std::string to_string(const Expectation& expectation);

/// A file that a stranger hands in. `begin`, then `repeat` as often as `times` says, then `end`; or an archive.
struct HostileInput {
  std::string reader;              ///< who must cope with it: reply, worklog, problem, submission
  std::string begin, repeat, end;
  std::int64_t times = 0;
  std::string archive;             ///< climbs, absolute, link, bomb; empty: not an archive
  bool refused = false;            ///< must be refused; else it is enough that the reader ends in time
};

struct CorpusCase {
  std::string name;                ///< the folder: "03_caches_by_pointer"; a rung: "honest_reference_kernels/softmax/01_three_pass"
  std::filesystem::path manifest;
  int row = 0;                     ///< 1 … 28; 0: honest
  std::string what, fools;
  std::filesystem::path problem;   ///< folder; empty for a hostile file
  std::filesystem::path source;    ///< .cu or .py; empty for a hostile file
  double timeout_seconds = 10;     ///< one launch, or one hostile file
  bool needs_isolation = false;    ///< shows nothing where untrusted processes are not isolated
  Expectation emulated, cuda_in_process, cuda_replayed;
  std::optional<HostileInput> input;

  bool honest() const { return row == 0; }
};

/// Every case below share/corpus, by name; a `kind: ladders` manifest becomes one case a reference kernel.
/// @error a manifest that is not as strict as it must be (file:line:column), a kernel or a problem that is missing.
Result<std::vector<CorpusCase>> load_corpus(const Resources& resources);

/// One manifest. @error see above
Result<std::vector<CorpusCase>> load_manifest(const std::filesystem::path& folder, const Resources& resources);

}  // namespace capstone
