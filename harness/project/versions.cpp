#include "harness/project/versions.h"

#include <algorithm>

namespace capstone {
namespace {

// The number after the prefix; 0 if the name does not have that form.
long number_after(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return 0;
  const std::string digits = name.substr(prefix.size());
  const bool number =
      !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::stol(digits) : 0;
}

}  // namespace

Result<std::string> next_version(const LedgerView& ledger, const std::string& candidate,
                                 const std::string& sha256) {
  if (std::find(kCandidates.begin(), kCandidates.end(), candidate) == kCandidates.end())
    return fail("unknown candidate: " + candidate, {}, "the candidates are human, llm and together",
                ExitCode::kInternal);
  if (sha256.size() != 64) return fail("not a SHA-256 digest: " + sha256, {}, {}, ExitCode::kInternal);
  const std::string prefix = candidate == "human" ? "v" : candidate == "llm" ? "attempt-" : "t";
  long highest = 0;
  for (const Measurement& each : ledger.of(candidate)) {
    if (each.source_sha256 == sha256) return each.version;
    highest = std::max(highest, number_after(each.version, prefix));
  }
  return prefix + std::to_string(highest + 1);
}

}  // namespace capstone
