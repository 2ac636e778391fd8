#include "rubric/anomalies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "harness/base/ascii.h"
#include "harness/base/text.h"
#include "harness/model/labels.h"

namespace capstone {

namespace {

constexpr std::string_view kTensorLabel = "tensor-core";

// A kernel can exceed a roof for two reasons: it uses other hardware units than the roof assumes, or it does
// less work than was counted. Occupancy, launches and coalescing only bring a kernel closer to its roof, so
// these words are not listed.
constexpr std::string_view kPrecision[] = {"tensor core", "tensor-core", "precision", "bf16",
                                           "fp16",        "tf32",        "float16"};
constexpr std::string_view kLessWork[] = {
    "cache",         "l2",      "traffic", "bytes", "bandwidth", "reuse", "algebra", "fewer operations",
    "fewer multipl", "symmetr", "sparse",  "skip",  "compress",  "clock"};
constexpr std::string_view kAdmissions[] = {"do not know",   "don't know",  "cannot explain",
                                            "can't explain", "unexplained", "no explanation"};

template <std::size_t N>
bool has_any(const std::string& plain, const std::string_view (&words)[N]) {
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return plain.find(word) != std::string::npos; });
}

bool fits(const std::string& plain, const std::string& reason) {
  return has_any(plain, kPrecision) || (!reason.starts_with(kTensorLabel) && has_any(plain, kLessWork));
}

Anomaly::Told told(const Anomaly& anomaly, const Worklog& worklog) {
  std::vector<std::string> paragraphs;  // in lower case; only those that name the version
  for (const Paragraph& p : worklog.paragraphs)
    if (p.section >= 2 && names(p.text, anomaly.version)) paragraphs.push_back(ascii_lower(p.text));
  const bool explained =
      std::all_of(anomaly.reasons.begin(), anomaly.reasons.end(), [&](const std::string& reason) {
        return std::any_of(paragraphs.begin(), paragraphs.end(),
                           [&](const std::string& plain) { return fits(plain, reason); });
      });
  if (explained) return Anomaly::Told::kExplained;
  return std::any_of(paragraphs.begin(), paragraphs.end(),
                     [](const std::string& plain) { return has_any(plain, kAdmissions); })
             ? Anomaly::Told::kAdmitted
             : Anomaly::Told::kPassedOver;
}

}  // namespace

bool names(std::string_view text, std::string_view word) {
  auto part = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  if (word.empty()) return false;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; at += word.size())
    if ((at == 0 || !part(at - 1)) && !part(at + word.size())) return true;
  return false;
}

std::vector<Anomaly> anomalies_in(const LedgerView& ledger, const Worklog& worklog) {
  std::vector<Anomaly> anomalies;
  for (const char* candidate : {"human", "llm"})
    for (const Measurement* m : ledger.versions(candidate)) {
      if (m->gate_one != GateOne::kPassed) continue;  // a wrong result needs a fix, not an explanation
      Anomaly anomaly{
          m->version, {}, m->measured ? m->measured->percent_of_peak : 0, Anomaly::Told::kPassedOver};
      for (const std::string& label : m->labels)
        if (label.starts_with(kNeedsExplanation))
          anomaly.reasons.push_back(label.substr(kNeedsExplanation.size()));
      if (!anomaly.reasons.empty()) anomalies.push_back(std::move(anomaly));
    }
  for (Anomaly& s : anomalies) s.told = told(s, worklog);
  return anomalies;
}

std::string question_about(const Anomaly& anomaly) {
  const auto is_tensor = [](const std::string& reason) { return reason.starts_with(kTensorLabel); };
  std::vector<std::string> questions;
  if (!std::all_of(anomaly.reasons.begin(), anomaly.reasons.end(), is_tensor))
    questions.push_back(
        fmt::format("How can {} do this work in less time than the data sheet allows? Ask which of the "
                    "counted bytes it does not move, or which operations it does not execute.",
                    anomaly.version));
  if (std::any_of(anomaly.reasons.begin(), anomaly.reasons.end(), is_tensor))
    questions.push_back(
        fmt::format("In which precision does {} multiply and add? Ask how its result stays correct, and "
                    "where the idea comes from.",
                    anomaly.version));
  return join(questions, " ");
}

std::string describe(const Anomaly& anomaly) {
  return fmt::format(
      "{}: {}{}", anomaly.version,
      anomaly.percent_of_peak > 100
          ? fmt::format("{:.0f} % of the peak of its precision class; ", anomaly.percent_of_peak)
          : std::string(),
      join(anomaly.reasons, "; "));
}

}  // namespace capstone
