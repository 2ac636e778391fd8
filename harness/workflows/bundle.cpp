#include "harness/workflows/bundle.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/text.h"
#include "harness/model/labels.h"
#include "harness/project/versions.h"
#include "harness/workflows/catalogue.h"
#include "harness/workflows/pending_versions.h"

namespace capstone::workflows {

Result<BundleReceipt> pack_candidates(const Workspace& workspace, const Project& project,
                                      const std::vector<CandidateVersion>& candidates, const fs::path& out,
                                      const ProgressSink& progress) {
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  add_pending_versions(project, ledger);
  BundleRequest request;
  request.tool = workspace.resources.version;
  request.candidates.clear();
  request.options["candidates"] = Json::array();
  for (const CandidateVersion& candidate : candidates) {
    CAPSTONE_TRY(std::string text, read_file(candidate.source, 16u << 20));
    if (candidate.name == "human" && sha256_hex(text) == ledger.stub_sha256)
      return fail("this is still the stub that `capstone init` wrote: there is nothing to judge",
                  candidate.source.string(), "write the kernel first; check it here: capstone try");
    CAPSTONE_TRY(std::string digest, keep_source(project.sources(), text));
    std::string version = candidate.version;
    if (version.empty()) {
      CAPSTONE_TRY(version, next_version(ledger, candidate.name, digest));
    }
    std::error_code code;
    request.candidates.push_back(candidate.name == "llm" ? version : candidate.name);
    Json entry{{"candidate", candidate.name},
               {"source", fs::relative(candidate.source, project.root, code).string()},
               {"version", version},
               {"reason", candidate.reason}};
    if (candidate.expected_speedup) entry["expected_speedup"] = *candidate.expected_speedup;
    request.options["candidates"].push_back(std::move(entry));
  }
  CAPSTONE_TRY(BundleReceipt receipt, pack_bundle(project, request, out));
  for (const SkippedFile& file : receipt.left_out)
    report_note(progress,
                fmt::format("note: {} is not packed: {}; a kernel that includes it will not build elsewhere",
                            file.path, file.reason));
  return receipt;
}

namespace {

constexpr const char* kPackAgain = "pack it again: capstone measure --bundle FILE";

// A bundle is untrusted input: compiler messages quote what is read, so only packed files may be read.
Result<fs::path> source_in(const Bundle& bundle, const std::string& named, const fs::path& file) {
  const fs::path source(named);
  if (source.is_absolute() || std::find(source.begin(), source.end(), "..") != source.end())
    return fail("bundle refused: it names a kernel outside itself: " + to_utf8(named), file.string(),
                kPackAgain);
  const bool kernel = source.filename() == "kernel.cu" || source.filename() == "kernel.py";
  if (source.empty() || !kernel ||
      (*source.begin() != "human" && *source.begin() != "llm" && *source.begin() != "together"))
    return fail("bundle refused: not the name of a candidate's kernel: " + to_utf8(named), file.string(),
                "a kernel is human/kernel.cu, llm/attempt-N/kernel.cu or together/kernel.cu; " +
                    std::string(kPackAgain));
  std::error_code code;
  if (!fs::is_regular_file(fs::symlink_status(bundle.root / source, code)))
    return fail("the bundle lacks " + to_utf8(named), file.string(), kPackAgain);
  return bundle.root / source.lexically_normal();
}

Result<std::vector<CandidateVersion>> candidates_in(const Bundle& bundle, const fs::path& file) {
  std::vector<CandidateVersion> candidates;
  for (const Json& entry : bundle.options.value("candidates", Json::array())) {
    const std::string candidate = text_at(entry, "candidate");
    if (std::find(kCandidates.begin(), kCandidates.end(), candidate) == kCandidates.end())
      return fail("bundle refused: a candidate is neither human nor llm nor together", file.string(),
                  kPackAgain);
    CAPSTONE_TRY(fs::path source, source_in(bundle, text_at(entry, "source"), file));
    std::optional<double> expected;
    if (entry.contains("expected_speedup") && entry["expected_speedup"].is_number())
      expected = entry["expected_speedup"].get<double>();
    candidates.push_back({candidate, source, text_at(entry, "reason"), expected, text_at(entry, "version")});
  }
  if (candidates.empty())
    return fail("the bundle names no candidate", file.string(),
                "pack it again with this version of capstone");
  return candidates;
}

// The definition decides what is correct, and its oracle runs in this process, outside any sandbox: so it
// must be the catalogue's, or be trusted explicitly. The catalogue's replaces an equal copy.
// @return labels for the record
Result<std::vector<std::string>> settle_definition(const Workspace& workspace, Project& project,
                                                   const fs::path& file, bool trust) {
  const Problem& packed = project.problem;
  auto ours = catalogue_problem(workspace, packed.id);
  if (ours && ours->digest == packed.digest) {
    project.problem = std::move(*ours);
    return std::vector<std::string>{};
  }
  const std::string why =
      ours ? "differs from the one of that name in the catalogue here" : "is not in the catalogue here";
  if (trust)
    return std::vector<std::string>{
        fmt::format("{}{} {}; it came with the bundle (SHA-256 {}) and was trusted", kForeignDefinition,
                    packed.id, why, packed.digest.substr(0, 12))};
  return fail(
      fmt::format("the bundle's problem, {}, {}, and a GPU here would run its baseline outside the sandbox",
                  packed.id, why),
      file.string(),
      std::string(ours ? "pack it with the same version of capstone; or, " : "") +
          "if you know who made it: --trust-problem");
}

Result<JudgedBundle> judge_unpacked(const Workspace& workspace, const Bundle& bundle,
                                    const JudgeBundleRequest& request, const ProgressSink& progress) {
  CAPSTONE_TRY(Project project, open_project(bundle.root));
  CAPSTONE_CHECK(require_pinned_problem(project));
  CAPSTONE_TRY(std::vector<CandidateVersion> candidates, candidates_in(bundle, request.file));
  CAPSTONE_TRY(const std::vector<std::string> labels,
               settle_definition(workspace, project, request.file, request.trust_problem));
  JudgedBundle judged;
  CAPSTONE_TRY(judged.measurements,
               judge_and_record(project, std::move(candidates), request.judge, workspace, progress, labels));
  judged.result = request.out.empty() ? fs::path(request.file.string() + ".result.jsonl") : request.out;
  CAPSTONE_TRY(std::string ledger, read_file(project.ledger()));
  CAPSTONE_CHECK(write_file_atomic(judged.result, ledger));
  return judged;
}

}  // namespace

Result<JudgedBundle> judge_bundle(const JudgeBundleRequest& request, const Workspace& workspace,
                                  const ProgressSink& progress) {
  const ScratchFolder place(workspace.resources.cache / "bundles" / request.file.stem());
  CAPSTONE_CHECK(make_folders(place.path().parent_path()));
  CAPSTONE_TRY(Bundle bundle, unpack_bundle(request.file, place.path()));
  auto judged = judge_unpacked(workspace, bundle, request, progress);
  if (judged) return judged;
  Error error = judged.error();  // the scratch folder is removed: errors name the bundle instead
  error.where = replace_all(error.where, place.path().string() + "/", request.file.string() + ": ");
  return fail(std::move(error));
}

}  // namespace capstone::workflows
