#include <map>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/ledger/ledger_file.h"
#include "harness/project/ledger/record_lines.h"

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
  for (const RecordLine& each : record_lines(bytes)) {
    if (each.link.digest.empty()) continue;
    index.digests.insert(each.link.digest);
    index.lines.emplace(Key{each.link.root, each.seq}, each.line.number);
    index.has_init |= each.record && each.record->kind == "init";
  }
  return index;
}

// The reason why a record belongs to another project; none if it fits this one.
std::optional<std::string> foreign(const Record& record, const Index& ours, const PinnedProblem& problem) {
  const std::string id = text_at(record.body, "problem_id"), digest = text_at(record.body, "problem_digest");
  if (!id.empty() && id != problem.id)
    return "it is for the problem " + id + ", but this project is about " + problem.id;
  if (!digest.empty() && digest != problem.digest)
    return "it is for another version of the problem " + problem.id + " (digest " + digest.substr(0, 12) +
           ", here " + problem.digest.substr(0, 12) + ")";
  if (record.kind == "init" && ours.has_init)
    return "it is the first record of another project for the same problem";
  return std::nullopt;
}

// The other ledger keeps its sources in a folder next to it, as ours does.
Result<void> bring_source(const Record& record, const fs::path& from, const fs::path& to) {
  const std::string digest = text_at(record.body, "source_sha256");
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
  const std::vector<RecordLine> records = record_lines(theirs);
  std::vector<const RecordLine*> added;
  for (const RecordLine& each : records) {
    const Line& line = each.line;
    if (!line.ended && !is_whole_json(line.text))
      break;  // a partial last line: the record was never finished
    if (!each.damage.empty()) return fail(damaged(other, line, each.damage.front()));
    if (ours.digests.contains(each.link.digest)) continue;
    if (auto twin = ours.lines.find({each.link.root, each.seq}); twin != ours.lines.end())
      return fail("two different records have number " + std::to_string(each.seq) + " of machine " +
                      each.record->machine,
                  ledger.string() + ":" + std::to_string(twin->second) + " and " + other.string() + ":" +
                      std::to_string(line.number),
                  "a copy of this project was measured on the same machine; nothing was imported");
    if (auto why = foreign(*each.record, ours, problem))
      return fail("record " + std::to_string(each.seq) + " does not belong to this project: " + *why,
                  other.string() + ":" + std::to_string(line.number),
                  "nothing was imported; run the command in the project that these records belong to");
    added.push_back(&each);
  }
  if (added.empty()) return 0;
  std::string text;
  for (const RecordLine* each : added) {  // written only after all checks, so that a refusal changes nothing
    CAPSTONE_CHECK(
        bring_source(*each->record, other.parent_path() / "sources", ledger.parent_path() / "sources"));
    text.append(each->line.text).append("\n");
  }
  CAPSTONE_CHECK(file.append(text));
  return static_cast<int>(added.size());
}

}  // namespace capstone
