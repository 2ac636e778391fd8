#pragma once
// Judging with a record in the project's ledger: what `measure`, `llm add` and bundles share.
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/options.h"
#include "harness/project/ledger/ledger.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// A request without candidates.
JudgeRequest request_of(const Problem& problem, const JudgeOptions& options);

/// One candidate with what the student said about this version.
struct CandidateVersion {
  std::string name;  ///< one of kCandidates
  std::filesystem::path source;
  std::string reason;
  std::optional<double> expected_speedup;
  std::string version;  ///< empty: derived from the ledger
};

/// The newest attempt of the model that has code.
std::optional<CandidateVersion> latest_attempt(const Project& project, const LedgerView& ledger);

/// Takes the project's path, and the user's home folder, out of every text of a measurement: a ledger is
/// handed in unchanged, and neither says anything to someone who works in the project.
/// @param home  empty: paths in it stay whole
void forget_places(Measurement& m, const std::filesystem::path& root, const std::string& home);

/// Judges the sources, keeps them, and appends one record for each candidate. A human kernel that does not
/// build, or is still the stub, gets no version and no record, nor does a kernel made together that is still
/// the same as one of the human's or the model's, unless this source has a version already. What passed
/// without a GPU gets a second record: its counts, an explanation at the problem's `emulate` size.
/// `--quick` leaves it out.
/// @param labels  of every record, before the record's own
/// @return what was recorded, in the order of the candidates
/// @error the machine's fault; a source changed while it was judged. Nothing is recorded then.
Result<std::vector<Measurement>> judge_and_record(const Project& project,
                                                  std::vector<CandidateVersion> candidates,
                                                  const JudgeOptions& options, const Workspace& workspace,
                                                  const ProgressSink& progress,
                                                  const std::vector<std::string>& labels = {});

/// The process exit code of a judgement: gate one failed, not judgeable here, or done.
ExitCode exit_code_of(const std::vector<Measurement>& measurements);

}  // namespace capstone::workflows
