#pragma once
// Bundles: a project packed for another machine, and judged there.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/project/archive/bundle.h"
#include "harness/workflows/judge_and_record.h"

namespace capstone::workflows {

/// Packs what judging `candidates` needs. Their version names travel along, so that the record fits when it
/// comes home; their sources are kept. Files that are left out are reported as notes.
/// @return the file, its size and digest: the same project gives the same bytes.
Result<BundleReceipt> pack_candidates(const Workspace& workspace, const Project& project,
                                      const std::vector<CandidateVersion>& candidates,
                                      const std::filesystem::path& out, const ProgressSink& progress);

struct JudgeBundleRequest {
  std::filesystem::path file;
  std::filesystem::path out;  ///< where the result goes; empty: `file`.result.jsonl
  JudgeOptions judge;
  /// Accept a problem definition that is not the catalogue's: on a GPU its baseline runs outside the sandbox.
  /// Each record is labelled kForeignDefinition.
  bool trust_problem = false;
};

struct JudgedBundle {
  std::vector<Measurement> measurements;
  std::filesystem::path result;  ///< the ledger to bring home
};

/// Judges a bundle here, by the catalogue's definition of its problem.
/// @error a definition that is not the catalogue's, unless trusted; a kernel that is not a candidate of the
/// bundle.
Result<JudgedBundle> judge_bundle(const JudgeBundleRequest& request, const Workspace& workspace,
                                  const ProgressSink& progress);

}  // namespace capstone::workflows
