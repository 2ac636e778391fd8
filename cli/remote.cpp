#include "cli/remote.h"

#include <algorithm>
#include <cctype>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/last_line.h"
#include "harness/base/text.h"
#include "harness/project/versions.h"
#include "harness/model/upgrade.h"

namespace capstone::cli {

Result<Destination> parse_destination(const std::string& text) {
  auto refuse = [&](const std::string& what) { return fail(what, {}, "--on ssh:HOST, --on ssh://USER@HOST:PORT, --on slurm or --on slurm:PARTITION"); };
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon), rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind != "ssh" && kind != "slurm") return refuse("neither ssh nor slurm: \"" + text + "\"");
  // A place that begins with a dash would be an option of ssh's, one with blanks two words.
  const bool plain = !rest.starts_with("-") && std::all_of(rest.begin(), rest.end(), [](unsigned char c) { return std::isgraph(c) && c != '\'' && c != '"'; });
  if (!plain || (kind == "ssh" && trim(rest).empty())) return refuse("no name of a machine: \"" + rest + "\"");
  Destination destination;
  destination.kind = kind == "ssh" ? Destination::Kind::kSsh : Destination::Kind::kSlurm;
  destination.place = kind == "ssh" && rest.starts_with("//") ? text : rest;
  return destination;
}

void add_pending_versions(const Project& project, LedgerView& ledger) {
  std::error_code code;
  for (const auto& task : fs::directory_iterator(project.root / ".capstone" / "remote", code)) {
    auto text = read_file(task.path() / "versions.json", 1u << 20);
    const Json named = text ? parse_recorded(*text) : Json();
    if (!named.is_array()) continue;
    for (const Json& entry : named) {
      Measurement m;
      m.candidate = entry.value("candidate", ""), m.version = entry.value("version", ""), m.source_sha256 = entry.value("source_sha256", "");
      (m.candidate == "llm" ? ledger.llm : ledger.human).push_back(std::move(m));
    }
  }
}

Result<void> name_versions(const fs::path& file, const LedgerView& ledger, std::vector<CandidateVersion>& candidates) {
  Json named = Json::array();
  for (CandidateVersion& candidate : candidates) {
    CAPSTONE_TRY(std::string digest, sha256_file(candidate.source));
    if (candidate.version.empty()) {
      CAPSTONE_TRY(candidate.version, next_version(ledger, candidate.name, digest));
    }
    named.push_back({{"candidate", candidate.name}, {"version", candidate.version}, {"source_sha256", digest}});
  }
  return write_file_atomic(file, named.dump());
}

std::string last_words(std::string_view err) {
  std::string said(trim(to_utf8(err)));
  const std::size_t at = said.rfind("error: ");
  if (at != std::string::npos) return said.substr(at + 7);
  return last_line(said);
}

}  // namespace capstone::cli
