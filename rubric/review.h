#pragma once
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"
#include "rubric/finding.h"
#include "rubric/worklog.h"

namespace capstone {

/// What `capstone check` says before handing in: everything missing or contradictory, by section (0 first), and within
/// a section the gravest first. Reads human/kernel.cu to compare it with the last measured version.
std::vector<Finding> review(const Project& project, const LedgerView& ledger, const Worklog& worklog);

}  // namespace capstone
