#include "templates/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/text.h"
#include "harness/model/sizes_text.h"

namespace capstone {
namespace {

// The text that most versions have; empty if there is none.
std::string most_common(
    const std::map<std::string, std::set<std::pair<std::string, std::string>>>& versions) {
  const auto most = std::max_element(versions.begin(), versions.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  return most == versions.end() ? std::string() : most->first;
}

}  // namespace

VersionCounts::VersionCounts(const LedgerView& ledger) {
  std::map<std::string, std::set<Key>> by_device;
  const Json sizes = ledger.counted_sizes();
  sizes_ = sizes_text(sizes);
  const auto chosen = [&](const Explanation& e) { return !e.version.empty() && e.sizes == sizes; };
  for (const Explanation& e : ledger.explanations) {
    if (!chosen(e)) continue;
    counts_[{e.candidate, e.version}] = &e;
    if (e.floor) by_device[e.floor->device].insert({e.candidate, e.version});
  }
  device_ = most_common(by_device);
  for (const Explanation& e : ledger.explanations)
    if (chosen(e) && e.floor && e.floor->device == device_) floors_[{e.candidate, e.version}] = &*e.floor;
}

const Explanation* VersionCounts::of(const std::string& candidate, const std::string& version) const {
  const auto found = counts_.find({candidate, version});
  return found == counts_.end() ? nullptr : found->second;
}

const ModelledFloor* VersionCounts::floor(const std::string& candidate, const std::string& version) const {
  const auto found = floors_.find({candidate, version});
  return found == floors_.end() ? nullptr : found->second;
}

std::uint64_t bank_conflicts(const Explanation& counts) {
  const Traffic& shared = counts.total.shared;
  return shared.units > shared.ideal ? shared.units - shared.ideal : 0;
}

}  // namespace capstone
