#include <map>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/ledger/record_lines.h"
#include "harness/project/ledger/stored.h"

namespace capstone {
namespace {

// Checks each stored source once, however often it was measured.
class SourceCheck {
 public:
  explicit SourceCheck(fs::path folder) : folder_(std::move(folder)) {}

  /// Empty if the source exists and is unchanged.
  const std::string& look(const std::string& digest) {
    auto [entry, fresh] = known_.try_emplace(digest);
    if (fresh) entry->second = judge(digest);
    return entry->second;
  }

 private:
  std::string judge(const std::string& digest) const {
    const std::string name = "sources/" + digest + ".cu";
    if (digest.find('/') != std::string::npos) return "its source digest is not a digest";
    auto bytes = read_file(folder_ / (digest + ".cu"));
    if (!bytes) return "its source is missing: " + name;
    if (sha256_hex(*bytes) != digest) return "its source was changed after the measurement: " + name;
    return {};
  }
  fs::path folder_;
  std::map<std::string, std::string> known_;
};

}  // namespace

Result<std::vector<std::string>> verify_ledger(const fs::path& ledger, const fs::path& sources) {
  CAPSTONE_TRY(const std::string bytes, read_ledger_text(ledger));
  std::vector<std::string> findings;
  SourceCheck check(sources);
  std::map<std::pair<std::string, std::string>, std::pair<std::string, std::size_t>> named;
  for (const RecordLine& each : record_lines(bytes)) {
    auto find = [&](const std::string& what) { findings.push_back(at_line(each.line, what)); };
    for (const std::string& damage : each.damage) find(damage);
    if (!each.content.measurement) continue;
    const Measurement& m = *each.content.measurement;
    if (m.source_sha256.empty()) {
      find("the measurement does not name its source");
      continue;
    }
    if (const std::string& wrong = check.look(m.source_sha256); !wrong.empty()) find(wrong);
    auto [first, fresh] = named.try_emplace({m.candidate, m.version}, m.source_sha256, each.line.number);
    if (!fresh && first->second.first != m.source_sha256)
      find(m.version + " names another source than on line " + std::to_string(first->second.second));
  }
  return findings;
}

Result<std::vector<std::string>> line_digests(const fs::path& ledger) {
  CAPSTONE_TRY(std::string bytes, read_ledger_text(ledger));
  std::vector<std::string> digests;
  for (const Line& line : lines_of(bytes))
    if (line.ended) digests.push_back(sha256_hex(line.text));
  return digests;
}

}  // namespace capstone
