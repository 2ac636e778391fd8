#pragma once
// Leaderboards of speed, one for each problem and device. They are not the grade.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

struct BoardEntry {
  std::string submission;
  std::string shown;  ///< a pseudonym, or the people's names
  /// 1 + number of kernels whose whole interval lies above this one's; can be shared.
  int rank = 0;
  Interval human;                 ///< speedup of the human kernel over the baseline
  std::optional<Interval> model;  ///< speedup of the model's kernel; empty when it was not timed
  std::string model_verdict;      ///< "FASTER", "WRONG", …; empty when there was no attempt
};

struct Board {
  std::string problem, device;
  std::vector<BoardEntry> entries;                ///< fastest first
  std::optional<std::string> closest_prediction;  ///< "Quiet Warp: 1.50x predicted, 1.48x measured"
  /// Of those slower than the baseline or than their model's kernel, the one with the best head-to-head mark.
  std::optional<std::string> best_explained_loss;
};

/// The boards of the submissions whose human kernel was timed, sorted by problem and device.
/// @param names  shows people's names instead of pseudonyms. A pseudonym is derived from the submission's
///               digest and does not reveal the person.
std::vector<Board> leaderboards(const std::vector<GradebookRow>& rows, const Rubric& rubric,
                                const std::map<std::string, ResultSummary>& summaries, bool names);

inline constexpr const char* kNotTheGrade =
    "This board is not the grade: speed alone earns no marks, and a race lost and reported honestly can earn "
    "all of them.";

}  // namespace capstone
