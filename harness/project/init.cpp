#include "harness/project/init.h"

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/definition_copy.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/ledger/machine.h"
#include "harness/project/scaffold.h"
#include "harness/project/staging.h"
#include "harness/project/stub.h"

namespace capstone {
namespace {

// The first content of human/kernel.cu, or of kernel.py.
struct Beginning {
  std::string bytes;
  std::string from;  ///< name of the rung; empty: the stub
};

// One of our rungs gets the name that the ladder uses; any other file only its file name (paths are private).
std::string rung_name(const fs::path& rung, const Resources& resources) {
  std::error_code code;
  const fs::path relative =
      fs::weakly_canonical(rung, code)
          .lexically_relative(fs::weakly_canonical(resources.reference_kernels(), code));
  const bool ours = !relative.empty() && *relative.begin() != "..";
  return (ours ? relative : rung.filename()).generic_string();
}

Result<Beginning> beginning(const InitOptions& options, const Resources& resources) {
  if (!options.language.empty()) {
    CAPSTONE_TRY(std::string module, stub_module(options.problem, options.language));
    return Beginning{std::move(module), {}};
  }
  if (!options.from_rung) return Beginning{stub_kernel(options.problem), {}};
  const fs::path& rung = *options.from_rung;
  CAPSTONE_TRY(std::string bytes, read_file(rung, std::size_t{1} << 20));
  if (bytes.find("launch(") == std::string::npos)
    return fail("this file defines no launch()", rung.string(),
                "use one of the problem's reference kernels, or omit --from to get a stub");
  return Beginning{std::move(bytes), rung_name(rung, resources)};
}

std::vector<ProjectFile> own_files(const InitOptions& options, const ProjectConfig& config,
                                   const Beginning& kernel) {
  const Problem& problem = options.problem;
  const bool python = !options.language.empty();
  const std::string file = python ? "human/kernel.py" : "human/kernel.cu";
  return {
      {"README.md", replace_all(project_readme(problem), "human/kernel.cu", file),
       "the next three commands, and what each file is for"},
      {file, kernel.bytes,
       python                ? "your kernel: the reference as ModelNew, and a pattern; start here"
       : kernel.from.empty() ? "your kernel: a stub that compiles; start here"
                             : "your kernel, copied from " + kernel.from},
      {"worklog.md", options.worklog_text, "your worklog: five sections with questions; this is graded"},
      {"llm/README.md", model_readme(problem), "how to ask the model"},
      {"capstone.yaml", config_text(config), "the authors and the problem"},
      {".gitignore", git_ignore(), "keeps build products out of version control"},
      {".gitattributes", git_attributes(), "prevents line-end changes, which would break the digests"},
  };
}

Json init_body(const ProjectConfig& config, const Beginning& kernel) {
  return {{"problem_id", config.problem_id},
          {"problem_digest", config.problem_digest},
          {"started_from", config.started_from},
          {"kernel_sha256", sha256_hex(kernel.bytes)}};
}

// Every later verdict is bound to this pinned copy, so it must match the digest.
Result<void> check_copy(const fs::path& folder, const Problem& problem) {
  CAPSTONE_TRY(const std::string digest, digest_of_definition(folder));
  if (digest == problem.digest) return {};
  return fail("the problem changed while it was copied", problem.folder.string(), "run the command again");
}

Result<void> begin_ledger(const fs::path& root, const Json& body, const fs::path& state) {
  CAPSTONE_TRY(const std::string machine, machine_id(state));
  const fs::path ledger = root / ".capstone" / "ledger.jsonl";
  CAPSTONE_CHECK(append_record(ledger, "init", body, machine));
  std::error_code ignored;
  fs::remove(root / ".capstone" / "ledger.jsonl.lock", ignored);
  CAPSTONE_CHECK(make_folders(root / ".capstone" / "sources"));
  return {};
}

}  // namespace

Result<InitReport> init_project(const InitOptions& options, const Resources& resources) {
  CAPSTONE_TRY(const Beginning kernel, beginning(options, resources));
  CAPSTONE_TRY(std::vector<ProjectFile> definition, copy_of_definition(options.problem));
  const ProjectConfig config{options.members, options.problem.id, options.problem.digest, kernel.from,
                             options.created.empty() ? utc_now() : options.created};
  std::vector<ProjectFile> files = own_files(options, config, kernel);
  files.insert(files.end(), definition.begin(), definition.end());

  CAPSTONE_TRY(Staging staging, Staging::begin(options.directory));
  InitReport report;
  for (const ProjectFile& file : files) {
    CAPSTONE_CHECK(write_new_file(staging.folder() / file.path, file.bytes));
    report.files.push_back({file.path, file.purpose});
  }
  CAPSTONE_CHECK(check_copy(staging.folder() / "problem", options.problem));
  CAPSTONE_CHECK(begin_ledger(staging.folder(), init_body(config, kernel),
                              options.state.empty() ? resources.cache : options.state));
  report.files.push_back({".capstone/ledger.jsonl", "the record of all measurements; never edit it"});
  CAPSTONE_CHECK(staging.commit("capstone.yaml"));
  std::error_code code;
  report.root = fs::canonical(options.directory, code);
  return report;
}

}  // namespace capstone
