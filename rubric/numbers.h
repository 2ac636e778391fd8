#pragma once
// Numbers in prose: placeholders that the ledger fills in, and literal speedups that it may contradict.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"

namespace capstone {

/// A string of the environment record under the first of these keys that is there; empty: none.
std::string environment_text(const Json& environment, std::initializer_list<const char*> keys);

/// The arm that is the candidate's own; null: not timed.
const Arm* candidate_arm(const Measurement& measurement);
/// The first baseline's arm (gate two's baseline); null: not timed.
const Arm* baseline_arm(const Measurement& measurement);

bool is_emulated(const Measurement& measurement);

/// "1.23 ms", and "1.23 ms (emulated)" where the time counts for nothing; "not timed".
std::string median_text(const Measurement& measurement);
/// "2.08x [2.01, 2.15]", or "not judged".
std::string speedup_text(const Measurement& measurement);
/// "61.2 %" of peak, or "unknown".
std::string percent_text(const Measurement& measurement);

/// A stretch of prose that the ledger has something to say about.
struct Quotation {
  enum class Kind {
    kPlaceholder,  ///< known: `text` replaces it
    kUnknown,      ///< a placeholder that does not exist; `note` says which was meant
    kNotInLedger,  ///< a literal speedup that matches nothing measured
    kEmulated,     ///< a literal speedup that matches emulated times only, and does not say so
  } kind = Kind::kPlaceholder;
  std::size_t begin = 0, end = 0;  ///< [B] in the text searched
  std::string text;                ///< what to show
  std::string note;                ///< why it is marked
};

/// Where the prose stands; a number in the plan, or under a column headed "expected", is a prediction.
struct ProseContext {
  int section = 0;
  std::string column;
};

/// Everything that a worklog may quote from the ledger.
class LedgerNumbers {
 public:
  LedgerNumbers(const Project& project, const LedgerView& ledger);

  /// The value of `v2.speedup`, `v2.sectors`, `best.human.median`, `prediction.bottleneck`, `device` …; nothing: no such name.
  std::optional<std::string> value(const std::string& name) const;
  std::vector<std::string> names() const;

  /// Placeholders and suspect literals of one paragraph, in order, not overlapping.
  /// @param agreeing  takes the literal speedups that the ledger bears out, `note` says by what; null: not asked
  std::vector<Quotation> find(std::string_view prose, const ProseContext& context, std::vector<Quotation>* agreeing = nullptr) const;

 private:
  struct Known {
    double point, error;  // error: one standard error, same unit
    bool emulated;
    bool agrees(double claim) const;  // within max(5 %, 3 standard errors)
  };
  static std::optional<Known> ratio(const Arm* first, const Arm* second, bool emulated);
  void add_version(const std::string& name, const Measurement& measurement, const LedgerView& ledger);
  void add_counts(const std::string& name, const Explanation& explanation);
  void add_ratios(const LedgerView& ledger);
  void add_ratio(const Measurement& a, const Measurement& b);
  /// The measured ratio that a claim agrees with; nothing: there is none.
  std::optional<double> matching(double claim, bool emulated, const std::vector<std::string>& named) const;

  std::map<std::string, std::string> values_;
  std::vector<Known> ratios_;                        // speedups, and ratios of neighbouring versions
  std::map<std::string, const Measurement*> versions_;
  mutable int suggestions_left_ = 500;               // a file of a million misspellings gets no million suggestions
};

}  // namespace capstone
