#include "harness/course/gradebook/summary.h"

#include "harness/base/text.h"

namespace capstone {

const Outcome* ResultSummary::of(const std::string& candidate) const {
  for (const Outcome& outcome : outcomes)
    if (outcome.candidate == candidate) return &outcome;
  return nullptr;
}

ResultSummary summary_of(const SubmissionResult& r) {
  ResultSummary s;
  s.origin = r.origin;
  s.prediction = r.prediction;
  s.suggested = r.suggested_total();
  for (const Measurement& m : r.judged) {
    Outcome o{m.candidate,
              std::string(label_of(m.gate_one)),
              std::string(label_of(m.gate_two)),
              m.gate_one == GateOne::kPassed,
              std::string(recorded_name(m.backend)),
              {},
              {},
              0,
              join(m.labels, "; ")};
    if (auto device = m.environment.find("device"); device != m.environment.end() && device->is_string())
      o.device = *device;
    if (m.gate_two != GateTwo::kNotJudged && m.measured) {
      o.speedup = m.measured->speedup;
      o.percent_of_peak = m.measured->percent_of_peak;
    }
    s.outcomes.push_back(std::move(o));
  }
  return s;
}

void to_json(Json& json, const ResultSummary& s) {
  json = {{"origin", s.origin}, {"suggested", s.suggested}, {"outcomes", Json::array()}};
  if (s.prediction) json["prediction"] = *s.prediction;
  for (const Outcome& o : s.outcomes) {
    Json entry{{"candidate", o.candidate},
               {"gate_one", o.gate_one},
               {"gate_two", o.gate_two},
               {"correct", o.correct},
               {"backend", o.backend},
               {"device", to_utf8(o.device)},
               {"percent_of_peak", o.percent_of_peak},
               {"labels", to_utf8(o.labels)}};
    if (o.speedup) entry["speedup"] = {o.speedup->point, o.speedup->low, o.speedup->high};
    json["outcomes"].push_back(std::move(entry));
  }
}

void from_json(const Json& json, ResultSummary& s) {
  s.origin = json.value("origin", Json::object()).get<Origin>();
  s.suggested = json.value("suggested", 0.0);
  if (json.contains("prediction")) s.prediction = json["prediction"].get<Prediction>();
  for (const Json& entry : json.value("outcomes", Json::array())) {
    Outcome o{entry.value("candidate", ""),
              entry.value("gate_one", ""),
              entry.value("gate_two", ""),
              entry.value("correct", false),
              entry.value("backend", ""),
              entry.value("device", ""),
              {},
              entry.value("percent_of_peak", 0.0),
              entry.value("labels", "")};
    if (auto speedup = entry.find("speedup"); speedup != entry.end())
      o.speedup = Interval{speedup->at(0), speedup->at(1), speedup->at(2)};
    s.outcomes.push_back(std::move(o));
  }
}

}  // namespace capstone
