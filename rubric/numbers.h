#pragma once
// Numbers in prose: placeholders that the ledger fills in, and literal speedups that the ledger may
// contradict.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"
#include "rubric/speed_claims.h"

namespace capstone {

/// The environment record's value under the first of `keys` that it has, as text; empty when it has none of
/// them.
std::string environment_text(const Json& environment, std::initializer_list<const char*> keys);

/// The arm of the candidate itself; null when it was not timed.
const Arm* candidate_arm(const Measurement& measurement);
/// The arm of the first baseline (the one that gate two compares with); null when it was not timed.
const Arm* baseline_arm(const Measurement& measurement);

bool is_emulated(const Measurement& measurement);

/// The candidate's median: "1.23 ms", "1.23 ms emulated" for a time that proves nothing, or "not timed".
std::string median_text(const Measurement& measurement);
/// The speedup with its interval: "2.08x [2.01, 2.15]", or "not judged".
std::string speedup_text(const Measurement& measurement);
/// The percentage of the hardware's peak: "61.2 %", or "an unknown percentage".
std::string percent_text(const Measurement& measurement);

/// A range of the prose that quotes the ledger, or contradicts it.
struct Quotation {
  enum class Kind {
    kPlaceholder,  ///< a known placeholder: `text` replaces it
    kUnknown,      ///< an unknown or unclosed placeholder; `note` says what to write
    kNotInLedger,  ///< a literal speedup that matches no measurement
    kEmulated,     ///< a literal speedup that matches emulated times only, in a sentence that does not say so
  } kind = Kind::kPlaceholder;
  std::size_t begin = 0, end = 0;  ///< [B] in the searched text
  std::string text;                ///< what to show
  std::string note;                ///< why it is marked
};

/// Everything that a worklog may quote from the ledger.
class LedgerNumbers {
 public:
  LedgerNumbers(const Project& project, const LedgerView& ledger);

  /// The value of a placeholder: `v2.speedup`, `v2.sectors`, `best.human.median`, `prediction.bottleneck`,
  /// `device` … Empty when there is no placeholder of that name.
  std::optional<std::string> value(const std::string& name) const;
  /// The names of all placeholders, sorted.
  std::vector<std::string> names() const;

  /// The placeholders and the doubtful literal speedups of one paragraph, in order. They do not overlap.
  /// @param agreeing  receives the literal speedups that the ledger confirms; `note` is the measured value.
  ///                  May be null.
  std::vector<Quotation> find(std::string_view prose, const ProseContext& context,
                              std::vector<Quotation>* agreeing = nullptr) const;

 private:
  struct Known {
    double point, error;  // a ratio of times, and its standard error
    bool emulated;
    bool agrees(double claim, double slack) const;  // within max(slack, 3 standard errors)
  };
  static std::optional<Known> ratio(const Arm* first, const Arm* second, bool emulated);
  void add_version(const std::string& name, const Measurement& measurement, const LedgerView& ledger);
  void add_counts(const std::string& name, const Explanation& explanation);
  void add_ratios(const LedgerView& ledger);
  void add_ratio(const Measurement& a, const Measurement& b);
  /// The measured ratio that one of the claim's meanings agrees with; empty when no ratio agrees.
  std::optional<double> matching(const SpeedClaim& claim, bool emulated,
                                 const std::vector<std::string>& named) const;

  std::map<std::string, std::string> values_;
  std::vector<Known> ratios_;  // speedups, and ratios of neighbouring versions
  std::map<std::string, const Measurement*> versions_;
  mutable int suggestions_left_ = 500;  // bounds the work on a file with a million misspellings
};

}  // namespace capstone
