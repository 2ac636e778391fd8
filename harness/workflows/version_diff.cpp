#include "harness/workflows/version_diff.h"

#include <fmt/format.h>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/reply/difference.h"
#include "harness/project/version_source.h"

namespace capstone::workflows {
namespace {

// "2" is v2.
Result<const Measurement*> version_named(const LedgerView& ledger, const std::string& name) {
  const bool number = name.find_first_not_of("0123456789") == std::string::npos;
  std::vector<std::string> known;
  for (const char* candidate : kCandidates)
    for (const Measurement* m : ledger.versions(candidate)) {
      if (m->version == name || (number && m->version == "v" + name)) return m;
      known.push_back(m->version);
    }
  return fail("there is no version " + name, ".capstone/ledger.jsonl", "measured: " + join(known, ", "));
}

}  // namespace

Result<VersionDiff> version_diff(const std::string& before, const std::string& after,
                                 const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const LedgerView ledger, read_ledger(project.ledger()));
  if (ledger.human.empty())
    return fail("the human kernel was never measured, so there is no version to compare with",
                project.human_kernel().string(), "capstone measure -m \"first version\"");
  const Measurement* first = &ledger.human.back();
  if (!before.empty()) {
    CAPSTONE_TRY(first, version_named(ledger, before));
  }
  if (!after.empty()) {
    CAPSTONE_TRY(const Measurement* second, version_named(ledger, after));
    CAPSTONE_TRY(std::string text, diff_of(project, ledger, *first, *second));
    return VersionDiff{first->version, second->version, std::move(text)};
  }
  CAPSTONE_TRY(const std::string old, source_of(project, *first));
  CAPSTONE_TRY(const std::string now, read_file(project.human_kernel(), std::size_t{16} << 20));
  std::error_code code;
  const std::string file = fs::relative(project.human_kernel(), project.root, code).generic_string();
  return VersionDiff{
      first->version, file,
      unified_diff(old, now,
                   {fmt::format("{} ({})", first->version, expectation_and_result(ledger, *first)),
                    file + " (not measured)"})};
}

}  // namespace capstone::workflows
