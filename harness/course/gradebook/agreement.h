#pragma once
// Marking twice, blind: do two mentors give the same work the same mark? Second marks are kept beside the first and count for nothing.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

/// A submission under another name.
struct BlindCopy { std::string code, submission; };

/// What two graders gave one submission for one criterion.
struct MarkPair {
  std::string submission, criterion;
  std::string first_grader, second_grader;
  double first = 0, second = 0;
};

struct CriterionAgreement {
  std::string criterion;
  int pairs = 0;
  double mean_difference = 0;        ///< second minus first [marks]
  double mean_distance = 0;          ///< of the absolute differences [marks]
  std::optional<double> kappa;       ///< weighted, over the rubric's levels; absent: no pairs, or all in one level
};

struct AgreementReport {
  std::vector<CriterionAgreement> criteria;   ///< in the rubric's order
  std::vector<MarkPair> reconcile;            ///< pairs in different levels, the farthest apart first
};

/// Cohen's kappa with quadratic weights over `categories` ordered ones. Nothing where chance alone would agree fully.
/// @source Cohen, "Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit", 1968.
std::optional<double> weighted_kappa(const std::vector<std::pair<int, int>>& ratings, int categories);

AgreementReport agreement_of(const std::vector<MarkPair>& pairs, const Rubric& rubric);

class GraderAgreement {
 public:
  /// @error as Gradebook::open().
  static Result<GraderAgreement> open(const std::filesystem::path& cohort);
  GraderAgreement(GraderAgreement&&) noexcept;
  ~GraderAgreement();

  /// Gives `grader` up to `count` more submissions that they have neither marked nor been given; those that fewest others were given first.
  Result<std::vector<BlindCopy>> assign(int count, const std::string& grader);
  /// Which submission a copy is of, and whose it is: (submission, grader). @error no such copy.
  Result<std::pair<std::string, std::string>> copy_of(const std::string& code) const;
  /// Adds second marks, all or nothing; what stands there already is not added again. @return how many were added.
  Result<int> merge(const Rubric& rubric, const std::vector<Mark>& marks);
  /// Every two graders' last marks for the present version of a submission.
  Result<std::vector<MarkPair>> pairs() const;

 private:
  explicit GraderAgreement(std::unique_ptr<detail::Database> database);
  std::unique_ptr<detail::Database> database_;
};

}  // namespace capstone
