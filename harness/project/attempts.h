#pragma once
#include <optional>
#include <string>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"

namespace capstone {

/// One turn of the model, as bytes.
struct AttemptFiles {
  std::string prompt;                 ///< exactly what was sent
  std::string reply;                  ///< exactly what came back
  std::optional<std::string> kernel;  ///< the code extracted from the reply, if any was found
  bool python = false;                ///< the code is a .py file, not a .cu file
};

/// Stores one turn of the model permanently under llm/attempt-N/{prompt.md, reply.md, kernel.cu or kernel.py,
/// meta.json}.
///
/// N is one more than the highest number in use, in the folder or in the ledger: the number of a deleted
/// attempt is not used again. Creating the folder is the lock, so two commands that run at once get two
/// numbers.
///
/// @param attempt  model, settings, prompt_difference, extracted, no_code_because; the other fields are
///   filled in.
/// @return         the attempt with its number and digests, ready for the ledger (kind "attempt").
/// @error          the disk is full, the folder is not writable; the incomplete folder is removed.
Result<Attempt> file_attempt(const Project& project, const LedgerView& ledger, Attempt attempt,
                             const AttemptFiles& files);

}  // namespace capstone
