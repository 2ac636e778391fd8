#include "harness/project/ledger/chain.h"

#include "harness/base/digest.h"

namespace capstone {

ChainFollower::Link ChainFollower::follow(const Line& line, const Header& header,
                                          std::optional<std::string>& damage) {
  damage.reset();
  Link link{sha256_hex(line.text), "?" + header.machine};
  if (auto twin = seen_.find(link.digest); twin != seen_.end()) {
    damage = "duplicate of line " + std::to_string(twin->second.line);
    return {link.digest, twin->second.root};
  }
  if (header.previous.empty()) {
    link.root = link.digest;
    if (header.seq != 1)
      damage = "broken chain: record " + std::to_string(header.seq) + " does not name its predecessor";
  } else if (auto before = seen_.find(header.previous); before == seen_.end()) {
    damage = "broken chain: the preceding record was changed or removed";
    // A record with the expected number that has no intact successor: probably the one that was changed.
    for (const auto& [digest, seen] : seen_)
      if (seen.machine == header.machine && seen.seq + 1 == header.seq && !seen.followed_by)
        damage = "broken chain: the preceding record was changed or removed (line " +
                 std::to_string(seen.line) + ", if it was changed)";
  } else {
    Seen& previous = before->second;
    link.root = previous.root;
    if (previous.machine != header.machine)
      damage =
          "broken chain: it follows line " + std::to_string(previous.line) + ", which another machine wrote";
    else if (previous.followed_by)
      damage = "broken chain: it follows line " + std::to_string(previous.line) + ", and so does line " +
               std::to_string(previous.followed_by);
    else if (previous.seq + 1 != header.seq)
      damage = "broken chain: record " + std::to_string(header.seq) + " follows record " +
               std::to_string(previous.seq) + " (line " + std::to_string(previous.line) + ")";
    if (!previous.followed_by) previous.followed_by = line.number;
  }
  seen_.emplace(link.digest, Seen{line.number, header.seq, header.machine, link.root, 0});
  return link;
}

}  // namespace capstone
