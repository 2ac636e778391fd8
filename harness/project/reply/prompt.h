#pragma once
// Builds the exact text that a language model gets.
#include <optional>
#include <string>
#include <string_view>

#include "harness/base/resources.h"
#include "harness/model/explanation.h"
#include "harness/model/problem.h"
#include "harness/model/record.h"

namespace capstone {

/// What the prompt may say about the GPU on which the kernel is judged. Zeros and empty texts are omitted.
struct GpuFacts {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  std::string arch;  ///< "sm_90a": the architecture passed to nvcc
  int multiprocessors = 0;
  double memory_bytes = 0;  ///< [B]
  double bandwidth = 0;     ///< [B/s], data sheet
  double peak = 0;          ///< [FLOP/s] of the problem's precision class, dense
  double l2_bytes = 0;      ///< [B]
};

/// The previous attempt and the judge's result.
struct Feedback {
  std::string code;
  Measurement measurement;
  std::optional<Explanation> counts = {};
  std::string profile = {};  ///< see describe_profile()
};

struct PromptInput {
  const Problem* problem = nullptr;
  const Resources* resources = nullptr;
  std::optional<GpuFacts> gpu;
  std::optional<Feedback> feedback;
  bool with_statement = false;  ///< also the problem's statement, which explains and gives a way in
  bool how_to_answer = true;    ///< false: the caller says it
};

/// Everything that the judge, `explain` and `profile` say about an attempt. Markdown.
std::string describe(const Feedback& feedback);

/// The prompt, from templates/prompts/kernel.md. The standard one gives the reference, the contract, the
/// tolerance and the GPU alone: what the model makes of them is its own idea. With feedback it ends with the
/// last attempt's code and the judge's result. The same input gives the same bytes.
///
/// @return  UTF-8 Markdown.
/// @error the template, reference.py or, where it is wanted, statement.md is missing; the template uses a
/// name that has no value.
Result<std::string> render_prompt(const PromptInput& input);

/// What a prompt for a kernel says about the form of the answer. @error the template is missing
Result<std::string> how_to_answer(const Resources& resources);

/// Whether a prompt was rendered with feedback on an earlier attempt.
bool has_feedback(std::string_view prompt);

/// A fenced Markdown block. Its fence is longer than any run of backticks inside, so the text cannot end it
/// early.
std::string fenced(std::string_view language, std::string_view text);

}  // namespace capstone
