#include "harness/project/version_source.h"

#include <fmt/format.h>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/reply/difference.h"

namespace capstone {

Result<std::string> source_of(const Project& project, const Measurement& version) {
  const fs::path file = project.sources() / (version.source_sha256 + ".cu");
  constexpr const char* kHint = "restore .capstone/sources from your version control or the archive";
  auto text = read_file(file, std::size_t{16} << 20);
  if (!text) return fail("the source of " + version.version + " is missing", file.string(), kHint);
  if (sha256_hex(*text) != version.source_sha256)
    return fail("the source of " + version.version + " was changed after it was judged", file.string(),
                kHint);
  return text;
}

std::string expectation_and_result(const LedgerView& ledger, const Measurement& version) {
  const auto expected = ledger.expected_speedup(version.candidate, version.version);
  std::string text = expected ? "expected " + format_speedup(*expected) : "no expectation";
  const bool judged = version.gate_one == GateOne::kPassed && version.gate_two != GateTwo::kNotJudged;
  text += fmt::format(", {}", judged ? label_of(version.gate_two) : label_of(version.gate_one));
  if (judged && version.measured && version.measured->speedup)
    text += " " + format_speedup(version.measured->speedup->point);
  return text;
}

Result<std::string> diff_of(const Project& project, const LedgerView& ledger, const Measurement& before,
                            const Measurement& after) {
  CAPSTONE_TRY(const std::string a, source_of(project, before));
  CAPSTONE_TRY(const std::string b, source_of(project, after));
  const auto named = [&](const Measurement& m) {
    return fmt::format("{} ({})", m.version, expectation_and_result(ledger, m));
  };
  return unified_diff(a, b, {named(before), named(after)});
}

}  // namespace capstone
