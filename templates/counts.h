#pragma once
// The counts of versions (explanations in the ledger), chosen so that they can be compared.
#include <map>
#include <string>
#include <utility>

#include "harness/project/ledger/ledger.h"

namespace capstone {

/// The last counts of each version at the sizes at which most versions were counted. Counts at other sizes
/// are left out. The ledger must outlive it.
class VersionCounts {
 public:
  explicit VersionCounts(const LedgerView& ledger);

  /// The counts of "human", "v2"; null: none at these sizes.
  const Explanation* of(const std::string& candidate, const std::string& version) const;
  /// The modelled lower bound on time; null: none on the device that most versions have one for.
  const ModelledFloor* floor(const std::string& candidate, const std::string& version) const;

  bool empty() const { return counts_.empty(); }
  const std::string& sizes() const { return sizes_; }    ///< "rows=64, cols=512"
  const std::string& device() const { return device_; }  ///< of the bounds; empty: there are none

 private:
  using Key = std::pair<std::string, std::string>;
  std::map<Key, const Explanation*> counts_;
  std::map<Key, const ModelledFloor*> floors_;
  std::string sizes_, device_;
};

/// Wavefronts of shared memory beyond the ideal: what bank conflicts cost.
std::uint64_t bank_conflicts(const Explanation& counts);

}  // namespace capstone
