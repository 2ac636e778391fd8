#pragma once
// The append-only record of a project: one JSON object a line, each carrying the SHA-256 of the line before.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/ledger/record.h"

namespace capstone {

/// Everything the ledger says, sorted into what the report and the checks need.
struct LedgerView {
  std::vector<Record> records;             ///< in file order
  std::vector<Prediction> predictions;
  std::vector<Measurement> human;          ///< every measurement, in order
  std::vector<Measurement> llm;
  std::vector<Attempt> attempts;
  std::vector<std::string> damage;         ///< broken chain, torn line: each names its line

  /// The last measurement of each version, in version order; GPU measurements win over emulated ones.
  std::vector<const Measurement*> versions(const std::string& contestant) const;
  /// The best correct one by speedup (judged on a GPU), else the last correct one; null if none passed.
  const Measurement* best(const std::string& contestant) const;
  const Measurement* find(const std::string& version) const;
};

Result<LedgerView> read_ledger(const std::filesystem::path& path);

/// Appends one record: takes the ledger's lock, quarantines a torn last line to `ledger.torn-<time>`, links the chain,
/// writes the line whole, fsyncs. A full disk leaves the ledger as it was (the partial line is cut off again).
/// @param machine  id of this machine's chain.
/// @return         the record as written (seq, time, previous filled in).
Result<Record> append_record(const std::filesystem::path& ledger, const std::string& kind, const Json& body,
                             const std::string& machine);

/// Keeps `bytes` under `sources`/<sha256>.cu; returns the digest. Already there: nothing is written.
Result<std::string> keep_source(const std::filesystem::path& sources, std::string_view bytes);

/// What `capstone ledger --verify` reports: every broken link, changed source and torn line, each with its line number.
Result<std::vector<std::string>> verify_ledger(const std::filesystem::path& ledger, const std::filesystem::path& sources);

/// Merges records made on another machine (their own chain) into this ledger; ones already here are skipped.
/// @return how many were added.
Result<int> import_records(const std::filesystem::path& ledger, const std::filesystem::path& other);

}  // namespace capstone
