#pragma once
// Boards of speed, which are not the grade: one for each problem and device.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"

namespace capstone {

struct BoardEntry {
  std::string submission;
  std::string shown;               ///< a pseudonym, or the people
  int rank = 0;                    ///< one more than the number of kernels whose whole interval lies above this one's: shared where intervals overlap
  Interval human;                  ///< speedup
  std::optional<Interval> model;
  std::string model_verdict;       ///< "FASTER", "WRONG"; empty: no attempt
};

struct Board {
  std::string problem, device;
  std::vector<BoardEntry> entries;     ///< fastest first
  std::optional<std::string> closest_prediction;    ///< shown name and why: "Quiet Warp: 1.50x predicted, 1.48x measured"
  std::optional<std::string> best_explained_loss;   ///< of those slower than the reference or their model, by the head-to-head mark
};

/// Boards sorted by problem and device, of the submissions whose human kernel was timed.
/// @param names  people instead of pseudonyms. A pseudonym follows from what was handed in and tells nobody who it was.
std::vector<Board> leaderboards(const std::vector<GradebookRow>& rows, const Rubric& rubric, const std::map<std::string, ResultSummary>& summaries, bool names);

inline constexpr const char* kNotTheGrade = "This board is not the grade: raw speed earns nothing there, and a lost race told straight can earn everything.";

}  // namespace capstone
