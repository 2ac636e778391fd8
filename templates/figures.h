#pragma once
#include <map>
#include <string>
#include <vector>

#include "templates/blocks.h"
#include "templates/report.h"

namespace capstone {

/// One judgement and its position in the ledger.
struct LedgerEntry {
  const Measurement* measurement = nullptr;
  std::int64_t seq = 0;  ///< sequence number of the record; 0: unknown
  std::string time;      ///< UTC
};
/// All judgements of both candidates, in the ledger's order.
std::vector<LedgerEntry> ledger_entries(const LedgerView& ledger);

/// All figures that a worklog can show, by the name of their marker, and "environment" for the end of the
/// page.
std::map<std::string, Figure> make_figures(const ReportInput& input, const std::vector<Plot>& plots);

}  // namespace capstone
