#pragma once
#include <optional>
#include <string>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"

namespace capstone {

/// What one turn of the model consists of, as bytes.
struct AttemptFiles {
  std::string prompt;                 ///< exactly what was sent
  std::string reply;                  ///< exactly what came back
  std::optional<std::string> kernel;  ///< the code taken out of it, if any was found
  bool python = false;                ///< it is a .py, not a .cu
};

/// Files one turn of the model under llm/attempt-N/{prompt.md, reply.md, kernel.cu or kernel.py, meta.json}, for ever.
///
/// N is one more than any number in use, in the folder or in the ledger: a deleted attempt's number does not come
/// back. Making the folder is the lock, so two commands at once get two numbers.
///
/// @param attempt  model, settings, prompt_difference, extracted, no_code_because; the rest is filled in.
/// @return         the attempt with number and digests, ready for the ledger (kind "attempt").
/// @error          the disk is full, the folder not writable; the half-made folder is removed.
Result<Attempt> file_attempt(const Project& project, const LedgerView& ledger, Attempt attempt,
                             const AttemptFiles& files);

}  // namespace capstone
