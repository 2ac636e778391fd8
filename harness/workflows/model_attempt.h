#pragma once
// `llm`: the prompt for a model, and the filing and judging of its reply.
#include <optional>
#include <string>
#include <vector>

#include "harness/project/reply/prompt.h"
#include "harness/workflows/judge_and_record.h"

namespace capstone::workflows {

/// What the standard prompt of a project says. Both must outlive the result.
/// @param gpu  what a person calls the GPU of the data sheets that the prompt names ("h100"): the kernel will
///             be judged elsewhere. Empty: this machine's. @error no data sheet of that GPU
Result<PromptInput> standard_prompt(const Workspace& workspace, const Project& project,
                                    const std::string& gpu);

struct PromptRequest {
  bool feedback = false;        ///< with the last attempt's code, errors, counts, profile and times
  bool with_statement = false;  ///< with the problem's statement, which gives a way in
  std::string gpu;              ///< see standard_prompt()
};
/// The prompt for the project in the current folder. @error no attempt to give feedback on.
Result<std::string> prompt_for_model(const PromptRequest& request, const Workspace& workspace);

/// Where the prompt is written. @param out  a file; empty: llm/prompt.md of the project
Result<std::filesystem::path> write_prompt(const std::string& text, const std::string& out,
                                           const Workspace& workspace);

struct AddReplyRequest {
  std::string reply;            ///< the model's whole reply
  std::string model, settings;  ///< name and version; temperature, tools …
  std::string prompt;           ///< the file with the prompt that was sent; empty: llm/prompt.md
  std::string sent;             ///< the prompt itself, where it is in no file
  bool anyway = false;          ///< file it although it does not look like a model's reply
  bool judge_now = true;        ///< false: the student reads the code first
  JudgeOptions judge;
};
struct AddReplyOutcome {
  Attempt attempt;
  std::vector<std::string> libraries;     ///< that the code names
  std::filesystem::path folder;           ///< llm/attempt-N
  std::vector<Measurement> measurements;  ///< one; empty: no kernel in the reply, or not judged yet
  LedgerView ledger;                      ///< as it is afterwards
};
/// Files a reply as the next attempt, records it, and judges its code.
/// @param filed  called when the attempt is on record, before it is judged. May be empty
/// @error the reply is empty, or is surely no reply: a web page, an error of the provider, a file of the
///   project, the reply of an earlier attempt. Nothing is recorded then.
Result<AddReplyOutcome> add_reply(const AddReplyRequest& request, const Workspace& workspace,
                                  const ProgressSink& progress,
                                  const std::function<void(const AddReplyOutcome&)>& filed);

/// Withdraws an attempt that was filed by mistake: records it, and removes llm/attempt-N. Its number is not
/// used again. @return the folder that was removed.
/// @error no such attempt; something was judged from it.
Result<std::filesystem::path> withdraw_attempt(int number, const std::string& because,
                                               const Workspace& workspace);

}  // namespace capstone::workflows
