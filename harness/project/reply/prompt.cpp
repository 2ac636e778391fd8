#include "harness/project/reply/prompt.h"

#include <ctemplate/template.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/reply/feedback.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20;  // [B] of a statement or a reference

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

Result<std::string> text_of(const std::filesystem::path& path) {
  CAPSTONE_TRY(auto bytes, read_file(path, kMaxText));
  std::string text = replace_all(to_utf8(bytes), "\r\n", "\n");
  return std::string(trim(text));
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

using Values = std::map<std::string, std::string>;

Result<Values> values_for(const PromptInput& input) {
  const Problem& problem = *input.problem;
  CAPSTONE_TRY(auto statement, text_of(problem.folder / "statement.md"));
  CAPSTONE_TRY(auto reference, text_of(problem.folder / "reference.py"));
  return Values{{"TITLE", problem.title},
                {"BASELINE", baseline_of(problem)},
                {"STATEMENT", with_lower_headings(statement)},
                {"REFERENCE", fenced("python", reference)},
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
  return {{"CODE", fenced("cuda", feedback.code)}, {"VERDICT", describe_verdict(feedback.measurement)}};
}

// ctemplate replaces an unknown name by nothing. A prompt with a gap would be unfair, so this is an error.
Result<void> check_names(const std::string& text, const Values& values, const std::filesystem::path& path) {
  for (std::size_t at = text.find("{{"); at != std::string::npos; at = text.find("{{", at + 2)) {
    std::size_t end = text.find("}}", at);
    if (end == std::string::npos) return fail("{{ without a matching }}", path.string());
    std::string name = text.substr(at + 2, end - at - 2);
    bool marker = name.starts_with("#") || name.starts_with("/") || name.starts_with("!");
    if (!marker && !values.count(name)) return fail("no value for {{" + name + "}}", path.string());
  }
  return {};
}

void fill(const Values& values, ctemplate::TemplateDictionary& dictionary) {
  for (const auto& [name, value] : values) dictionary.SetValue(name, value);
}

}  // namespace

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
  std::filesystem::path path = input.resources->templates() / "prompts" / "kernel.md";
  CAPSTONE_TRY(auto source, read_file(path, kMaxText));
  CAPSTONE_TRY(auto values, values_for(input));
  Values feedback = feedback_values(input.feedback.value_or(Feedback{}));
  Values all = values;
  all.insert(feedback.begin(), feedback.end());
  CAPSTONE_CHECK(check_names(source, all, path));

  ctemplate::TemplateCache cache;
  if (!cache.StringToTemplateCache("kernel.md", source, ctemplate::DO_NOT_STRIP))
    return fail("the prompt's template cannot be parsed", path.string(), "install capstone again",
                ExitCode::kEnvironment);
  ctemplate::TemplateDictionary dictionary("prompt");
  fill(values, dictionary);
  if (input.problem->prepare) dictionary.ShowSection("PREPARE");
  dictionary.ShowSection(input.problem->fast_math ? "FAST_MATH" : "NO_FAST_MATH");
  if (input.feedback) {
    dictionary.ShowSection("HAS_FEEDBACK");
    fill(feedback, *dictionary.AddSectionDictionary("FEEDBACK"));
  }
  std::string prompt;
  if (!cache.ExpandWithData("kernel.md", ctemplate::DO_NOT_STRIP, &dictionary, nullptr, &prompt))
    return fail("the prompt's template cannot be expanded", path.string(), "install capstone again",
                ExitCode::kEnvironment);
  return prompt;
}

}  // namespace capstone
