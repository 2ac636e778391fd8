#pragma once
// The append-only record of a project: one JSON object per line. Each line carries the SHA-256 of the
// previous line that the same machine wrote. A machine's chain begins with a record that names no
// predecessor; a ledger may hold several chains of one machine (from several bundles judged there). Nothing
// is ever rewritten.
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/explanation.h"
#include "harness/model/hint.h"
#include "harness/model/record.h"

namespace capstone {

class JudgeKey;

/// Whose kernels a project has: the student's, the model's, and the one that student, model and profiler made
/// with each other. The third is marked in no criterion.
inline constexpr std::array<const char*, 3> kCandidates{"human", "llm", "together"};

/// Whose signatures a ledger's measurements have.
struct Voucher {
  std::string key;       ///< public key of the machine that judged; empty: these are not signed
  int measurements = 0;  ///< whose signatures by this key are right
};

/// "12 signed by gpu-lab (3f9a1b2c4d5e6f70), 3 by the student's own word".
/// @param names  of the machines that are known, by their public key
std::string text_of(const std::vector<Voucher>& vouchers, const std::map<std::string, std::string>& names);

/// The content of a ledger, sorted as the report and the checks need it.
struct LedgerView {
  std::vector<Record> records;  ///< in file order, without those that cannot be read
  std::vector<Prediction> predictions;
  std::vector<Measurement> human;  ///< every measurement, in order
  std::vector<Measurement> llm;
  std::vector<Measurement> together;
  std::vector<Attempt> attempts;  ///< without those that were withdrawn
  std::vector<Withdrawal> withdrawals;
  std::vector<Explanation> explanations;  ///< every one, in order
  std::vector<TakenHint> hints;           ///< the first use of each, in order
  /// "line 7: broken chain: …"; also partial or unreadable lines, newer schemas, and signatures that do not
  /// fit
  std::vector<std::string> damage;
  std::string stub_sha256;  ///< of the stub that `init` wrote; empty: the project began with other code

  /// The measurements of one of kCandidates; of any other name: the human's.
  const std::vector<Measurement>& of(std::string_view candidate) const;
  std::vector<Measurement>& of(std::string_view candidate);
  /// Whether it judged the stub that `init` wrote: nothing of the student's was measured.
  bool is_of_stub(const Measurement& measurement) const {
    return !stub_sha256.empty() && measurement.source_sha256 == stub_sha256;
  }
  /// The versions of the human kernel that are the student's work and have compiled somewhere, as in
  /// versions().
  std::vector<const Measurement*> built_versions() const;
  /// The last measurement of each version, in version order. GPU measurements win over emulated ones, and any
  /// verdict wins over a machine fault or "not judgeable". The pointers are valid until this view is copied
  /// or changed.
  std::vector<const Measurement*> versions(const std::string& candidate) const;
  /// The best correct entry of versions() by speedup (judged on a GPU), else the last correct one; null if
  /// none passed.
  const Measurement* best(const std::string& candidate) const;
  /// "v2", "attempt-1" or "t3", as in versions(); null if it was never measured.
  const Measurement* find(const std::string& version) const;
  /// The first reason and the first expectation that any measurement of the version has. Measuring it again
  /// does not change them.
  std::string reason(const std::string& candidate, const std::string& version) const;
  std::optional<double> expected_speedup(const std::string& candidate, const std::string& version) const;
  /// Who vouches for the measurements, in the order in which they first did.
  std::vector<Voucher> vouchers() const;
  /// The sizes at which most versions were counted: counts at other sizes cannot be compared with those. Null
  /// where nothing was counted.
  Json counted_sizes() const;
  /// The last explanation of a candidate's version at counted_sizes(), else at any sizes; null if it was
  /// never explained.
  const Explanation* explanation(const std::string& candidate, const std::string& version) const;
};

/// Reads everything that can be read. Damaged lines are listed in the view and are not an error. @error no
/// such file.
Result<LedgerView> read_ledger(const std::filesystem::path& path);

/// Appends one record: takes the ledger's lock, moves a partial last line to `ledger.torn-<time>.jsonl`,
/// links the chain, writes the whole line, calls fsync. If the disk is full, the ledger stays unchanged (the
/// partial line is removed).
/// @param machine  id of this machine's chain.
/// @param signer   signs the record; null: no machine vouches for it.
/// @return         the record as written (seq, time, previous filled in).
Result<Record> append_record(const std::filesystem::path& ledger, const std::string& kind, const Json& body,
                             const std::string& machine, const JudgeKey* signer = nullptr);

/// Stores `bytes` as `sources`/<sha256>.cu and returns the digest. An existing file is not written again.
Result<std::string> keep_source(const std::filesystem::path& sources, std::string_view bytes);

/// Findings of `capstone ledger --verify`: every broken link, changed source and partial line, with its line
/// number.
Result<std::vector<std::string>> verify_ledger(const std::filesystem::path& ledger,
                                               const std::filesystem::path& sources);

/// SHA-256 of each whole line, in order. The last one is the ledger's head. @error no such file.
Result<std::vector<std::string>> line_digests(const std::filesystem::path& ledger);

/// The problem of a project, from its capstone.yaml.
struct PinnedProblem {
  std::string id, digest;
};

/// Merges records made on another machine (their own chain) into this ledger, byte for byte. Records that are
/// already here are skipped. Their sources are copied if they are in `sources/` next to the other ledger. All
/// or nothing; a partial last line of the other ledger is ignored.
/// @return how many records were added.
/// @error  two different records have the same place in one chain (names both lines); the other ledger or one
///   of its sources is damaged; a record belongs to another problem, or starts another project (each names
///   the line).
Result<int> import_records(const std::filesystem::path& ledger, const std::filesystem::path& other,
                           const PinnedProblem& problem);

}  // namespace capstone
