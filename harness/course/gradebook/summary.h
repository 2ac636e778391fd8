#pragma once
// What tables and pages need of a result, without its cases, samples and logs: ten thousand of these are read at once.
#include <optional>
#include <string>
#include <vector>

#include "harness/course/result.h"

namespace capstone {

/// One candidate's judgement, in brief.
struct Outcome {
  std::string candidate;            ///< "human" or "llm"
  std::string gate_one, gate_two;    ///< as label_of() says it: "PASS", "FASTER"
  bool correct = false;
  std::string backend, device;
  std::optional<Interval> speedup;   ///< judged by gate two; absent: not timed
  double percent_of_peak = 0;        ///< [%]; 0: unknown
  std::string labels;                ///< what a mentor should know, joined
};

struct ResultSummary {
  Origin origin;
  std::vector<Outcome> outcomes;
  std::optional<Prediction> prediction;   ///< the first that was recorded
  double suggested = 0;                   ///< marks; for mentors only
  const Outcome* of(const std::string& candidate) const;   ///< null: not judged
};

ResultSummary summary_of(const SubmissionResult& result);

void to_json(Json&, const ResultSummary&);
void from_json(const Json&, ResultSummary&);

}  // namespace capstone
