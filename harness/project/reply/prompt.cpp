#include "harness/project/reply/prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/reply/feedback.h"
#include "harness/project/reply/prompt_template.h"

namespace capstone {
namespace {

std::string check_sizes_of(const Problem& problem) {
  std::vector<std::string> parts;
  for (const Sizes& sizes : problem.check) parts.push_back("(" + to_string(sizes) + ")");
  parts.push_back("(" + to_string(problem.measure) + ")");
  return join(parts, ", ");
}

std::string precision_rule(Precision precision) {
  if (precision == Precision::kFp32)
    return "It is set so that honest float32 arithmetic passes in any order of summation, and TF32, float16 "
           "or bfloat16 "
           "arithmetic does not.";
  return fmt::format("It is set so that {} arithmetic or better passes, and the next lower class does not.",
                     name_of(precision));
}

std::string machine_of(const std::optional<GpuFacts>& gpu) {
  if (!gpu || gpu->name.empty()) return "unknown NVIDIA GPU (write for sm_75 and newer)";
  std::vector<std::string> facts = {gpu->name};
  if (!gpu->arch.empty()) facts.push_back(gpu->arch);
  if (gpu->multiprocessors > 0) facts.push_back(fmt::format("{} multiprocessors", gpu->multiprocessors));
  if (gpu->memory_bytes > 0) facts.push_back(format_bytes(gpu->memory_bytes) + " of memory");
  if (gpu->bandwidth > 0) facts.push_back(format_bandwidth(gpu->bandwidth) + " (data sheet)");
  if (gpu->peak > 0) facts.push_back(format_flops(gpu->peak) + " in this precision class (data sheet)");
  if (gpu->l2_bytes > 0) facts.push_back(format_bytes(gpu->l2_bytes) + " of L2 cache");
  return join(facts, ", ");
}

// Candidates are linked with the CUDA runtime only, whatever libraries the baseline uses.
std::string libraries() {
  return "Nothing but the CUDA runtime is linked: no cuBLAS, no cuDNN, no PyTorch. Headers that come with "
         "the CUDA Toolkit and "
         "need no linking may be included (cooperative_groups.h, cuda_fp16.h, mma.h, cuda_pipeline.h, "
         "cuda/barrier …). Calls "
         "into CUB or Thrust compile, but the result is then labelled as a library's. Inline PTX is allowed.";
}

std::string baseline_of(const Problem& problem) {
  if (problem.baselines.empty()) return "the problem's own";
  const std::string& name = problem.baselines.front().name;
  if (name == "eager")
    return "the module below, run by PyTorch in eager mode (a native CUDA implementation where the machine "
           "has no PyTorch)";
  if (name == "compile") return "the module below under torch.compile";
  std::string uses =
      problem.link.empty() ? "" : fmt::format(", which may use {}", fmt::join(problem.link, " and "));
  return fmt::format("`{}`, a native CUDA implementation of the same computation{}", name, uses);
}

// The statement's headings move two levels down, below the prompt's own headings; its code blocks stay
// unchanged.
std::string with_lower_headings(const std::string& markdown) {
  std::vector<std::string> lines = split(markdown, '\n');
  bool inside_fence = false;
  for (std::string& line : lines) {
    if (line.starts_with("```") || line.starts_with("~~~")) inside_fence = !inside_fence;
    if (!inside_fence && line.starts_with("#")) line = "##" + line;
  }
  return join(lines, "\n");
}

// The reference without the arms that call libraries: what others do is not part of the task.
std::string without_library_arms(const std::string& python) {
  std::vector<std::string> kept;
  bool inside_arm = false;
  for (const std::string& line : split(python, '\n')) {
    if (line.starts_with("class Library_")) {
      inside_arm = true;
      while (!kept.empty() && (kept.back().empty() || kept.back().starts_with('#'))) kept.pop_back();
    } else if (inside_arm && !line.empty() && line[0] != ' ') {
      inside_arm = false;
      kept.insert(kept.end(), 2, "");
    }
    if (!inside_arm) kept.push_back(line);
  }
  return join(kept, "\n");
}

using Values = std::map<std::string, std::string>;

Result<Values> values_for(const PromptInput& input) {
  const Problem& problem = *input.problem;
  CAPSTONE_TRY(auto reference, prompt_text_of(problem.folder / "reference.py"));
  return Values{{"TITLE", problem.title},
                {"BASELINE", baseline_of(problem)},
                {"REFERENCE", fenced("python", without_library_arms(reference))},
                {"HEADER", fenced("cuda", launch_header(problem))},
                {"CONTRACT", fenced("text", describe_contract(problem))},
                {"CHECK_SIZES", check_sizes_of(problem)},
                {"ATOL", fmt::format("{:g}", problem.tolerance.atol)},
                {"RTOL", fmt::format("{:g}", problem.tolerance.rtol)},
                {"PRECISION_RULE", precision_rule(problem.precision)},
                {"MACHINE", machine_of(input.gpu)},
                {"ARCH", problem.arch},
                {"LIBRARIES", libraries()}};
}

Values feedback_values(const Feedback& feedback) {
  return {{"CODE", fenced("cuda", feedback.code)}, {"VERDICT", describe(feedback)}};
}

}  // namespace

std::string describe(const Feedback& feedback) {
  std::string text = describe_verdict(feedback.measurement);
  if (feedback.counts) text += "\n### What its memory accesses cost\n\n" + describe_counts(*feedback.counts);
  if (!feedback.profile.empty()) text += "\n### What the profiler says\n\n" + feedback.profile;
  return text;
}

std::string fenced(std::string_view language, std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  std::string_view newline = text.ends_with('\n') || text.empty() ? "" : "\n";
  return fmt::format("{}{}\n{}{}{}", fence, language, text, newline, fence);
}

bool has_feedback(std::string_view prompt) {
  return prompt.find("\n## Your last attempt\n") != std::string_view::npos;
}

Result<std::string> render_prompt(const PromptInput& input) {
  const Problem& problem = *input.problem;
  CAPSTONE_TRY(auto known, values_for(input));
  PromptValues values{std::move(known), {}};
  const auto show = [&values](const std::string& section, Values inner = {}) {
    values.sections[section].push_back({std::move(inner), {}});
  };
  if (input.with_statement) {
    CAPSTONE_TRY(const std::string statement, prompt_text_of(problem.folder / "statement.md"));
    show("STATEMENT", {{"TEXT", with_lower_headings(statement)}});
  }
  if (problem.prepare) show("PREPARE");
  show(problem.fast_math ? "FAST_MATH" : "NO_FAST_MATH");
  if (input.feedback) {
    show("HAS_FEEDBACK");
    show("FEEDBACK", feedback_values(*input.feedback));
  }
  if (input.how_to_answer) {
    CAPSTONE_TRY(const std::string answer, how_to_answer(*input.resources));
    show("ANSWER", {{"TEXT", answer}});
  }
  return expand_prompt(*input.resources, "kernel.md", values);
}

Result<std::string> how_to_answer(const Resources& resources) {
  return expand_prompt(resources, "answer.md", {});
}

}  // namespace capstone
