#include <fmt/format.h>

#include "harness/base/text.h"
#include "rubric/worklog.h"

namespace capstone {

const std::array<SectionSpec, kWorklogSections>& worklog_sections() {
  static const std::array<SectionSpec, kWorklogSections> sections{{
      {1,
       "The problem and the plan",
       "What the reference computes, what should limit it, and what you plan to do. Write it before the "
       "first kernel.",
       {"What does the reference compute? Explain it to a classmate. Follow one output element back to its "
        "inputs.",
        "Which resource do you expect to be the bottleneck (memory, compute or latency), and which "
        "arithmetic says so? Count the bytes and the operations.",
        "How fast could the best possible kernel be on this GPU, and what would stop you from getting there?",
        "What will your first version do, and what do you already know is wrong with it?"},
       {"problem", "prediction", "reference"}},
      {2,
       "The by-hand attempt",
       "Each version: what you expected, what you measured, and what the difference taught you.",
       {"For each version: what did you change, and which observation (a percentage, a profile, a count) "
        "told you to?",
        "Where did a measurement contradict your expectation, and what do you believe now?",
        "What percentage of the hardware's peak is your best version, and why not more?",
        "Which change made the kernel slower, or broke it? What was the reason?"},
       {"versions", "climb", "failures", "explained-human"}},
      {3,
       "The model's attempt",
       "What you asked, what the model replied, and how its kernel was judged. A model's failure is a result "
       "too.",
       {"What did you tell the model in addition to the standard prompt, and why (or why nothing)?",
        "Read its code before you run it: which strategy did it choose, and would you have predicted its "
        "verdict?",
        "Did it compile and pass gate one on the first try? If not, what exactly was wrong in the code?",
        "What did the model do that you had not thought of, or miss that you had seen?"},
       {"attempts", "explained-llm"}},
      {4,
       "The head-to-head",
       "Both kernels side by side, and the mechanism behind the gap: bytes, instructions, occupancy, "
       "launches.",
       {"Who won, by how much, and does the interval allow you to say so?",
        "By which mechanism? Name the traffic, the instructions or the launches that only one of the kernels "
        "has, and say how you know.",
        "Compare your prediction from section 1 with what was measured. Where were you wrong?",
        "If a result is better than it should be, what explains it? If you do not know, say so."},
       {"head-to-head", "roofline", "samples", "predicted"}},
      {5,
       "What each got stuck on",
       "The failures, yours and the model's, and how you solved them. Hide nothing: the ledger shows them "
       "anyway.",
       {"What cost you the most time, and how did you finally solve it?",
        "What did the model get stuck on, and did feedback help it?",
        "With one more week, what would you try first, and what gain do you expect from it?"},
       {"stuck"}},
  }};
  return sections;
}

namespace {

constexpr std::string_view kPreamble =
    "<!--\n"
    "  Write your prose below each question; keep the five headings and their order.\n"
    "  Numbers come from the ledger: write {{{{v2.speedup}}}}, {{{{v2.median}}}}, {{{{v2.percent}}}},\n"
    "  {{{{best.human.speedup}}}}, {{{{attempt-1.speedup}}}}, {{{{prediction.bottleneck}}}} or\n"
    "  {{{{device}}}}, and the report fills them in. After `capstone explain` you can also use\n"
    "  {{{{v2.sectors}}}}, {{{{v2.wavefronts}}}}, {{{{v2.lanes}}}}, {{{{v2.moved}}}}, {{{{v2.intensity}}}}\n"
    "  and {{{{v2.dearest-line}}}}.\n"
    "  Each capstone marker below becomes a table or a plot. `capstone check` lists what is still missing.\n"
    "-->\n";

std::string section_text(const SectionSpec& spec) {
  std::string out = fmt::format("\n## {}. {}\n\n<!-- {} -->\n", spec.number, spec.title, spec.purpose);
  // The problem card opens section 1. In the other sections the prose comes first, and the figures support
  // it.
  if (spec.number == 1)
    for (std::string_view figure : spec.figures) out += fmt::format("\n<!-- capstone:{} -->\n", figure);
  for (std::string_view question : spec.questions) out += fmt::format("\n> Q: {}\n\n", question);
  if (spec.number != 1)
    for (std::string_view figure : spec.figures) out += fmt::format("\n<!-- capstone:{} -->\n", figure);
  return out;
}

}  // namespace

std::string worklog_scaffold(const Problem& problem) {
  std::string out =
      fmt::format("# You vs the machine: {}\n\n", problem.title.empty() ? problem.id : problem.title);
  out += fmt::format(kPreamble);
  for (const SectionSpec& spec : worklog_sections()) out += section_text(spec);
  return out;
}

}  // namespace capstone
