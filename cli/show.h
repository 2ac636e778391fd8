#pragma once
// Measurements as a person reads them.
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "harness/project/ledger/ledger.h"
#include "harness/model/record.h"

namespace capstone::cli {

/// The verdict table of one run of `measure`: one line a candidate, the baseline first.
std::string verdict_table(const std::vector<Measurement>& measurements, const Terminal& terminal);

/// What went wrong with one candidate: compiler error or mismatch, where, and a hint. Empty when gate one was passed.
/// @param verbose  with the compiler's whole output, with the first wrong elements one by one
std::string explain_failure(const Measurement& measurement, const Terminal& terminal, bool verbose);

/// One line: what to do next.
std::string next_step(const std::vector<Measurement>& measurements, const LedgerView& ledger);

ExitCode exit_code_of(const std::vector<Measurement>& measurements);

}  // namespace capstone::cli
