// Checks without which no other evidence of a criterion counts: a kernel of the student's that builds and
// ends, and answers that say something.
#include <fmt/format.h>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/stub.h"
#include "rubric/checks.h"

namespace capstone::detail {
namespace {

constexpr std::size_t kMaxKernel = 16u << 20;  // [B]

// What the judge last said about the kernel that was handed in; empty: nothing.
std::optional<GateOne> verdict_on(const std::string& source_sha256, const Sources& s) {
  if (s.rejudged && s.rejudged->human) return s.rejudged->human;
  std::optional<GateOne> last;
  for (const Measurement& m : s.ledger.human)
    if (m.source_sha256 == source_sha256 && m.judged()) last = m.gate_one;
  return last;
}

}  // namespace

Fact own_kernel(const Sources& s) {
  const auto text = read_file(s.project.human_kernel(), kMaxKernel);
  if (!text) return {0, true, "there is no human kernel", {}};
  const bool stub =
      sha256_hex(*text) == s.ledger.stub_sha256 || trim(*text) == trim(stub_kernel(s.project.problem));
  return {stub ? 0.0 : 1.0,
          true,
          stub ? "the human kernel is the stub that `init` writes" : "the human kernel is not the stub",
          {}};
}

Fact kernel_runs(const Sources& s) {
  if (Fact own = own_kernel(s); own.met == 0) return own;
  const auto text = read_file(s.project.human_kernel(), kMaxKernel);
  const auto verdict = text ? verdict_on(sha256_hex(*text), s) : std::nullopt;
  if (!verdict) return {0, false, "the submitted kernel was not judged", {}};
  const bool runs = *verdict != GateOne::kBuildFailed && *verdict != GateOne::kTimedOut;
  return {runs ? 1.0 : 0.0, true, fmt::format("the submitted kernel: {}", label_of(*verdict)), {}};
}

Fact answers_have_content(const Sources& s) {
  double met = 0;
  std::size_t asked = 0, content = 0;
  for (int number = 1; number <= kWorklogSections; ++number) {
    met += answered_share(s, number) / kWorklogSections;
    for (const Question& q : s.worklog.section(number).questions) {
      ++asked;
      content += q.content;
    }
  }
  return {met,
          true,
          asked == 0 ? fmt::format("no question is left; the sections have {} words", s.worklog.words())
                     : fmt::format("{} of {} questions have an answer with content", content, asked),
          {}};
}

}  // namespace capstone::detail
