#pragma once
// The exact text that a language model is given.
#include <optional>
#include <string>
#include <string_view>

#include "harness/base/resources.h"
#include "harness/model/record.h"
#include "harness/model/problem.h"

namespace capstone {

/// What the prompt may say about the GPU on which the kernel is judged. Zeros and empty texts are left out.
struct GpuFacts {
  std::string name;               ///< "NVIDIA H100 80GB HBM3"
  std::string arch;               ///< "sm_90a": what nvcc will be given
  int multiprocessors = 0;
  double memory_bytes = 0;        ///< [B]
  double bandwidth = 0;           ///< [B/s], data sheet
  double peak = 0;                ///< [FLOP/s] of the problem's precision class, dense
  double l2_bytes = 0;            ///< [B]
};

/// The attempt before, and what the judge said about it.
struct Feedback {
  std::string code;
  Measurement measurement;
};

struct PromptInput {
  const Problem* problem = nullptr;
  const Resources* resources = nullptr;
  std::optional<GpuFacts> gpu;
  std::optional<Feedback> feedback;
};

/// The prompt, from templates/prompts/kernel.md: the same facts that the student has, and no others. With feedback it
/// ends in the last attempt's code and the judge's words about it. The same input gives the same bytes.
///
/// @return  UTF-8 Markdown.
/// @error the template, statement.md or reference.py is missing; a name in the template that nothing fills.
Result<std::string> render_prompt(const PromptInput& input);

/// A fenced Markdown block whose fence is longer than any run of backticks inside, so that no text can leave it.
std::string fenced(std::string_view language, std::string_view text);

}  // namespace capstone
