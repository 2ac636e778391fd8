#pragma once
// A project on its way to another machine and its result on the way home: what `measure --bundle`, `--from-bundle` and `--on` share.
#include <filesystem>
#include <string>
#include <vector>

#include "cli/recording.h"
#include "harness/project/archive/bundle.h"

namespace capstone::cli {

/// Packs what judging `candidates` needs. Their version names travel along, so that the record fits when it comes home; their sources are kept.
/// What is left out is said.
/// @return the file, its size and digest: the same project gives the same bytes.
Result<BundleReceipt> pack_candidates(const Context& context, const Project& project, const std::vector<CandidateVersion>& candidates, const std::filesystem::path& out);

/// What became of a bundle.
struct JudgedBundle {
  std::vector<Measurement> measurements;
  std::filesystem::path result;      ///< the ledger to bring home
};

/// Judges a bundle here, by the catalogue's definition of its problem.
/// @param out            where the result goes; empty: `file`.result.jsonl
/// @param trust_problem  a definition that is not the catalogue's judges, too: its oracle runs in this process. Each record is labelled kForeignDefinition.
/// @error a definition that is not the catalogue's, unless trusted; a kernel that is no candidate's in the bundle.
Result<JudgedBundle> judge_bundle(const Context& context, const std::filesystem::path& file, const std::filesystem::path& out, const JudgeOptions& options, bool trust_problem);

}  // namespace capstone::cli
