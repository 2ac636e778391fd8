#include "harness/workflows/pending_versions.h"

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/model/upgrade.h"
#include "harness/project/versions.h"

namespace capstone::workflows {

void add_pending_versions(const Project& project, LedgerView& ledger) {
  std::error_code code;
  for (const auto& task : fs::directory_iterator(project.root / ".capstone" / "remote", code)) {
    auto text = read_file(task.path() / "versions.json", 1u << 20);
    const Json named = text ? parse_recorded(*text) : Json();
    if (!named.is_array()) continue;
    for (const Json& entry : named) {
      Measurement m;
      m.candidate = entry.value("candidate", ""), m.version = entry.value("version", ""),
      m.source_sha256 = entry.value("source_sha256", "");
      ledger.of(m.candidate).push_back(std::move(m));
    }
  }
}

Result<void> name_versions(const fs::path& file, const LedgerView& ledger,
                           std::vector<CandidateVersion>& candidates) {
  Json named = Json::array();
  for (CandidateVersion& candidate : candidates) {
    CAPSTONE_TRY(std::string digest, sha256_file(candidate.source));
    if (candidate.version.empty()) {
      CAPSTONE_TRY(candidate.version, next_version(ledger, candidate.name, digest));
    }
    named.push_back(
        {{"candidate", candidate.name}, {"version", candidate.version}, {"source_sha256", digest}});
  }
  return write_file_atomic(file, named.dump());
}

}  // namespace capstone::workflows
