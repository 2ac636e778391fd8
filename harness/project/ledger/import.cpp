#include <map>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/model/upgrade.h"
#include "harness/project/ledger/chain.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/ledger/ledger_file.h"

namespace capstone {
namespace {

using Key = std::pair<std::string, std::int64_t>;  // root of the chain, seq

// Indexes the records of a ledger by their content and by their place in their chain.
struct Index {
  std::set<std::string> digests;
  std::map<Key, std::size_t> lines;
  bool has_init = false;
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
    const Json record = parse_recorded(line.text);
    index.has_init |= record.is_object() && record.value("kind", Json()) == Json("init");
  }
  return index;
}

// The reason why a record belongs to another project; none if it fits this one.
std::optional<std::string> foreign(const Json& record, const Index& ours, const PinnedProblem& problem) {
  const Json body = record.value("body", Json::object());
  if (!body.is_object()) return std::nullopt;
  auto text = [&](const char* key) {
    return body.contains(key) && body[key].is_string() ? body[key].get<std::string>() : std::string();
  };
  const std::string id = text("problem_id"), digest = text("problem_digest");
  if (!id.empty() && id != problem.id)
    return "it is for the problem " + id + ", but this project is about " + problem.id;
  if (!digest.empty() && digest != problem.digest)
    return "it is for another version of the problem " + problem.id + " (digest " + digest.substr(0, 12) +
           ", here " + problem.digest.substr(0, 12) + ")";
  if (record.value("kind", Json()) == Json("init") && ours.has_init)
    return "it is the first record of another project for the same problem";
  return std::nullopt;
}

// The other ledger keeps its sources in a folder next to it, as ours does.
Result<void> bring_source(const Line& line, const fs::path& from, const fs::path& to) {
  auto body = parse_recorded(line.text).value("body", Json::object());
  std::string digest = body.is_object() ? body.value("source_sha256", std::string()) : std::string();
  if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  fs::path source = from / (digest + ".cu");
  if (!fs::exists(source)) return {};  // verify() reports it; the record is still useful
  CAPSTONE_TRY(std::string bytes, read_file(source));
  if (sha256_hex(bytes) != digest)
    return fail("this source was changed after it was measured", source.string(),
                "nothing was imported; copy the folder again from the machine where it was measured");
  CAPSTONE_CHECK(keep_source(to, bytes));
  return {};
}

Error damaged(const fs::path& other, const Line& line, const std::string& why) {
  return {"the ledger to import is damaged: " + why, other.string() + ":" + std::to_string(line.number),
          "nothing was imported; copy the ledger again from the machine that wrote it", ExitCode::kUsage};
}

}  // namespace

Result<int> import_records(const fs::path& ledger, const fs::path& other, const PinnedProblem& problem) {
  CAPSTONE_TRY(const std::string theirs, read_file(other));
  CAPSTONE_TRY(LedgerFile file, LedgerFile::open(ledger));
  const Index ours = index_of(file.bytes());
  ChainFollower chain;
  std::vector<Line> added;
  for (const Line& line : lines_of(theirs)) {
    auto header = header_of(line.text);
    if (!header || !is_whole_json(line.text)) {
      if (!line.ended) break;  // a partial last line: the record was never finished
      return fail(damaged(other, line, "this line is not a record"));
    }
    std::optional<std::string> damage;
    auto link = chain.follow(line, *header, damage);
    if (damage) return fail(damaged(other, line, *damage));
    if (ours.digests.contains(link.digest)) continue;
    if (auto twin = ours.lines.find({link.root, header->seq}); twin != ours.lines.end())
      return fail("two different records have number " + std::to_string(header->seq) + " of machine " +
                      header->machine,
                  ledger.string() + ":" + std::to_string(twin->second) + " and " + other.string() + ":" +
                      std::to_string(line.number),
                  "a copy of this project was measured on the same machine; nothing was imported");
    if (auto why = foreign(parse_recorded(line.text), ours, problem))
      return fail("record " + std::to_string(header->seq) + " does not belong to this project: " + *why,
                  other.string() + ":" + std::to_string(line.number),
                  "nothing was imported; run the command in the project that these records belong to");
    added.push_back(line);
  }
  if (added.empty()) return 0;
  std::string text;
  for (const Line& line : added) {  // written only after all checks, so that a refusal changes nothing
    CAPSTONE_CHECK(bring_source(line, other.parent_path() / "sources", ledger.parent_path() / "sources"));
    text.append(line.text).append("\n");
  }
  CAPSTONE_CHECK(file.append(text));
  return static_cast<int>(added.size());
}

}  // namespace capstone
