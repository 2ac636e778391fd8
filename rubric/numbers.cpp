#include "rubric/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>
#include <set>

#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone {

std::string environment_text(const Json& environment, std::initializer_list<const char*> keys) {
  if (!environment.is_object()) return {};
  for (const char* key : keys) {
    auto found = environment.find(key);
    if (found == environment.end() || found->is_null()) continue;
    if (found->is_string()) return found->get<std::string>();
    return found->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return {};
}

bool is_emulated(const Measurement& m) { return m.backend != Backend::kCuda; }

const Arm* candidate_arm(const Measurement& m) {
  if (!m.measured) return nullptr;
  for (const Arm& arm : m.measured->arms)
    if (arm.name == m.candidate || arm.name == m.version) return &arm;
  return nullptr;
}

const Arm* baseline_arm(const Measurement& m) {
  if (!m.measured) return nullptr;
  for (const Arm& arm : m.measured->arms)
    if (arm.name != m.candidate && arm.name != m.version && arm.name != "A/A") return &arm;
  return nullptr;
}

std::string median_text(const Measurement& m) {
  const Arm* arm = candidate_arm(m);
  if (arm == nullptr) return "not timed";
  return format_time_ms(arm->median_ms.point) + (is_emulated(m) ? " emulated" : "");
}

namespace {
std::string interval_text(const Measurement& m) {
  const Interval& s = *m.measured->speedup;
  std::string low = format_speedup(s.low), high = format_speedup(s.high);
  return fmt::format("[{}, {}]", low.substr(0, low.size() - 1), high.substr(0, high.size() - 1));
}
bool has_speedup(const Measurement& m) { return m.measured && m.measured->speedup && !is_emulated(m); }
}  // namespace

std::string speedup_text(const Measurement& m) {
  if (!has_speedup(m)) return "not judged";
  return format_speedup(m.measured->speedup->point) + " " + interval_text(m);
}

std::string percent_text(const Measurement& m) {
  if (!m.measured || is_emulated(m) || m.measured->percent_of_peak <= 0) return "an unknown percentage";
  return fmt::format("{:.1f} %", m.measured->percent_of_peak);
}

namespace {

// One standard error from a 95 % interval.
double error_of(const Interval& interval) { return std::max(0.0, interval.high - interval.low) / (2 * 1.96); }

double relative_error(const Interval& interval) {
  return interval.point > 0 ? error_of(interval) / interval.point : 0;
}

std::vector<std::string> versions_named(const std::string& sentence) {
  static const std::regex pattern(R"(\b(v\d{1,4}|attempt-\d{1,4})\b)",
                                  std::regex::ECMAScript | std::regex::icase | std::regex::optimize);
  std::vector<std::string> names;
  for (std::sregex_iterator it(sentence.begin(), sentence.end(), pattern), last; it != last; ++it) {
    std::string name = it->str();
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    names.push_back(name);
    if (names.size() == 8) break;
  }
  return names;
}

// The name after "{{" where no "}}" follows: "v5.speedup"; empty where the text reads as no placeholder.
std::string opened_name(std::string_view rest) {
  std::size_t end = rest.find_first_not_of(' ');
  if (end == std::string_view::npos || !std::isalpha(static_cast<unsigned char>(rest[end]))) return {};
  while (end < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[end])) || rest[end] == '-' ||
                               (rest[end] == '.' && end + 1 < rest.size() && rest[end + 1] != ' ')))
    ++end;
  return std::string(rest.substr(0, end));
}

std::string bottleneck_when(const Prediction& p) {
  return p.before_first_measurement ? "before the first measurement" : "after the first measurement";
}

}  // namespace

LedgerNumbers::LedgerNumbers(const Project& project, const LedgerView& ledger) {
  for (const char* candidate : kCandidates) {
    for (const Measurement* m : ledger.versions(candidate)) {
      add_version(m->version, *m, ledger);
      versions_[m->version] = m;
      if (const Explanation* e = ledger.explanation(candidate, m->version)) add_counts(m->version, *e);
    }
    if (const Measurement* best = ledger.best(candidate)) {
      add_version(std::string("best.") + candidate, *best, ledger);
      if (const Explanation* e = ledger.explanation(candidate, best->version))
        add_counts(std::string("best.") + candidate, *e);
      values_[std::string("best.") + candidate + ".version"] = best->version;
    }
  }
  if (!ledger.predictions.empty()) {
    const Prediction& p = ledger.predictions.front();
    values_["prediction.bottleneck"] = p.bottleneck;
    values_["prediction.because"] = p.because;
    values_["prediction.speedup"] = p.speedup ? format_speedup(*p.speedup) : "none given";
    values_["prediction.when"] = bottleneck_when(p);
  }
  for (const Attempt& a : ledger.attempts) {
    std::string name = fmt::format("attempt-{}", a.number);
    values_[name + ".model"] = a.model;
    values_[name + ".settings"] = a.settings;
  }
  values_["problem"] = project.problem.id;
  values_["problem.title"] = project.problem.title;
  values_["problem.tier"] = fmt::format("{}", project.problem.tier);
  values_["versions"] = fmt::format("{}", ledger.versions("human").size());
  values_["attempts"] = fmt::format("{}", ledger.attempts.size());
  const Measurement* last = ledger.best("human");
  if (last == nullptr && !ledger.human.empty()) last = &ledger.human.back();
  if (last != nullptr) {
    std::string device = environment_text(last->environment, {"device", "gpu", "cpu"});
    values_["device"] = device.empty()       ? "unknown device"
                        : is_emulated(*last) ? "the CPU, without a GPU"
                                             : device;
    values_["driver"] = environment_text(last->environment, {"driver"});
    values_["tool"] = environment_text(last->environment, {"tool", "tool_version", "capstone"});
    const Arm* baseline = baseline_arm(*last);
    values_["baseline"] = baseline == nullptr       ? "not timed"
                          : baseline->label.empty() ? baseline->name
                                                    : baseline->label;
  }
  add_ratios(ledger);
}

void LedgerNumbers::add_version(const std::string& name, const Measurement& m, const LedgerView& ledger) {
  auto put = [&](const char* field, std::string value) { values_[name + "." + field] = std::move(value); };
  bool judged = has_speedup(m);
  put("speedup", judged ? format_speedup(m.measured->speedup->point) : "not judged");
  put("interval", judged ? interval_text(m) : "not judged");
  put("median", median_text(m));
  put("percent", percent_text(m));
  put("peak",
      m.measured && !is_emulated(m) && !m.measured->peak.empty() ? m.measured->peak : "an unknown peak");
  put("bound", m.measured && !m.measured->bound_by.empty() ? m.measured->bound_by : "unknown");
  put("gate-one", std::string(label_of(m.gate_one)));
  put("gate-two", std::string(label_of(m.gate_two)));
  put("reason", ledger.reason(m.candidate, m.version));
  const auto expected = ledger.expected_speedup(m.candidate, m.version);
  put("expected", expected ? format_speedup(*expected) : "none given");
  const Arm* baseline = baseline_arm(m);
  put("baseline", baseline == nullptr
                      ? "not timed"
                      : format_time_ms(baseline->median_ms.point) + (is_emulated(m) ? " emulated" : ""));
}

void LedgerNumbers::add_counts(const std::string& name, const Explanation& e) {
  auto put = [&](const char* field, std::string value) { values_[name + "." + field] = std::move(value); };
  const auto per_request = [](const Traffic& t) {
    return t.requests ? fmt::format("{:.1f} (ideal {:.1f})", t.units_per_request(), t.ideal_per_request())
                      : std::string("none");
  };
  put("sectors", per_request(e.total.global));
  put("wavefronts", per_request(e.total.shared));
  put("lanes", e.total.global.requests ? fmt::format("{:.1f}", e.total.global.lanes_per_request()) : "none");
  put("moved", format_bytes(e.moved_bytes()));
  put("compulsory", format_bytes(e.compulsory_bytes));
  put("intensity", fmt::format("{:.3g} FLOP/B", e.intensity()));
  put("barriers", fmt::format("{}", e.total.barriers));
  put("dearest-line", e.advice.empty() ? "none"
                                       : fmt::format("{}:{} ({})", e.advice.front().file,
                                                     e.advice.front().line, e.advice.front().pattern));
  if (e.floor)
    put("floor",
        fmt::format("{} on {} (modelled, not measured)", format_time_ms(e.floor->ms()), e.floor->place()));
}

std::optional<LedgerNumbers::Known> LedgerNumbers::ratio(const Arm* first, const Arm* second, bool emulated) {
  if (first == nullptr || second == nullptr || second->median_ms.point <= 0 || first->median_ms.point <= 0)
    return std::nullopt;
  double ratio = first->median_ms.point / second->median_ms.point;
  // The scatter of emulated times says nothing, so it widens nothing.
  double relative =
      emulated ? 0 : std::hypot(relative_error(first->median_ms), relative_error(second->median_ms));
  return Known{ratio, ratio * relative, emulated};
}

void LedgerNumbers::add_ratio(const Measurement& a, const Measurement& b) {
  if (auto known = ratio(candidate_arm(a), candidate_arm(b), is_emulated(a) || is_emulated(b)))
    ratios_.push_back(*known);
}

void LedgerNumbers::add_ratios(const LedgerView& ledger) {
  for (const std::vector<Measurement>* list : {&ledger.human, &ledger.llm, &ledger.together})
    for (const Measurement& m : *list) {
      if (has_speedup(m))
        for (double bound : {m.measured->speedup->point, m.measured->speedup->low, m.measured->speedup->high})
          ratios_.push_back({bound, error_of(*m.measured->speedup), false});
      const Arm* own = candidate_arm(m);
      if (own == nullptr) continue;
      for (const Arm& arm : m.measured->arms)
        if (auto known = ratio(&arm, own, is_emulated(m)); known && &arm != own) ratios_.push_back(*known);
    }
  for (const char* candidate : kCandidates) {
    std::vector<const Measurement*> versions = ledger.versions(candidate);
    for (std::size_t i = 1; i < versions.size(); ++i) {
      add_ratio(*versions[i - 1], *versions[i]);
      if (i > 1) add_ratio(*versions.front(), *versions[i]);
    }
  }
  for (std::size_t i = 0; i < kCandidates.size(); ++i)
    for (std::size_t j = i + 1; j < kCandidates.size(); ++j)
      if (ledger.best(kCandidates[i]) != nullptr && ledger.best(kCandidates[j]) != nullptr)
        add_ratio(*ledger.best(kCandidates[i]), *ledger.best(kCandidates[j]));
}

bool LedgerNumbers::Known::agrees(double claim, double relative) const {
  if (point <= 0) return false;
  const double slack = std::max(relative * point, 3 * error);
  // "1.5 times slower" quotes a speedup of 0.67, so the inverse counts too, with the same relative slack.
  return std::fabs(claim - point) <= slack || std::fabs(claim * point - 1) <= slack / point;
}

std::optional<double> LedgerNumbers::matching(const SpeedClaim& claim, bool emulated,
                                              const std::vector<std::string>& named) const {
  auto agrees = [&](const Known& known) {
    return known.emulated == emulated &&
           std::any_of(claim.ratios.begin(), claim.ratios.end(),
                       [&](double ratio) { return known.agrees(ratio, claim.slack); });
  };
  if (auto found = std::find_if(ratios_.begin(), ratios_.end(), agrees); found != ratios_.end())
    return found->point;
  // A sentence that names two versions can quote the ratio of their medians.
  for (const std::string& a : named)
    for (const std::string& b : named) {
      auto first = versions_.find(a), second = versions_.find(b);
      if (a == b || first == versions_.end() || second == versions_.end()) continue;
      bool counts_for_nothing = is_emulated(*first->second) || is_emulated(*second->second);
      auto known = ratio(candidate_arm(*first->second), candidate_arm(*second->second), counts_for_nothing);
      if (known && agrees(*known)) return known->point;
    }
  return std::nullopt;
}

std::optional<std::string> LedgerNumbers::value(const std::string& name) const {
  auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> LedgerNumbers::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) names.push_back(name);
  return names;
}

std::vector<Quotation> LedgerNumbers::find(std::string_view prose, const ProseContext& context,
                                           std::vector<Quotation>* agreeing) const {
  std::vector<Quotation> found;
  for (std::size_t at = 0; (at = prose.find("{{", at)) != std::string_view::npos;) {
    std::size_t close = prose.find("}}", at);
    if (close == std::string_view::npos || close - at > 80 || prose.find("{{", at + 2) < close) {
      const std::string open = opened_name(prose.substr(at + 2));
      if (!open.empty())
        found.push_back({Quotation::Kind::kUnknown, at, at + 2 + open.size(), "{{" + open,
                         fmt::format("it is not closed: write {{{{{}}}}}", trim(open))});
      at += 2 + open.size();
      continue;
    }
    std::string name(trim(prose.substr(at + 2, close - at - 2)));
    Quotation q{Quotation::Kind::kPlaceholder, at, close + 2, {}, {}};
    if (std::optional<std::string> known = value(name)) {
      q.text = known->empty() ? "not recorded" : *known;
    } else {
      q.kind = Quotation::Kind::kUnknown;
      q.text = "{{" + name + "}}";
      std::optional<std::string> near = suggestions_left_ > 0 ? nearest(name, names()) : std::nullopt;
      suggestions_left_ -= 1;
      q.note = near ? fmt::format("no such number in the ledger; did you mean {{{{{}}}}}?", *near)
                    : "no such number in the ledger";
    }
    found.push_back(std::move(q));
    at = close + 2;
  }
  for (const SpeedClaim& claim :
       speed_claims(context.with_code.empty() ? prose : context.with_code, context)) {
    const std::vector<std::string> named = versions_named(claim.sentence);
    Quotation q{Quotation::Kind::kNotInLedger, claim.begin, claim.end, claim.text, "not in the ledger"};
    if (auto measured = matching(claim, false, named)) {
      q.note = format_speedup(*measured);
      if (agreeing) agreeing->push_back(std::move(q));
      continue;
    }
    if (matching(claim, true, named)) {
      if (claim.sentence.find("emulat") != std::string::npos) continue;
      q.kind = Quotation::Kind::kEmulated;
      q.note = "an emulated time: it says nothing about speed";
    }
    found.push_back(std::move(q));
  }
  std::sort(found.begin(), found.end(),
            [](const Quotation& a, const Quotation& b) { return a.begin < b.begin; });
  return found;
}

}  // namespace capstone
