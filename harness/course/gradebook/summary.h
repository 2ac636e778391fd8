#pragma once
// The part of a result that tables and pages need, without its cases, samples and logs: a command may read
// ten thousand of these at once.
#include <optional>
#include <string>
#include <vector>

#include "harness/course/result.h"

namespace capstone {

/// A summary of one candidate's judgement.
struct Outcome {
  std::string candidate;           ///< one of kCandidates
  std::string gate_one, gate_two;  ///< the words of label_of(): "PASS", "FASTER"
  bool correct = false;
  std::string backend, device;
  std::optional<Interval> speedup;  ///< the speedup that gate two judged; empty when it was not timed
  double percent_of_peak = 0;       ///< [%]; 0: unknown
  std::string labels;               ///< the measurement's labels, joined
};

struct ResultSummary {
  Origin origin;
  std::vector<Outcome> outcomes;
  std::optional<Prediction> prediction;                   ///< the first that was recorded
  double suggested = 0;                                   ///< marks; for mentors only
  const Outcome* of(const std::string& candidate) const;  ///< null when the candidate was not judged
};

ResultSummary summary_of(const SubmissionResult& result);

void to_json(Json&, const ResultSummary&);
void from_json(const Json&, ResultSummary&);

}  // namespace capstone
