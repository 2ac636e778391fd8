#pragma once
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"
#include "rubric/finding.h"
#include "rubric/worklog.h"

namespace capstone {

/// The findings that `capstone check` reports: everything that is missing or contradictory, sorted by section
/// (0 first) and, within a section, by severity (the most severe first). Reads human/kernel.cu and compares
/// it with the last measured version.
std::vector<Finding> review(const Project& project, const LedgerView& ledger, const Worklog& worklog);

}  // namespace capstone
