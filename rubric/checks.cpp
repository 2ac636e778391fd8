#include "rubric/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/ascii.h"
#include "harness/base/digest.h"
#include "harness/base/text.h"
#include "harness/project/reply/difference.h"
#include "rubric/anomalies.h"
#include "rubric/numbers.h"

namespace capstone::detail {

namespace {

double share_of(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double answered_share(const Sources& s, int number) {
  const WorklogSection& section = s.worklog.section(number);
  if (!section.present) return 0;
  std::size_t asked = worklog_sections()[static_cast<std::size_t>(number - 1)].questions.size();
  auto answered = static_cast<std::size_t>(std::count_if(section.questions.begin(), section.questions.end(),
                                                         [](const Question& q) { return q.content; }));
  // A student may remove the questions and write an essay instead: that counts as an answer if it is long
  // enough. Removing the questions without writing does not.
  constexpr std::size_t kWordsAQuestion = 40;
  if (section.questions.size() < asked && static_cast<std::size_t>(section.words) >= kWordsAQuestion * asked)
    answered += asked - section.questions.size();
  return share_of(answered, std::max(asked, section.questions.size()));
}

namespace {

// Sequence numbers of the records of one kind for which `wanted` is true.
template <class Wanted>
std::vector<std::int64_t> records_where(const Sources& s, std::string_view kind, Wanted wanted) {
  std::vector<std::int64_t> found;
  for (const Record& r : s.ledger.records)
    if (r.kind == kind && r.body.is_object() && wanted(r.body)) found.push_back(r.seq);
  return found;
}

std::vector<std::int64_t> records_of_version(const Sources& s, const std::string& version) {
  return records_where(s, "measurement",
                       [&](const Json& body) { return text_at(body, "version") == version; });
}

// Takes the ledger's word for a passed verdict from its serialization, so that the word is defined in one
// place only.
bool passed_gate_one(const Json& body) {
  static const std::string word = [] {
    Measurement passed;
    passed.gate_one = GateOne::kPassed;
    return text_at(Json(passed), "gate_one");
  }();
  return text_at(body, "gate_one") == word;
}

void append(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::string plural(std::size_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

bool section_speaks_of(const Sources& s, std::initializer_list<int> sections,
                       std::initializer_list<std::string_view> words) {
  return std::any_of(s.worklog.paragraphs.begin(), s.worklog.paragraphs.end(), [&](const Paragraph& p) {
    if (std::find(sections.begin(), sections.end(), p.section) == sections.end()) return false;
    std::string text = ascii_lower(p.text);
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != std::string::npos; });
  });
}

bool any_gpu(const Sources& s) {
  auto on_gpu = [](const Measurement& m) { return !is_emulated(m); };
  return std::any_of(s.ledger.human.begin(), s.ledger.human.end(), on_gpu) ||
         std::any_of(s.ledger.llm.begin(), s.ledger.llm.end(), on_gpu);
}

// Counts only what grading found when it judged the kernels again. Different hardware or a different baseline
// is not a contradiction.
Fact claims_hold(const Sources& s) {
  if (!s.rejudged) return {0, false, "not graded yet: nothing was judged again", {}};
  if (s.rejudged->contradictions.empty())
    return {1, true, "judging again contradicts nothing in the ledger", {}};
  return {0, true, join(s.rejudged->contradictions, "; "), {}};
}

Fact human_correct(const Sources& s) {
  if (s.rejudged && s.rejudged->human) {
    bool passed = *s.rejudged->human == GateOne::kPassed;
    return {passed ? 1.0 : 0.0,
            true,
            fmt::format("the submitted kernel, judged again: {}", label_of(*s.rejudged->human)),
            {}};
  }
  for (const Measurement& m : s.ledger.human)
    if (m.gate_one == GateOne::kPassed) {
      auto records = records_where(s, "measurement", [&](const Json& body) {
        return text_at(body, "candidate") == "human" && text_at(body, "version") == m.version &&
               passed_gate_one(body);
      });
      return {1, true,
              fmt::format("{} passed gate one on {} ({} backend)", m.version, plural(m.cases.size(), "case"),
                          recorded_name(m.backend)),
              records};
    }
  if (s.ledger.human.empty()) return {0, true, "the human kernel was never judged", {}};
  return {0, true,
          fmt::format("0 of {} passed; the last verdict is {}", plural(s.ledger.human.size(), "judgement"),
                      label_of(s.ledger.human.back().gate_one)),
          records_of_version(s, s.ledger.human.back().version)};
}

// The model's kernel has to be judged like the human's. It need not pass: a failure is a full result.
Fact both_judged(const Sources& s) {
  auto verdict_of = [&](const std::string& candidate) -> std::string {
    const Measurement* shown = s.ledger.best(candidate);
    if (!shown)
      for (const Measurement* m : s.ledger.versions(candidate))
        if (m->judged()) shown = m;
    return shown ? fmt::format("{}: {}", shown->version, label_of(shown->gate_one)) : "";
  };
  const std::string human = verdict_of("human"), model = verdict_of("llm");
  Fact fact{(human.empty() ? 0 : 0.5) + (model.empty() ? 0 : 0.5),
            true,
            join({human.empty() ? "the human kernel was never judged" : human,
                  model.empty() ? "the model's kernel was never judged" : model},
                 "; "),
            {}};
  if (!model.empty() && !model.ends_with(label_of(GateOne::kPassed)))
    fact.ask = "The model's kernel never passed gate one: does section 3 say why?";
  return fact;
}

Fact predicted_first(const Sources& s) {
  auto records = records_where(s, "prediction", [](const Json&) { return true; });
  if (s.ledger.predictions.empty()) return {0, true, "no prediction was recorded", {}};
  const Prediction& p = s.ledger.predictions.front();
  // A prediction that came true earns no extra mark. The measured bottleneck is shown so that the mentor can
  // compare.
  const Measurement* best = s.ledger.best("human");
  const std::string measured =
      best && best->measured && !best->measured->bound_by.empty()
          ? fmt::format("; measured: {}-bound ({})", best->measured->bound_by, best->version)
          : "";
  if (p.before_first_measurement)
    return {1, true,
            fmt::format("{}-bound was predicted before the first measurement{}", p.bottleneck, measured),
            records};
  return {0.3, true,
          fmt::format("{}-bound was predicted, but after the first measurement{}{}", p.bottleneck,
                      explains_late_prediction(s.worklog) ? " (section 1 says so)" : "", measured),
          records};
}

Fact answered(const Sources& s, int number) {
  const WorklogSection& section = s.worklog.section(number);
  if (!section.present) return {0, true, fmt::format("section {} is not in the worklog", number), {}};
  double met = answered_share(s, number);
  const auto phrases =
      static_cast<std::size_t>(std::count_if(section.questions.begin(), section.questions.end(),
                                             [](const Question& q) { return q.answered && !q.content; }));
  return {met,
          true,
          fmt::format("{} of {} answered, {}{}",
                      section.questions.size() - static_cast<std::size_t>(section.unanswered()),
                      plural(section.questions.size(), "question"),
                      plural(static_cast<std::size_t>(section.words), "word"),
                      phrases ? fmt::format("; {} without content", plural(phrases, "answer")) : ""),
          {}};
}

/// Of gate two's warm-up [s]; 0: not recorded.
double warm_up_seconds(const Measurement& m) {
  const Json::json_pointer place("/seconds/warming_up");
  return m.environment.contains(place) && m.environment[place].is_number()
             ? m.environment[place].get<double>()
             : 0;
}

// "; 312 samples in 5 runs after 1.5 s of warm-up, ratio 1.42x [1.40, 1.44]"
std::string timing_text(const Measurement& m) {
  const Arm* own = candidate_arm(m);
  if (!own) return {};
  std::size_t samples = 0;
  for (const auto& run : own->samples_ms) samples += run.size();
  const Arm* baseline = baseline_arm(m);
  const double warm_up = warm_up_seconds(m);
  return fmt::format(
      "; {} in {}{}, ratio {}{}", plural(samples, "sample"), plural(own->samples_ms.size(), "run"),
      warm_up > 0 ? fmt::format(" after {:.1f} s of warm-up", warm_up) : "", speedup_text(m),
      baseline == nullptr ? std::string()
                          : " over " + (baseline->label.empty() ? baseline->name : baseline->label));
}

Fact timed_or_explained(const Sources& s) {
  for (const Measurement& m : s.ledger.human)
    if (!is_emulated(m) && m.gate_two != GateTwo::kNotJudged)
      return {
          1, true,
          fmt::format("gate two was judged for {}: {}{}", m.version, label_of(m.gate_two), timing_text(m)),
          records_where(s, "measurement", [&](const Json& body) {
            return text_at(body, "version") == m.version && passed_gate_one(body);
          })};
  if (any_gpu(s)) return {0, true, "a GPU was used, but gate two was never judged for the human kernel", {}};
  const auto counted = records_where(s, "explanation", [](const Json&) { return true; });
  return {
      counted.empty() ? 0 : answered_share(s, 4), true,
      counted.empty()
          ? "no GPU: gate two was not judged here, and no counts are recorded (capstone explain)"
          : fmt::format("no GPU: gate two was not judged here; section 4 has to argue from the counts of {}",
                        plural(counted.size(), "explanation")),
      counted};
}

Fact same_problem(const Sources& s) {
  std::set<std::string> other;
  std::vector<std::int64_t> records;
  std::size_t all = 0;
  for (const auto* list : {&s.ledger.human, &s.ledger.llm})
    for (const Measurement& m : *list) {
      ++all;
      if (!m.problem_digest.empty() && m.problem_digest != s.project.config.problem_digest &&
          other.insert(m.version).second)
        append(records, records_of_version(s, m.version));
    }
  if (all == 0) return {0, true, "nothing was judged", {}};
  if (other.empty()) return {1, true, fmt::format("{} used the pinned copy", plural(all, "judgement")), {}};
  return {
      0, true,
      fmt::format("another copy of the problem was used for {}", join({other.begin(), other.end()}, ", ")),
      records};
}

Fact kernel_was_judged(const Sources& s) {
  Result<std::string> digest = sha256_file(s.project.human_kernel());
  if (!digest) return {0, true, "human/kernel.cu is missing", {}};
  for (const Measurement& m : s.ledger.human)
    if (m.source_sha256 == *digest)
      return {1, true, fmt::format("human/kernel.cu is {}", m.version), records_of_version(s, m.version)};
  return {0, true, "human/kernel.cu differs from every judged version", {}};
}

Fact ledger_whole(const Sources& s) {
  if (s.ledger.damage.empty())
    return {1,
            true,
            fmt::format("{}, each linked to the previous one", plural(s.ledger.records.size(), "record")),
            {}};
  return {0, true, join(s.ledger.damage, "; "), {}};
}

Fact two_versions(const Sources& s) {
  std::set<std::string> sources;
  for (const Measurement* m : s.ledger.built_versions()) sources.insert(m->source_sha256);
  return {std::min(1.0, share_of(sources.size(), 2)),
          true,
          fmt::format("{} of the human kernel", plural(sources.size(), "different version")),
          {}};
}

// The share of versions with at least one measurement for which `carries` is true.
template <class Carries>
Fact share_of_versions(const Sources& s, bool skip_first, const char* noun, Carries carries) {
  std::vector<std::string> with, without;
  std::vector<std::int64_t> records;
  std::vector<const Measurement*> versions = s.ledger.built_versions();
  for (std::size_t i = skip_first ? 1 : 0; i < versions.size(); ++i) {
    const std::string& version = versions[i]->version;
    bool has = std::any_of(s.ledger.human.begin(), s.ledger.human.end(),
                           [&](const Measurement& m) { return m.version == version && carries(m); });
    (has ? with : without).push_back(version);
    if (has) append(records, records_of_version(s, version));
  }
  if (with.empty() && without.empty()) return {0, true, "there are not enough versions", {}};
  std::string text = with.empty() ? fmt::format("no version has {}", noun)
                                  : fmt::format("{} for {}", noun, join(with, ", "));
  if (!with.empty() && !without.empty()) text += fmt::format("; none for {}", join(without, ", "));
  return {share_of(with.size(), with.size() + without.size()), true, text, records};
}

Fact reasons_given(const Sources& s) {
  return share_of_versions(s, false, "a reason",
                           [](const Measurement& m) { return !trim(m.reason).empty(); });
}
Fact expectations_given(const Sources& s) {
  return share_of_versions(s, true, "an expectation",
                           [](const Measurement& m) { return m.expected_speedup.has_value(); });
}

Fact versions_discussed(const Sources& s) {
  const LedgerNumbers numbers(s.project, s.ledger);
  std::vector<std::string> missing;
  std::vector<const Measurement*> versions = s.ledger.versions("human");
  std::size_t citing = 0;
  for (const Measurement* m : versions) {
    bool named = false, cites = false;
    for (const Paragraph& p : s.worklog.paragraphs) {
      if (p.section < 2 || !names(p.text, m->version)) continue;
      named |= p.section == 2 || p.section == 5;
      if (cites) continue;
      std::vector<Quotation> agreeing;
      auto found = numbers.find(p.text, {p.section, p.column}, &agreeing);
      cites = !agreeing.empty() || std::any_of(found.begin(), found.end(), [](const Quotation& q) {
        return q.kind == Quotation::Kind::kPlaceholder;
      });
    }
    citing += cites;
    if (!named) missing.push_back(m->version);
  }
  if (versions.empty()) return {0, true, "there are no versions", {}};
  return {share_of(versions.size() - missing.size(), versions.size()),
          true,
          (missing.empty() ? "every version is named" : fmt::format("not named: {}", join(missing, ", "))) +
              fmt::format("; {} of {} with a measurement in the same paragraph", citing,
                          plural(versions.size(), "version")),
          {}};
}

Fact model_tried(const Sources& s) {
  if (s.ledger.attempts.empty() && s.ledger.llm.empty()) return {0, true, "no attempt was recorded", {}};
  auto records = records_where(s, "attempt", [](const Json&) { return true; });
  for (const Measurement& m : s.ledger.llm) append(records, records_of_version(s, m.version));
  std::sort(records.begin(), records.end());
  records.erase(std::unique(records.begin(), records.end()), records.end());
  std::vector<std::string> outcomes;
  for (const Measurement* m : s.ledger.versions("llm"))
    outcomes.push_back(
        fmt::format("{}: {}", m->version, m->judged() ? label_of(m->gate_one) : "not judged here"));
  for (const Attempt& a : s.ledger.attempts)
    if (!a.no_code_because.empty())
      outcomes.push_back(fmt::format("attempt-{}: no code ({})", a.number, a.no_code_because));
  if (outcomes.empty()) return {0.5, true, "an attempt was recorded, but never judged", records};
  return {1, true, join(outcomes, "; "), records};
}

// Attempts whose prompt is not the standard one.
std::vector<const Attempt*> with_changed_prompt(const Sources& s) {
  std::vector<const Attempt*> changed;
  for (const Attempt& a : s.ledger.attempts)
    if (!a.prompt_difference.empty()) changed.push_back(&a);
  return changed;
}

Fact model_identified(const Sources& s) {
  auto records = records_where(s, "attempt", [](const Json&) { return true; });
  if (s.ledger.attempts.empty()) return {0, true, "no attempt was recorded", {}};
  std::size_t known = 0;
  std::set<std::string> models;
  for (const Attempt& a : s.ledger.attempts) {
    if (trim(a.model).empty() || a.prompt_sha256.empty() || a.reply_sha256.empty()) continue;
    ++known;
    models.insert(a.model);
  }
  std::string text = models.empty() ? "an attempt has no model, prompt or reply"
                                    : join({models.begin(), models.end()}, ", ");
  std::vector<std::string> changed;
  for (const Attempt* a : with_changed_prompt(s))
    changed.push_back(fmt::format("attempt-{} ({})", a->number, extent_of(a->prompt_difference)));
  Fact fact{share_of(known, s.ledger.attempts.size()), true, text, records};
  if (!changed.empty()) fact.text += "; the standard prompt was changed for " + join(changed, ", ");
  return fact;
}

// A prompt that makes the model lose fudges the result. The machine sees that a prompt differs, not how.
Fact prompt_told(const Sources& s) {
  std::vector<std::string> changed;
  for (const Attempt* a : with_changed_prompt(s)) changed.push_back(fmt::format("attempt-{}", a->number));
  if (changed.empty()) return {0, false, "no prompt was changed", {}};
  // The first question of section 3 asks for it; an essay without the questions has to name the prompt.
  const std::vector<Question>& questions = s.worklog.section(3).questions;
  const bool told = questions.empty() ? section_speaks_of(s, {3}, {"prompt"}) : questions.front().content;
  Fact fact{told ? 1.0 : 0.0,
            true,
            fmt::format("the standard prompt was changed for {}; section 3 {}", join(changed, ", "),
                        told ? "answers what was said beyond it" : "does not say so"),
            {}};
  fact.ask = "The prompt was changed: does section 3 say what the student added or left out, and why?";
  return fact;
}

Fact both_discussed(const Sources& s) {
  bool human = section_speaks_of(
      s, {4},
      {"my ", "mine", "human", "{{v", "by hand", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9"});
  bool model = section_speaks_of(s, {4}, {"model", "llm", "attempt", "machine"});
  return {(human ? 0.5 : 0) + (model ? 0.5 : 0),
          true,
          human && model ? "section 4 discusses both"
          : human        ? "section 4 does not discuss the model's kernel"
          : model        ? "section 4 does not discuss the human kernel"
                         : "section 4 discusses neither kernel",
          {}};
}

Fact prediction_revisited(const Sources& s) {
  bool yes = section_speaks_of(s, {4}, {"predict", "expected", "{{prediction."});
  return {yes ? 1.0 : 0.0,
          true,
          yes ? "section 4 mentions the prediction" : "section 4 does not mention the prediction",
          {}};
}

// An explanation earns the full share, "I do not know" half of it, and silence nothing.
Fact anomalies_explained(const Sources& s) {
  const std::vector<Anomaly> anomalies = anomalies_in(s.ledger, s.worklog);
  if (anomalies.empty()) return {0, false, "no result needs an explanation", {}};
  Fact fact;
  std::vector<std::string> told, questions;
  for (const Anomaly& anomaly : anomalies) {
    append(fact.records, records_of_version(s, anomaly.version));
    switch (anomaly.told) {
      case Anomaly::Told::kExplained:
        fact.met += 1;
        told.push_back(anomaly.version + " is explained by a mechanism");
        break;
      case Anomaly::Told::kAdmitted:
        fact.met += 0.5;
        told.push_back(
            fmt::format("{}; the worklog says that the author cannot explain it", describe(anomaly)));
        questions.push_back(question_about(anomaly));
        break;
      case Anomaly::Told::kPassedOver:
        told.push_back(fmt::format("{}; no section names a mechanism for it", describe(anomaly)));
        questions.push_back(question_about(anomaly));
        break;
    }
  }
  fact.met /= static_cast<double>(anomalies.size());
  fact.text = join(told, ". ");
  fact.ask = join(questions, " ");
  return fact;
}

Fact numbers_agree(const Sources& s) {
  LedgerNumbers numbers(s.project, s.ledger);
  constexpr std::size_t kShown = 6;
  std::vector<std::string> wrong, emulated, right;
  std::vector<Quotation> agreeing;
  for (const Paragraph& p : s.worklog.paragraphs)
    for (const Quotation& q : numbers.find(p.text, {p.section, p.column, p.row, p.with_code}, &agreeing)) {
      const std::string place = fmt::format("\"{}\" at worklog.md:{}", q.text, p.line);
      if (q.kind == Quotation::Kind::kNotInLedger) wrong.push_back(place);
      if (q.kind == Quotation::Kind::kEmulated) emulated.push_back(place);
    }
  std::vector<std::string> faults;
  if (!wrong.empty()) faults.push_back("not in the ledger: " + join(wrong, ", "));
  if (!emulated.empty())
    faults.push_back("emulated times, which the sentence does not say: " + join(emulated, ", "));
  if (!faults.empty()) return {0, true, join(faults, "; "), {}};
  if (agreeing.empty()) return {1, true, "no measured speedup is quoted as a number", {}};
  for (std::size_t i = 0; i < std::min(agreeing.size(), kShown); ++i)
    right.push_back(fmt::format("\"{}\", ledger {}", agreeing[i].text, agreeing[i].note));
  if (agreeing.size() > kShown) right.push_back(fmt::format("and {} more", agreeing.size() - kShown));
  return {1, true, "every quoted speedup is in the ledger: " + join(right, "; "), {}};
}

Fact failures_told(const Sources& s) {
  std::size_t failed = 0;
  std::vector<std::int64_t> records;
  for (const auto* list : {&s.ledger.human, &s.ledger.llm})
    for (const Measurement& m : *list) failed += m.gate_one != GateOne::kPassed;
  records = records_where(s, "measurement", [](const Json& body) { return !passed_gate_one(body); });
  if (failed == 0) return {1, true, "no judgement failed gate one", {}};
  const WorklogSection& section = s.worklog.section(5);
  std::string count = fmt::format("{} failed gate one", plural(failed, "judgement"));
  if (!section.present) return {0, true, count + "; section 5 was removed", records};
  if (section.words == 0) return {0, true, count + "; section 5 is empty", records};
  return {1, true,
          fmt::format("{}; section 5 has {}", count, plural(static_cast<std::size_t>(section.words), "word")),
          records};
}

}  // namespace

const std::map<std::string, CheckFunction>& checks() {
  static const std::map<std::string, CheckFunction> all{
      {"human_correct", human_correct},
      {"both_judged", both_judged},
      {"predicted_first", predicted_first},
      {"timed_or_explained", timed_or_explained},
      {"same_problem", same_problem},
      {"kernel_was_judged", kernel_was_judged},
      {"ledger_whole", ledger_whole},
      {"two_versions", two_versions},
      {"reasons_given", reasons_given},
      {"expectations_given", expectations_given},
      {"plan_answered", [](const Sources& s) { return answered(s, 1); }},
      {"by_hand_answered", [](const Sources& s) { return answered(s, 2); }},
      {"model_answered", [](const Sources& s) { return answered(s, 3); }},
      {"head_to_head_answered", [](const Sources& s) { return answered(s, 4); }},
      {"versions_discussed", versions_discussed},
      {"model_tried", model_tried},
      {"model_identified", model_identified},
      {"both_discussed", both_discussed},
      {"prediction_revisited", prediction_revisited},
      {"anomalies_explained", anomalies_explained},
      {"numbers_agree", numbers_agree},
      {"failures_told", failures_told},
      {"prompt_told", prompt_told},
      {"claims_hold", claims_hold},
      {"own_kernel", own_kernel},
      {"kernel_runs", kernel_runs},
      {"answers_have_content", answers_have_content},
  };
  return all;
}

}  // namespace capstone::detail
