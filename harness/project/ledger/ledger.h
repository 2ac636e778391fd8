#pragma once
// The append-only record of a project: one JSON object a line, each carrying the SHA-256 of the line before that the
// same machine wrote. A machine's chain begins with a record that names no previous one; a ledger may hold several
// chains of one machine (from several bundles judged there). Nothing is ever rewritten.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/explanation.h"
#include "harness/model/record.h"

namespace capstone {

/// Everything the ledger says, sorted into what the report and the checks need.
struct LedgerView {
  std::vector<Record> records;             ///< in file order
  std::vector<Prediction> predictions;
  std::vector<Measurement> human;          ///< every measurement, in order
  std::vector<Measurement> llm;
  std::vector<Attempt> attempts;
  std::vector<Explanation> explanations;   ///< every one, in order
  std::vector<std::string> damage;         ///< "line 7: broken chain: …", torn or unreadable lines, newer schemas

  /// The last measurement of each version, in version order; GPU measurements win over emulated ones, and any verdict
  /// over a machine's fault or "not judgeable". The pointers live as long as this view is not copied or changed.
  std::vector<const Measurement*> versions(const std::string& candidate) const;
  /// The best correct one of versions() by speedup (judged on a GPU), else the last correct one; null if none passed.
  const Measurement* best(const std::string& candidate) const;
  /// "v2" or "attempt-1", as versions() gives it; null if it was never measured.
  const Measurement* find(const std::string& version) const;
  /// What was said of a version when it was new: the first reason and the first expectation that any of its measurements has.
  /// Measuring it again, for whatever reason, changes neither.
  std::string reason(const std::string& candidate, const std::string& version) const;
  std::optional<double> expected_speedup(const std::string& candidate, const std::string& version) const;
  /// The last explanation of a candidate's version; null if it was never explained.
  const Explanation* explanation(const std::string& candidate, const std::string& version) const;
};

/// Reads all that can be read; damaged lines are listed in the view, never an error. @error no such file.
Result<LedgerView> read_ledger(const std::filesystem::path& path);

/// Appends one record: takes the ledger's lock, moves a torn last line to `ledger.torn-<time>.jsonl`, links the chain,
/// writes the line whole, fsyncs. A full disk leaves the ledger as it was (the partial line is cut off again).
/// @param machine  id of this machine's chain.
/// @return         the record as written (seq, time, previous filled in).
Result<Record> append_record(const std::filesystem::path& ledger, const std::string& kind, const Json& body,
                             const std::string& machine);

/// Keeps `bytes` under `sources`/<sha256>.cu; returns the digest. Already there: nothing is written.
Result<std::string> keep_source(const std::filesystem::path& sources, std::string_view bytes);

/// What `capstone ledger --verify` reports: every broken link, changed source and torn line, each with its line number.
Result<std::vector<std::string>> verify_ledger(const std::filesystem::path& ledger, const std::filesystem::path& sources);

/// SHA-256 of each whole line, in order: the last is the ledger's head. @error no such file.
Result<std::vector<std::string>> line_digests(const std::filesystem::path& ledger);

/// Which problem a project is about, as its capstone.yaml says.
struct PinnedProblem { std::string id, digest; };

/// Merges records made on another machine (their own chain) into this ledger, byte for byte; ones already here are
/// skipped. Their sources come along when they lie in `sources/` beside the other ledger. All or nothing; a torn last
/// line of the other ledger is left out.
/// @return how many were added.
/// @error  two different records stand at the same place of one chain (names both lines); the other ledger or one of
///         its sources is damaged; a record is of another problem, or begins another project (each names the line).
Result<int> import_records(const std::filesystem::path& ledger, const std::filesystem::path& other, const PinnedProblem& problem);

}  // namespace capstone
