#include "cli/bundling.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/remote.h"
#include "harness/project/versions.h"
#include "harness/submit/bundle.h"

namespace capstone::cli {

Result<Receipt> pack_candidates(const Session& session, const Project& project, const std::vector<Candidate>& candidates, const fs::path& out) {
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  add_pending_versions(project, ledger);
  BundleRequest request;
  request.tool = session.resources.version;
  request.contestants.clear();
  request.options["candidates"] = Json::array();
  for (const Candidate& candidate : candidates) {
    CAPSTONE_TRY(std::string text, read_file(candidate.source, 16u << 20));
    CAPSTONE_TRY(std::string digest, keep_source(project.sources(), text));
    std::string version = candidate.version;
    if (version.empty()) {
      CAPSTONE_TRY(version, next_version(ledger, candidate.contestant, digest));
    }
    std::error_code code;
    request.contestants.push_back(candidate.contestant == "llm" ? version : candidate.contestant);
    Json entry{{"contestant", candidate.contestant}, {"source", fs::relative(candidate.source, project.root, code).string()},
               {"version", version}, {"reason", candidate.reason}};
    if (candidate.expected_speedup) entry["expected_speedup"] = *candidate.expected_speedup;
    request.options["candidates"].push_back(std::move(entry));
  }
  return pack_bundle(project, request, out);
}

Result<JudgedBundle> judge_bundle(const Session& session, const fs::path& file, const fs::path& out, const JudgeOptions& options) {
  const fs::path place = session.resources.cache / "bundles" / fmt::format("{}-{}", file.stem().string(), ::getpid());
  std::error_code code;
  fs::remove_all(place, code);
  CAPSTONE_CHECK(make_folders(place.parent_path()));
  CAPSTONE_TRY(Bundle bundle, unpack_bundle(file, place));
  CAPSTONE_TRY(Project project, open_project(bundle.root));
  std::vector<Candidate> candidates;
  for (const Json& entry : bundle.options.value("candidates", Json::array())) {
    fs::path source = project.root / fs::path(entry.value("source", "")).lexically_normal();
    if (!fs::exists(source, code)) return fail("the bundle lacks " + entry.value("source", ""), file.string(), "pack it again");
    std::optional<double> expected;
    if (entry.contains("expected_speedup")) expected = entry["expected_speedup"].get<double>();
    candidates.push_back({entry.value("contestant", "human"), source, entry.value("reason", ""), expected, entry.value("version", "")});
  }
  if (candidates.empty()) return fail("the bundle names no contestant", file.string(), "pack it again with this version of capstone");
  JudgedBundle judged;
  CAPSTONE_TRY(judged.measurements, judge_and_record(project, std::move(candidates), options, session));
  judged.result = out.empty() ? fs::path(file.string() + ".result.jsonl") : out;
  CAPSTONE_TRY(std::string ledger, read_file(project.ledger()));
  CAPSTONE_CHECK(write_file_atomic(judged.result, ledger));
  fs::remove_all(place, code);
  return judged;
}

}  // namespace capstone::cli
