#pragma once
// Measurements as a person reads them.
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "harness/model/record.h"
#include "harness/project/ledger/ledger.h"

namespace capstone::cli {

/// The verdict table of one run of `measure`: one line for each candidate, the baseline first.
std::string verdict_table(const std::vector<Measurement>& measurements, const Terminal& terminal);

/// What went wrong with one candidate: compiler error or mismatch, where, a hint, and what the kernel
/// printed. When gate one was passed: what it printed in the first case, if anything.
/// @param verbose  with the compiler's whole output, with the first wrong elements one by one
std::string explain_failure(const Measurement& measurement, const Terminal& terminal, bool verbose);

/// " (11/13 cases; not check-0, x10)"; empty where none has run.
std::string cases_text(const Measurement& measurement);

/// One line: what to do next.
std::string next_step(const std::vector<Measurement>& measurements, const LedgerView& ledger);

/// Prints a judgement: the verdict table, what failed, and what to do next. @param next  empty: no such line
void print_verdict(const std::vector<Measurement>& measurements, const std::string& next,
                   const Terminal& terminal, bool verbose);

/// "TIE 1.01x [0.99, 1.02]": gate one, gate two and speedup of a judgement on one line.
std::string verdict_line(const Measurement& measurement);

}  // namespace capstone::cli
