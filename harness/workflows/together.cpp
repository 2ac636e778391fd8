#include "harness/workflows/together.h"

#include "harness/base/digest.h"
#include "harness/project/version_source.h"
#include "harness/workflows/judge_and_record.h"

namespace capstone::workflows {
namespace {

struct Start {
  std::string name, bytes, ending;
};

// The name of a version with this very source; else what the user would call the file.
std::string named(const LedgerView& ledger, const std::string& candidate, const std::string& bytes,
                  std::string otherwise) {
  const std::string digest = sha256_hex(bytes);
  for (const Measurement* m : ledger.versions(candidate))
    if (m->source_sha256 == digest) return m->version;
  return otherwise;
}

Result<Start> start_of(const Project& project, const LedgerView& ledger, const std::string& from) {
  if (from == "human") {
    CAPSTONE_TRY(std::string bytes, read_file(project.human_kernel(), std::size_t{16} << 20));
    const std::string ending = project.human_kernel().extension().string();
    std::string name = named(ledger, "human", bytes, "human/kernel" + ending);
    return Start{std::move(name), std::move(bytes), ending};
  }
  if (from == "llm") {
    const auto attempt = latest_attempt(project, ledger);
    if (!attempt)
      return fail(
          "there is no model attempt with code yet", (project.root / "llm").string(),
          "capstone llm prompt, give the prompt to a model, then: capstone llm add REPLY --model NAME");
    CAPSTONE_TRY(std::string bytes, read_file(attempt->source, std::size_t{16} << 20));
    return Start{attempt->version, std::move(bytes), attempt->source.extension().string()};
  }
  const Measurement* version = ledger.find(from);
  if (!version)
    return fail("there is no version " + from, project.ledger().string(),
                "begin with human, llm, or a version that was measured: v3, attempt-2");
  CAPSTONE_TRY(std::string bytes, source_of(project, *version));
  return Start{version->version, std::move(bytes),
               fs::path(version->source).extension() == ".py" ? ".py" : ".cu"};
}

}  // namespace

Result<BegunTogether> begin_together(const std::string& from, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(const FileLock lock, lock_project(project));
  std::error_code code;
  if (fs::exists(project.together_kernel(), code))
    return fail("the kernel made together has begun already", project.together_kernel().string(),
                "go on with it, or move it away first; its measured versions stay in the ledger");
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(const Start start, start_of(project, ledger, from));
  const fs::path file = project.root / "together" / ("kernel" + start.ending);
  CAPSTONE_CHECK(make_folders(file.parent_path()));
  CAPSTONE_CHECK(write_new_file(file, start.bytes));
  CAPSTONE_TRY(const std::string digest, keep_source(project.sources(), start.bytes));
  CAPSTONE_TRY(const std::string machine, chain_id(workspace));
  CAPSTONE_CHECK(append_record(project.ledger(), "together",
                               {{"from", start.name}, {"source_sha256", digest}}, machine));
  return BegunTogether{file, start.name};
}

Result<TogetherHistory> together_here(const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  TogetherHistory history;
  CAPSTONE_TRY(history.ledger, read_ledger(project.ledger()));
  history.begun_from = together_begun_from(history.ledger);
  history.steps = together_history(project, history.ledger);
  return history;
}

}  // namespace capstone::workflows
