#pragma once
// Follows the links between records. Private to harness/project/ledger.
#include <map>
#include <optional>
#include <string>

#include "harness/project/ledger/lines.h"

namespace capstone {

/// Follows every chain of a ledger, line by line.
///
/// A chain begins with a record that names no predecessor. One machine may have several chains in one ledger:
/// what it measured in an unpacked bundle is a separate chain, imported next to those from other bundles.
class ChainFollower {
 public:
  struct Link {
    std::string digest;  ///< SHA-256 of the line
    std::string root;    ///< digest of the chain's first line; "?<machine>" where the chain is broken
  };

  /// Adds the next line. If its link is wrong, `damage` gets the reason, without the line number.
  Link follow(const Line& line, const Header& header, std::optional<std::string>& damage);

 private:
  struct Seen {
    std::size_t line = 0;
    std::int64_t seq = 0;
    std::string machine, root;
    std::size_t followed_by = 0;  ///< line of its successor
  };
  std::map<std::string, Seen> seen_;  ///< by digest of the line
};

}  // namespace capstone
