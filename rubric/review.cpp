#include "rubric/review.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "rubric/anomalies.h"
#include "rubric/numbers.h"
#include "rubric/reasons.h"

namespace capstone {

namespace {

constexpr const char* kLedger = ".capstone/ledger.jsonl";

class Reviewer {
 public:
  Reviewer(const Project& project, const LedgerView& ledger, const Worklog& worklog)
      : project_(project), ledger_(ledger), worklog_(worklog) {}

  std::vector<Finding> review() {
    findings_ = worklog_.findings;
    project_file();
    ledger_damage();
    prediction();
    human_versions();
    kernel_file();
    model();
    questions();
    numbers();
    explanations();
    std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return std::pair(a.section, static_cast<int>(a.severity)) <
             std::pair(b.section, static_cast<int>(b.severity));
    });
    return std::move(findings_);
  }

 private:
  void add(int section, Severity severity, std::string what, std::string where, std::string hint) {
    findings_.push_back({section, severity, std::move(what), std::move(where), std::move(hint)});
  }

  void project_file() {
    if (project_.config.members.empty())
      add(0, Severity::kMissing, "no member is named", "capstone.yaml",
          "list the authors: `members:`, then `  - name: \"Ada\"`, with id and email if you have them");
    if (auto pinned = require_pinned_problem(project_); !pinned)
      add(0, Severity::kMissing, pinned.error().what, "problem/", pinned.error().hint);
    else if (auto header = read_file(project_.root / "problem" / "launch.h");
             header && *header != launch_header(project_.problem))
      add(0, Severity::kAdvice, "problem/launch.h is not what `init` wrote", "problem/launch.h",
          "restore the original file: the judge uses its own declaration of launch(), not this one");
  }

  void ledger_damage() {
    for (const std::string& damage : ledger_.damage)
      add(0, Severity::kContradiction, fmt::format("the ledger is damaged: {}", damage), kLedger,
          "do not repair it by hand; run capstone ledger --verify and tell your mentor what happened");
    std::set<std::string> digests;
    for (const std::vector<Measurement>* list : {&ledger_.human, &ledger_.llm})
      for (const Measurement& m : *list)
        if (!m.problem_digest.empty() && m.problem_digest != project_.config.problem_digest)
          digests.insert(m.version);
    for (const std::string& version : digests)
      add(0, Severity::kContradiction,
          fmt::format("{} was judged against another copy of the problem", version), kLedger,
          "measure it again with this project's pinned problem");
  }

  void prediction() {
    if (ledger_.predictions.empty()) {
      add(1, Severity::kMissing, "no prediction was recorded", kLedger,
          "run capstone predict memory|compute|latency --because \"…\"; it counts most before the first "
          "measurement");
      return;
    }
    const Prediction& first = ledger_.predictions.front();
    if (!first.before_first_measurement && explains_late_prediction(worklog_))
      add(1, Severity::kAdvice,
          "the prediction was recorded after the first measurement; section 1 says how that came about",
          kLedger, "your mentor reads both");
    else if (!first.before_first_measurement)
      add(1, Severity::kContradiction, "the prediction was recorded after the first measurement", kLedger,
          "its date cannot be changed: say in section 1 that the prediction came after the measurement, and "
          "what you expected before it");
    if (trim(first.because).empty())
      add(1, Severity::kAdvice, "the prediction gives no reason", kLedger,
          "give the arithmetic behind it in section 1");
  }

  void human_versions() {
    if (ledger_.built_versions().empty()) {
      add(2, Severity::kMissing,
          ledger_.human.empty() ? "the human kernel was never measured"
                                : "no version of the human kernel is more than the stub, and compiles",
          "human/kernel.cu", "run capstone measure -m \"why this version\"");
      return;
    }
    bool passed = std::any_of(ledger_.human.begin(), ledger_.human.end(),
                              [](const Measurement& m) { return m.gate_one == GateOne::kPassed; });
    if (!passed)
      add(2, Severity::kMissing, "the human kernel has never passed gate one", "human/kernel.cu",
          "run capstone measure: it shows the first wrong element; "
          "a correct slow kernel is worth more than a fast wrong one");
    std::vector<const Measurement*> versions = ledger_.built_versions();
    if (versions.size() < 2)
      add(2, Severity::kMissing, "there is only one version of the human kernel", "human/kernel.cu",
          "change one thing, say why with -m, and measure again: the worklog compares versions");
    std::vector<std::string> silent, causeless, unexpected;
    for (const Measurement* m : versions) {
      const std::string reason = ledger_.reason("human", m->version);
      if (reason.empty()) silent.push_back(m->version);
      if (names_no_cause(reason)) causeless.push_back(fmt::format("{} (\"{}\")", m->version, reason));
      if (m != versions.front() && !ledger_.expected_speedup("human", m->version))
        unexpected.push_back(m->version);
    }
    if (!silent.empty())
      add(2, Severity::kMissing, fmt::format("no reason was given for {}", join(silent, ", ")), kLedger,
          "give the reason in section 2; next time, use capstone measure -m \"…\"");
    if (!causeless.empty())
      add(2, Severity::kAdvice, fmt::format("the reason names no cause for {}", join(causeless, ", ")),
          kLedger, "say in section 2 what in the kernel made the difference, and how");
    if (!unexpected.empty())
      add(2, Severity::kAdvice,
          fmt::format("no expected speedup was recorded for {}", join(unexpected, ", ")), kLedger,
          "next time, guess before you measure: capstone measure --expect 1.5; a wrong guess teaches most");
  }

  void kernel_file() {
    if (ledger_.human.empty()) return;
    const std::string name = "human/" + project_.human_kernel().filename().string();
    Result<std::string> digest = sha256_file(project_.human_kernel());
    if (!digest) {
      add(2, Severity::kMissing, "human/kernel.cu is missing", "human/kernel.cu",
          fmt::format("the measured sources are kept under .capstone/sources/{}.cu",
                      ledger_.human.back().source_sha256));
      return;
    }
    two_kernels();
    const Measurement* handed_in = nullptr;
    for (const Measurement* m : ledger_.versions("human"))
      if (m->source_sha256 == *digest) handed_in = m;
    if (handed_in && handed_in->judged() && handed_in->gate_one != GateOne::kPassed)
      add(2, Severity::kMissing,
          fmt::format("{} is {}, which did not pass gate one: {}", name, handed_in->version,
                      label_of(handed_in->gate_one)),
          name, "mend it, or restore a version that passed from .capstone/sources");
    if (*digest == ledger_.human.back().source_sha256) return;
    auto same = std::find_if(ledger_.human.rbegin(), ledger_.human.rend(),
                             [&](const Measurement& m) { return m.source_sha256 == *digest; });
    if (same != ledger_.human.rend())
      add(2, Severity::kAdvice,
          fmt::format("{} is {}, not the last measured version {}", name, same->version,
                      ledger_.human.back().version),
          name, "this is fine if you want that version judged; say so in section 2");
    else
      add(2, Severity::kContradiction, name + " differs from every measured version", name,
          "run capstone measure -m \"…\", so that the kernel that you hand in is one that was judged");
  }

  // The Python file wins, for the judge as for us.
  void two_kernels() {
    std::error_code code;
    if (project_.human_kernel().extension() == ".py" &&
        std::filesystem::exists(project_.root / "human" / "kernel.cu", code))
      add(2, Severity::kAdvice, "human/kernel.py is judged, and human/kernel.cu is not", "human/",
          "remove the one that you do not hand in");
  }

  void model() {
    if (ledger_.attempts.empty() && ledger_.llm.empty()) {
      add(3, Severity::kMissing, "no attempt of a language model was recorded", "llm/",
          "run capstone llm prompt, then capstone llm add REPLY; a reply that fails is a full result");
      return;
    }
    for (const Attempt& attempt : ledger_.attempts) {
      std::string name = fmt::format("attempt-{}", attempt.number);
      bool judged = std::any_of(ledger_.llm.begin(), ledger_.llm.end(),
                                [&](const Measurement& m) { return m.version == name; });
      if (!judged && attempt.no_code_because.empty())
        add(3, Severity::kMissing, fmt::format("{} was recorded but never judged", name), "llm/" + name,
            "run capstone measure llm");
      if (trim(attempt.model).empty())
        add(3, Severity::kMissing, fmt::format("{} does not say which model it was", name), kLedger,
            "name the model and its settings in section 3; next time, use capstone llm add --model NAME");
    }
  }

  void questions() {
    for (const SectionSpec& spec : worklog_sections()) {
      const WorklogSection& section = worklog_.section(spec.number);
      if (!section.present) continue;
      for (const Question& q : section.questions)
        if (!q.answered)
          add(spec.number, Severity::kMissing, fmt::format("not answered: {}", q.text),
              fmt::format("worklog.md:{}", q.line), "write your answer below the question");
        else if (!q.content)
          add(spec.number, Severity::kMissing, fmt::format("answered without content: {}", q.text),
              fmt::format("worklog.md:{}", q.line),
              "say in a sentence what you saw and what you conclude; the same phrase everywhere is no "
              "answer");
      if (section.words == 0 && section.questions.empty())
        add(spec.number, Severity::kMissing, fmt::format("section \"{}\" is empty", spec.title),
            fmt::format("worklog.md:{}", section.line), "a few honest sentences are enough for a start");
    }
  }

  void numbers() {
    LedgerNumbers numbers(project_, ledger_);
    for (const Paragraph& p : worklog_.paragraphs)
      for (const Quotation& q : numbers.find(p.text, {p.section, p.column, p.row, p.with_code}))
        quotation(p, q);
  }

  void quotation(const Paragraph& p, const Quotation& q) {
    std::string where = fmt::format("worklog.md:{}", p.line);
    switch (q.kind) {
      case Quotation::Kind::kPlaceholder:
        return;
      case Quotation::Kind::kUnknown:
        add(p.section, Severity::kContradiction,
            fmt::format("{} placeholder {}", q.text.ends_with("}}") ? "unknown" : "unclosed", q.text), where,
            q.note);
        return;
      case Quotation::Kind::kNotInLedger:
        add(p.section, Severity::kContradiction, fmt::format("\"{}\" is not in the ledger", q.text), where,
            "write a placeholder such as {{v2.speedup}} instead, or measure it; "
            "if it is an expectation, say \"I expect\"");
        return;
      case Quotation::Kind::kEmulated:
        add(p.section, Severity::kAdvice,
            fmt::format("\"{}\" compares emulated times, which say nothing about speed", q.text), where,
            "say \"emulated\" in the same sentence, or measure on a GPU");
        return;
    }
  }

  void explanations() {
    for (const Anomaly& anomaly : anomalies_in(ledger_, worklog_)) {
      if (anomaly.told == Anomaly::Told::kExplained) continue;
      const bool admitted = anomaly.told == Anomaly::Told::kAdmitted;
      add(4, admitted ? Severity::kAdvice : Severity::kMissing,
          fmt::format("no explanation of {}", describe(anomaly)), kLedger,
          admitted
              ? "saying that you do not know is honest; a profile or an experiment could tell you more"
              : fmt::format("name {} in section 4 and give the mechanism, or say that you do not know it",
                            anomaly.version));
    }
  }

  const Project& project_;
  const LedgerView& ledger_;
  const Worklog& worklog_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> review(const Project& project, const LedgerView& ledger, const Worklog& worklog) {
  return Reviewer(project, ledger, worklog).review();
}

}  // namespace capstone
