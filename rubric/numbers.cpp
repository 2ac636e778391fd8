#include "rubric/numbers.h"

#include <fmt/format.h>

#include <algorithm>
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
  return format_time_ms(arm->median_ms.point) + (is_emulated(m) ? " (emulated)" : "");
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
  if (!m.measured || is_emulated(m) || m.measured->percent_of_peak <= 0) return "unknown";
  return fmt::format("{:.1f} %", m.measured->percent_of_peak);
}

namespace {

// One standard error from a 95 % interval.
double error_of(const Interval& interval) { return std::max(0.0, interval.high - interval.low) / (2 * 1.96); }

double relative_error(const Interval& interval) {
  return interval.point > 0 ? error_of(interval) / interval.point : 0;
}

constexpr std::regex::flag_type kAnyCase = std::regex::ECMAScript | std::regex::icase | std::regex::optimize;

// std::regex recurses once per character, so every repetition below is bounded, and so is the length of every
// text. Matches "2.1x", "2.1×" and "1.8 times faster": a number and the word that makes it a speedup. "8 × 8"
// is a size and does not match.
const std::regex& claim_pattern() {
  static const std::regex pattern(
      R"((\d{1,6}(?:[.,]\d{1,6})?)(?:\s?(?:x|×)(?!\s?\d|[a-z_(])|\s{1,3}times\s{1,3}(?:as\sfast|faster|slower|quicker)))",
      kAnyCase);
  return pattern;
}

// Words that show that a sentence is about time.
bool speaks_of_speed(const std::string& sentence) {
  static const std::regex pattern(
      R"(\b(fast|slow|quick|speed|win|won|beat|lost|lose|gain|improv|ahead|behind|time))", kAnyCase);
  return std::regex_search(sentence, pattern);
}

// Words that show that a sentence is a prediction, a bound or a rule of thumb, and so not a claim about a
// measurement.
bool speaks_of_hope(const std::string& sentence) {
  static const std::regex pattern(
      R"(\b(expect|predict|guess|hop(e|ed|ing)\b|estimat|assum|should|would|could|might|may\b|theor|ideal|at most|up to|at best|bound|limit|ceiling|roof|if\b|target|goal|aim|want|need|suppose|in principle|potential|plan|said|says|claim|paper|reported))",
      kAnyCase);
  return std::regex_search(sentence, pattern);
}

bool speaks_of_measuring(const std::string& sentence) {
  static const std::regex pattern(R"(\b(measured|measurement|got|achieved|reached|came out)\b)", kAnyCase);
  return std::regex_search(sentence, pattern);
}

// "4x fewer bytes", "8x unrolled" and "2x the traffic" are factors, but not of time.
bool counts_something_else(std::string_view after) {
  static const std::regex pattern(
      R"(^\s*(-|the\s|as\s(many|much)|few|more|less|larg|small|big|wid|unroll|redund|reuse|read|writ|load|stor|vector|coars|block|tile|thread|warp|byte|memory|traffic|float|higher|lower|register|occup|iteration))",
      kAnyCase);
  static const std::regex anyway(R"(^\s*(more|less)\s+(time|speed))", kAnyCase);
  std::string head(after.substr(0, 40));
  return std::regex_search(head, pattern) && !std::regex_search(head, anyway);
}

// The sentence around [begin, end). A full stop inside a number does not end a sentence.
std::string sentence_around(std::string_view text, std::size_t begin, std::size_t end) {
  auto ends = [&](std::size_t i) {
    return (text[i] == '.' || text[i] == '!' || text[i] == '?' || text[i] == ';') &&
           (i + 1 >= text.size() || text[i + 1] == ' ');
  };
  constexpr std::size_t kReach = 300;  // [B] to each side
  std::size_t first = begin, farthest = std::min(text.size(), end + kReach);
  while (first > 0 && begin - first < kReach && !ends(first - 1)) --first;
  while (end < farthest && !ends(end)) ++end;
  return std::string(text.substr(first, end - first));
}

std::vector<std::string> versions_named(const std::string& sentence) {
  static const std::regex pattern(R"(\b(v\d{1,4}|attempt-\d{1,4})\b)", kAnyCase);
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

std::string bottleneck_when(const Prediction& p) {
  return p.before_first_measurement ? "before the first measurement" : "after the first measurement";
}

}  // namespace

LedgerNumbers::LedgerNumbers(const Project& project, const LedgerView& ledger) {
  for (const char* candidate : {"human", "llm"}) {
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
                        : is_emulated(*last) ? device + " (emulated)"
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
  put("peak", m.measured && !is_emulated(m) && !m.measured->peak.empty() ? m.measured->peak : "unknown");
  put("bound", m.measured && !m.measured->bound_by.empty() ? m.measured->bound_by : "unknown");
  put("gate-one", std::string(label_of(m.gate_one)));
  put("gate-two", std::string(label_of(m.gate_two)));
  put("reason", ledger.reason(m.candidate, m.version));
  const auto expected = ledger.expected_speedup(m.candidate, m.version);
  put("expected", expected ? format_speedup(*expected) : "none given");
  const Arm* baseline = baseline_arm(m);
  put("baseline", baseline == nullptr
                      ? "not timed"
                      : format_time_ms(baseline->median_ms.point) + (is_emulated(m) ? " (emulated)" : ""));
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
        fmt::format("{} on {} (modelled, not measured)", format_time_ms(e.floor->ms()), e.floor->device));
}

std::optional<LedgerNumbers::Known> LedgerNumbers::ratio(const Arm* first, const Arm* second, bool emulated) {
  if (first == nullptr || second == nullptr || second->median_ms.point <= 0 || first->median_ms.point <= 0)
    return std::nullopt;
  double ratio = first->median_ms.point / second->median_ms.point;
  double relative = std::hypot(relative_error(first->median_ms), relative_error(second->median_ms));
  return Known{ratio, ratio * relative, emulated};
}

void LedgerNumbers::add_ratio(const Measurement& a, const Measurement& b) {
  if (auto known = ratio(candidate_arm(a), candidate_arm(b), is_emulated(a) || is_emulated(b)))
    ratios_.push_back(*known);
}

void LedgerNumbers::add_ratios(const LedgerView& ledger) {
  for (const std::vector<Measurement>* list : {&ledger.human, &ledger.llm})
    for (const Measurement& m : *list) {
      if (has_speedup(m))
        for (double bound : {m.measured->speedup->point, m.measured->speedup->low, m.measured->speedup->high})
          ratios_.push_back({bound, error_of(*m.measured->speedup), false});
      const Arm* own = candidate_arm(m);
      if (own == nullptr) continue;
      for (const Arm& arm : m.measured->arms)
        if (auto known = ratio(&arm, own, is_emulated(m)); known && &arm != own) ratios_.push_back(*known);
    }
  for (const char* candidate : {"human", "llm"}) {
    std::vector<const Measurement*> versions = ledger.versions(candidate);
    for (std::size_t i = 1; i < versions.size(); ++i) {
      add_ratio(*versions[i - 1], *versions[i]);
      if (i > 1) add_ratio(*versions.front(), *versions[i]);
    }
  }
  if (ledger.best("human") != nullptr && ledger.best("llm") != nullptr)
    add_ratio(*ledger.best("human"), *ledger.best("llm"));
}

bool LedgerNumbers::Known::agrees(double claim) const {
  if (point <= 0) return false;
  double slack = std::max(0.05 * point, 3 * error);
  // "1.5 times slower" quotes a speedup of 0.67, so the inverse counts too, with the same relative slack.
  return std::fabs(claim - point) <= slack || std::fabs(claim * point - 1) <= slack / point;
}

std::optional<double> LedgerNumbers::matching(double claim, bool emulated,
                                              const std::vector<std::string>& named) const {
  auto agrees = [&](const Known& known) { return known.emulated == emulated && known.agrees(claim); };
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

namespace {

bool is_number_inside_word(std::string_view prose, std::size_t begin) {
  if (begin == 0) return false;
  unsigned char before = static_cast<unsigned char>(prose[begin - 1]);
  return std::isalnum(before) != 0 || before == '.' || before == '_' || before == '-' || before == '/' ||
         before >= 0x80;
}

// Code spans are already blanked, so their numbers never get here. For the others, the sentence decides.
bool is_claim(std::string_view prose, std::size_t begin, std::size_t end, const std::string& number,
              const ProseContext& context) {
  if (is_number_inside_word(prose, begin)) return false;
  std::string sentence = context.column + " " + sentence_around(prose, begin, end);
  if (speaks_of_hope(sentence)) return false;
  if (context.section == 1 && !speaks_of_measuring(sentence)) return false;
  if (counts_something_else(prose.substr(end))) return false;
  bool decimal = number.find_first_of(".,") != std::string::npos;
  return decimal || speaks_of_speed(sentence);
}

}  // namespace

std::vector<Quotation> LedgerNumbers::find(std::string_view prose, const ProseContext& context,
                                           std::vector<Quotation>* agreeing) const {
  std::vector<Quotation> found;
  for (std::size_t at = 0; (at = prose.find("{{", at)) != std::string_view::npos;) {
    std::size_t close = prose.find("}}", at);
    if (close == std::string_view::npos || close - at > 80) break;
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
  using Iterator = std::regex_iterator<std::string_view::const_iterator>;
  for (Iterator it(prose.begin(), prose.end(), claim_pattern()), last; it != last; ++it) {
    std::size_t begin = static_cast<std::size_t>(it->position(0)),
                end = begin + static_cast<std::size_t>(it->length(0));
    std::string number = (*it)[1].str();
    if (!is_claim(prose, begin, end, number, context)) continue;
    double claim = std::strtod(replace_all(number, ",", ".").c_str(), nullptr);
    std::string sentence = sentence_around(prose, begin, end);
    std::vector<std::string> named = versions_named(sentence);
    if (claim <= 0) continue;
    Quotation q{Quotation::Kind::kNotInLedger, begin, end, std::string(prose.substr(begin, end - begin)),
                "not in the ledger"};
    if (auto measured = matching(claim, false, named)) {
      q.note = format_speedup(*measured);
      if (agreeing) agreeing->push_back(std::move(q));
      continue;
    }
    if (matching(claim, true, named)) {
      if (sentence.find("emulat") != std::string::npos) continue;
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
