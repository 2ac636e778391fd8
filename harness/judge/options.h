#pragma once
// What a user can ask of the judge. One table describes every option: the command line, project and task
// files, bundles, ssh and Slurm read it. A new option is a field of JudgeOptions, a row of judge_options(),
// and the code that obeys it.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/model/backend.h"

namespace capstone {

struct JudgeOptions {
  Backend backend = Backend::kAuto;
  Execution execution = Execution::kAuto;  ///< CUDA
  double budget_seconds = 10;              ///< CUDA: of timing, a candidate
  double timeout_seconds = 10;             ///< one launch in gate one
  int hidden_cases = 3;                    ///< sizes drawn from `vary`, after the build
  std::string python = "auto";  ///< whose PyTorch runs candidates in Python and, on a GPU, the reference:
                                ///< "auto", a program, or "none": on a GPU the native baseline is gate two's
  std::string python_path;      ///< folders of further packages for it, separated by colons
  /// CUDA: arms of PyTorch, see python_arms(); the first is gate two's; empty: the problem's
  std::vector<std::string> baselines;
  /// Emulated: outputs alone, without the instrumented builds and without nvcc. CUDA: a first look in
  /// seconds, never a verdict: fewer cases, one start of each process, the native baseline.
  bool quick = false;
  bool sustained = false;    ///< CUDA: also times launches back to back on a warm chip
  bool check_races = false;  ///< CUDA: what passes is also run on the CPU, with instruments
  bool operator==(const JudgeOptions&) const = default;
};

/// One option of the judge.
struct JudgeOption {
  enum class Kind { kFlag, kChoice, kChoices, kInteger, kNumber, kText };

  std::string_view key;  ///< in JSON: "check_races"
  Kind kind;
  std::string help;                                  ///< one line, with the default
  std::vector<std::string> choices;                  ///< of kChoice and kChoices
  bool (*other_choice)(std::string_view) = nullptr;  ///< of kChoices: whether another word is one, too
  double low = 0, high = 0;                          ///< of kInteger and kNumber; both ends are allowed
  std::string_view value_name;                       ///< of kText: "PATH"
  std::string_view excludes;  ///< the key of an option that contradicts this one; empty: none

  std::function<Json(const JudgeOptions&)> get;
  std::function<void(JudgeOptions&, const Json&)> put;  ///< of a value that fits
  std::string others = {};                              ///< what other_choice() takes, for messages

  /// On the command line: "--check-races".
  std::string flag() const;
  /// Takes a value from the command line: a choice in any case, a list with commas, "true" and "false" for a
  /// flag.
  /// @error the value does not fit; the message gives the choices or the range, and the nearest choice.
  Result<void> set(JudgeOptions& options, std::string_view word) const;
  /// Takes a value from JSON. @error as set(); a value of another type
  Result<void> set_json(JudgeOptions& options, const Json& value) const;
  /// The words that set this option to what it is in `options`; empty where that is the default of a flag or
  /// a list.
  std::vector<std::string> words(const JudgeOptions& options) const;
};

/// Every option, in the order of the help.
std::span<const JudgeOption> judge_options();

/// @error an option contradicts another one (`--quick` and `--check-races`), or a value is out of its range.
Result<void> validate(const JudgeOptions& options);

/// All options as words of a command line, for a job on another machine.
std::vector<std::string> words_of(const JudgeOptions& options);

/// All options as an object; see JudgeOption::key.
Json json_of(const JudgeOptions& options);
/// The inverse of json_of(). A key that is missing keeps its default; keys that are no option are left alone,
/// so that the options may lie among other members of an object.
/// @error the object is none, or a value does not fit
Result<JudgeOptions> judge_options_from(const Json& object);

}  // namespace capstone
