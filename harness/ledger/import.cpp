#include <map>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/ledger/chain.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_file.h"

namespace capstone {
namespace {

using Key = std::pair<std::string, std::int64_t>;  // root of the chain, seq

// The records that a ledger holds, by what they are and by where they stand in their chain.
struct Index {
  std::set<std::string> digests;
  std::map<Key, std::size_t> lines;
};

Index index_of(std::string_view bytes) {
  Index index;
  ChainFollower chain;
  std::optional<std::string> ignored;
  for (const Line& line : lines_of(bytes)) {
    auto header = header_of(line.text);
    if (!header) continue;
    auto link = chain.follow(line, *header, ignored);
    index.digests.insert(link.digest);
    index.lines.emplace(Key{link.root, header->seq}, line.number);
  }
  return index;
}

// The other ledger's sources lie beside it, as ours do.
Result<void> bring_source(const Line& line, const fs::path& from, const fs::path& to) {
  auto body = Json::parse(line.text.begin(), line.text.end()).value("body", Json::object());
  std::string digest = body.is_object() ? body.value("source_sha256", std::string()) : std::string();
  if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  fs::path source = from / (digest + ".cu");
  if (!fs::exists(source)) return {};  // verify says so; the record is worth having all the same
  CAPSTONE_TRY(std::string bytes, read_file(source));
  if (sha256_hex(bytes) != digest)
    return fail("this source was changed after it was measured", source.string(),
                "nothing was imported; copy the folder again from the machine that measured it");
  CAPSTONE_CHECK(keep_source(to, bytes));
  return {};
}

Error damaged(const fs::path& other, const Line& line, const std::string& why) {
  return {"the ledger to import is damaged: " + why, other.string() + ":" + std::to_string(line.number),
          "nothing was imported; copy the ledger again from the machine that wrote it", ExitCode::kUsage};
}

}  // namespace

Result<int> import_records(const fs::path& ledger, const fs::path& other) {
  CAPSTONE_TRY(const std::string theirs, read_file(other));
  CAPSTONE_TRY(LedgerFile file, LedgerFile::open(ledger));
  const Index ours = index_of(file.bytes());
  ChainFollower chain;
  std::string added;
  int count = 0;
  for (const Line& line : lines_of(theirs)) {
    auto header = header_of(line.text);
    if (!header || !is_whole_json(line.text)) {
      if (!line.ended) break;  // torn: that record was never finished
      return fail(damaged(other, line, "this line is not a record"));
    }
    std::optional<std::string> damage;
    auto link = chain.follow(line, *header, damage);
    if (damage) return fail(damaged(other, line, *damage));
    if (ours.digests.contains(link.digest)) continue;
    if (auto twin = ours.lines.find({link.root, header->seq}); twin != ours.lines.end())
      return fail("two different records claim to be number " + std::to_string(header->seq) + " of machine " +
                      header->machine,
                  ledger.string() + ":" + std::to_string(twin->second) + " and " + other.string() + ":" +
                      std::to_string(line.number),
                  "a copy of this project was measured on the same machine; nothing was imported");
    CAPSTONE_CHECK(bring_source(line, other.parent_path() / "sources", ledger.parent_path() / "sources"));
    added.append(line.text).append("\n");
    ++count;
  }
  if (count == 0) return 0;
  CAPSTONE_CHECK(file.append(added));
  return count;
}

}  // namespace capstone
