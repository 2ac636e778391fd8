#include <fmt/format.h>

#include "harness/base/text.h"
#include "rubric/worklog.h"

namespace capstone {

const std::array<SectionSpec, kWorklogSections>& worklog_sections() {
  static const std::array<SectionSpec, kWorklogSections> sections{{
      {1, "The problem and the plan",
       "What is computed, what should limit it, and what you mean to do, written before the first kernel.",
       {"What does the reference compute, in words a classmate would understand? Follow one output element back to its inputs.",
        "Which resource do you expect to be the bottleneck (memory, compute or latency), and by which arithmetic? Count the bytes and the "
        "operations.",
        "How fast could the best possible kernel be on this GPU, and what would stop you from getting there?",
        "What will your first version do, and what do you already know is wrong with it?"},
       {"problem", "prediction", "reference"}},
      {2, "The by-hand attempt",
       "Each version: what you expected, what you measured, and what the difference taught you.",
       {"For each version: what did you change, and which observation (a percentage, a profile, a count) told you to?",
        "Where did a measurement contradict your expectation, and what do you now believe instead?",
        "What percentage of the hardware's peak is your best version, and why not more?",
        "Which change made things slower or broke the kernel? What was the reason?"},
       {"versions", "climb", "failures", "explained-human"}},
      {3, "The model's attempt",
       "What you asked, what came back, and what became of it. A model's failure is a result like any other.",
       {"What did you tell the model beyond the standard prompt, and why (or why nothing)?",
        "Read its code before you run it: which strategy did it choose, and would you have predicted its verdict?",
        "Did it compile and pass gate one at the first try? If not, what exactly was wrong, in terms of the code?",
        "What did the model do that you had not thought of, or miss that you had seen?"},
       {"attempts", "explained-llm"}},
      {4, "The head-to-head",
       "Both kernels side by side, and the gap explained by mechanism: bytes, instructions, occupancy, launches.",
       {"Who won, by how much, and does the interval allow you to say so?",
        "By which mechanism? Name the traffic, instructions or launches that one kernel has and the other has not, and how you know.",
        "Compare your prediction from section 1 with what was measured. Where were you wrong?",
        "If a result is better than it should be, what explains it? If nothing does, say so."},
       {"head-to-head", "roofline", "samples", "predicted"}},
      {5, "What each got stuck on",
       "The failures, yours and the model's, and the way out. Nothing hidden: the ledger shows them anyway.",
       {"What cost you the most time, and what finally showed you the way?",
        "What did the model get stuck on, and did feedback help it?",
        "With one more week, what would you try first, and what do you expect it to bring?"},
       {"stuck"}},
  }};
  return sections;
}

namespace {

constexpr std::string_view kPreamble =
    "<!--\n"
    "  Write your prose below each question; keep the five headings and their order.\n"
    "  Numbers come from the ledger: write {{{{v2.speedup}}}}, {{{{v2.median}}}}, {{{{v2.percent}}}}, {{{{best.human.speedup}}}},\n"
    "  {{{{attempt-1.speedup}}}}, {{{{prediction.bottleneck}}}} or {{{{device}}}} and the report fills them in; after `capstone explain`\n"
    "  also {{{{v2.sectors}}}}, {{{{v2.wavefronts}}}}, {{{{v2.lanes}}}}, {{{{v2.moved}}}}, {{{{v2.intensity}}}} and {{{{v2.dearest-line}}}}.\n"
    "  Tables and plots appear where the capstone markers stand. `capstone check` says what is still missing.\n"
    "-->\n";

std::string section_text(const SectionSpec& spec) {
  std::string out = fmt::format("\n## {}. {}\n\n<!-- {} -->\n", spec.number, spec.title, spec.purpose);
  // The problem card opens section 1; everywhere else the prose comes first and the figures bear it out.
  if (spec.number == 1)
    for (std::string_view figure : spec.figures) out += fmt::format("\n<!-- capstone:{} -->\n", figure);
  for (std::string_view question : spec.questions) out += fmt::format("\n> Q: {}\n\n", question);
  if (spec.number != 1)
    for (std::string_view figure : spec.figures) out += fmt::format("\n<!-- capstone:{} -->\n", figure);
  return out;
}

}  // namespace

std::string worklog_scaffold(const Problem& problem) {
  std::string out = fmt::format("# You vs the machine: {}\n\n", problem.title.empty() ? problem.id : problem.title);
  out += fmt::format(kPreamble);
  for (const SectionSpec& spec : worklog_sections()) out += section_text(spec);
  return out;
}

}  // namespace capstone
