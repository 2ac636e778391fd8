#pragma once
// Versions that are being judged on another machine have their names already, before the ledger has their
// records.
#include <filesystem>
#include <vector>

#include "harness/workflows/judge_and_record.h"

namespace capstone::workflows {

/// Adds the versions that are being judged elsewhere to the view, for next_version().
void add_pending_versions(const Project& project, LedgerView& ledger);

/// Gives every candidate without a version its name, and writes the names to `file`: the versions.json of a
/// remote task, which add_pending_versions() reads.
/// @param ledger  with pending versions
Result<void> name_versions(const std::filesystem::path& file, const LedgerView& ledger,
                           std::vector<CandidateVersion>& candidates);

}  // namespace capstone::workflows
