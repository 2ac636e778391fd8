#pragma once
// Blind double marking: measures whether two mentors give the same work the same mark. Second marks are
// stored separately and never change a student's mark.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// A submission under a code name, for a second mentor.
struct BlindCopy {
  std::string code, submission;
};

/// The marks that two graders gave one submission for one criterion.
struct MarkPair {
  std::string submission, criterion;
  std::string first_grader, second_grader;
  double first = 0, second = 0;
};

/// What became of second marks that were taken in.
struct MergedMarks {
  struct Conflict {
    Mark given, other;  ///< `given` stays and counts; `other` stands in the history only
  };
  int added = 0;  ///< count from now on
  std::vector<Conflict> conflicts;
};

struct CriterionAgreement {
  std::string criterion;
  int pairs = 0;
  double mean_difference = 0;  ///< mean of second minus first [marks]
  double mean_distance = 0;    ///< mean of the absolute differences [marks]
  /// Weighted, over the rubric's levels; empty without pairs, or if all are in one.
  std::optional<double> kappa;
};

struct AgreementReport {
  std::vector<CriterionAgreement> criteria;  ///< in the rubric's order
  std::vector<MarkPair> reconcile;           ///< pairs in different levels, the largest difference first
};

/// Cohen's kappa with quadratic weights over `categories` ordered categories. Empty when chance alone would
/// give full agreement, because kappa is undefined there.
/// @param ratings  pairs of categories, each from 0 to `categories` - 1
/// @source Cohen, "Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial
///         credit", 1968.
std::optional<double> weighted_kappa(const std::vector<std::pair<int, int>>& ratings, int categories);

AgreementReport agreement_of(const std::vector<MarkPair>& pairs, const Rubric& rubric);

/// The second marks in a cohort's gradebook.
class GraderAgreement {
 public:
  /// Opens the cohort's gradebook. @error as Gradebook::open().
  static Result<GraderAgreement> open(const std::filesystem::path& cohort);
  GraderAgreement(GraderAgreement&&) noexcept;
  ~GraderAgreement();

  /// Assigns `grader` up to `count` more submissions that they have neither marked nor been assigned,
  /// for first or second marks.
  /// Submissions with the fewest assignments come first. @error no grader; the database.
  Result<std::vector<BlindCopy>> assign(int count, const std::string& grader);
  /// Takes back the assignments of `grader` for which they have given no second mark. @return how many.
  Result<int> withdraw(const std::string& grader);
  /// The submission behind a copy and the grader it was assigned to: (submission, grader).
  /// @error no such copy.
  Result<std::pair<std::string, std::string>> copy_of(const std::string& code) const;
  /// Adds second marks, all or none. A mark that is already stored is not added again. A given mark is never
  /// replaced: its grader may have seen the first marks since.
  /// @error unknown criterion; points out of range; no reason.
  Result<MergedMarks> merge(const Rubric& rubric, const std::vector<Mark>& marks);
  /// For each submission and criterion, every pair of graders with their last marks for the present version.
  Result<std::vector<MarkPair>> pairs() const;

 private:
  explicit GraderAgreement(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace capstone
