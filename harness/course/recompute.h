#pragma once
// What a submission says of itself, compared with what its own samples, counts, files and order give. Grading
// trusts the second.
#include <map>
#include <string>
#include <vector>

#include "harness/course/result.h"
#include "harness/project/checkin.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"

namespace capstone {

/// Bounds of an interval come from a bootstrap with a random seed. Two honest ones of the same samples differ
/// by some 2 % of the half-width; this share of it is allowed.
inline constexpr double kIntervalTolerance = 0.15;

struct Recomputed {
  /// The ledger with recomputed values wherever a recorded one does not follow: marks are suggested from it.
  LedgerView ledger;
  /// What is recorded and does not follow, a sentence each.
  std::vector<std::string> contradicted;
  /// What a person must look at although no record is false: there is no human kernel, or it was never
  /// measured.
  std::vector<std::string> missing;
  std::vector<std::string> notes;  ///< what could not be computed again
};

/// Compares a submission with itself.
/// @param problem  the mentor's definition; it gives costs, sizes and the precision of the data sheet's peak
/// @param judged   the handed-in kernels, judged on the mentor's machine
///
/// Records of GPU times: medians, speedups, intervals, verdict, percent of peak and the label of a time below
/// the data sheet's follow from samples_ms, sizes and the device. A record that does not give the number of
/// blocks has four in each restart, as all records of its time. Where the device is not in the table of data
/// sheets, its percentage stays as recorded. UNRESOLVED is always accepted: a judge may know more reasons for
/// it than samples show.
///
/// Files: the kernels, prompts and replies have the digests that were recorded; so have included files, where
/// the record has them. Order: a prediction counts as made before the first measurement if it stands and was
/// made before it.
Recomputed recompute(const Project& project, const Problem& problem, LedgerView ledger,
                     const std::vector<Measurement>& judged);

/// What only a comparison of a cohort's results shows, by submission: a measurement that another person's
/// submission holds, too, and a ledger without the record that a check-in of the same person saw at its end.
std::map<std::string, std::vector<std::string>> compare_cohort(
    const std::vector<const SubmissionResult*>& results, const std::vector<CheckIn>& checkins);

}  // namespace capstone
