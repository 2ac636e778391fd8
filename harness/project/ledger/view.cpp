#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/judge_key.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/ledger/record_lines.h"
#include "harness/project/ledger/stored.h"

namespace capstone {
namespace {

// How much a measurement says about its version: 0 nothing, 1 something, 2 everything.
int weight(const Measurement& m) {
  if (m.gate_one == GateOne::kMachineFault || m.gate_one == GateOne::kNotJudgeable) return 0;
  return m.backend == Backend::kCuda ? 2 : 1;
}

// "v10" → 10, "attempt-2" → 2; any other text sorts first.
long number_of(const std::string& version) {
  std::size_t digits = version.find_last_not_of("0123456789") + 1;
  return digits < version.size() && version.size() - digits < 10 ? std::stol(version.substr(digits)) : 0;
}

// An explanation made before the first measurement gets its version now.
void name_explained(LedgerView& view) {
  for (Explanation& e : view.explanations) {
    if (!e.version.empty() || e.source_sha256.empty()) continue;
    for (const Measurement& m : view.of(e.candidate))
      if (m.source_sha256 == e.source_sha256) e.version = m.version;
  }
}

// An attempt from which something was judged cannot be withdrawn, whatever the ledger says.
void withdraw(LedgerView& view, const Withdrawal& withdrawal) {
  const std::string version = fmt::format("attempt-{}", withdrawal.attempt);
  if (std::any_of(view.llm.begin(), view.llm.end(),
                  [&](const Measurement& m) { return m.version == version; })) {
    view.damage.push_back(fmt::format("{} was judged, but a later record withdraws it", version));
    return;
  }
  std::erase_if(view.attempts, [&](const Attempt& a) { return a.number == withdrawal.attempt; });
  view.withdrawals.push_back(withdrawal);
}

// Adds a hint and the versions between which it was taken. The order of the records counts within one
// machine, times between two: what was judged elsewhere is appended when it comes back.
void add_hint(LedgerView& view, TakenHint hint, std::size_t at) {
  if (std::any_of(view.hints.begin(), view.hints.end(),
                  [&](const TakenHint& other) { return other.level == hint.level; }))
    return;  // taken on two machines
  const Record& taken = view.records[at];
  hint.time = taken.time;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < view.records.size(); ++i) {
    const Record& other = view.records[i];
    if (other.kind != "measurement") continue;
    if (const std::string by = text_at(other.body, "candidate"); by == "llm" || by == "together") continue;
    if (!view.stub_sha256.empty() && text_at(other.body, "source_sha256") == view.stub_sha256) continue;
    const std::string version = printable(text_at(other.body, "version"));
    if (!seen.insert(version).second) continue;
    const bool earlier = other.machine == taken.machine ? i < at : other.time < taken.time;
    if (earlier)
      hint.after = version;
    else if (hint.before.empty())
      hint.before = version;
  }
  view.hints.push_back(std::move(hint));
}

bool has_speedup(const Measurement& m) {
  return m.backend == Backend::kCuda && m.measured && m.measured->speedup;
}

}  // namespace

std::string text_of(const std::vector<Voucher>& vouchers, const std::map<std::string, std::string>& names) {
  std::vector<std::string> parts;
  for (const Voucher& v : vouchers) {
    if (v.key.empty()) {
      parts.push_back(fmt::format("{} by the student's own word", v.measurements));
      continue;
    }
    const auto known = names.find(v.key);
    parts.push_back(fmt::format("{} signed by {} ({})", v.measurements,
                                known == names.end() ? "an unknown machine" : known->second,
                                v.key.substr(0, kShortKey)));
  }
  return join(parts, ", ");
}

const std::vector<Measurement>& LedgerView::of(std::string_view candidate) const {
  return candidate == "llm" ? llm : candidate == "together" ? together : human;
}
std::vector<Measurement>& LedgerView::of(std::string_view candidate) {
  return candidate == "llm" ? llm : candidate == "together" ? together : human;
}

Result<LedgerView> read_ledger(const fs::path& path) {
  auto bytes = read_ledger_text(path);
  if (!bytes) {
    bytes.error().hint = "`capstone init` creates the ledger at .capstone/ledger.jsonl";
    return fail(bytes.error());
  }
  LedgerView view;
  bool measured = false;
  std::vector<std::pair<std::size_t, TakenHint>> hints;  // by the index of their records
  for (RecordLine& each : record_lines(*bytes)) {
    for (const std::string& damage : each.damage) view.damage.push_back(at_line(each.line, damage));
    if (!each.record) continue;
    view.records.push_back(std::move(*each.record));
    Content& content = each.content;
    if (const Record& record = view.records.back(); record.kind == "init")
      if (text_at(record.body, "started_from").empty())
        view.stub_sha256 = text_at(record.body, "kernel_sha256");
    if (content.prediction) {
      // Older releases counted a measurement of the stub as the first one.
      content.prediction->before_first_measurement |= !measured;
      view.predictions.push_back(std::move(*content.prediction));
    }
    if (content.attempt) view.attempts.push_back(std::move(*content.attempt));
    if (content.explanation) view.explanations.push_back(std::move(*content.explanation));
    if (content.hint) hints.emplace_back(view.records.size() - 1, std::move(*content.hint));
    if (content.withdrawal) withdraw(view, *content.withdrawal);
    if (content.measurement) {
      measured |= !view.is_of_stub(*content.measurement);
      auto& list = view.of(content.measurement->candidate);
      list.push_back(std::move(*content.measurement));
    }
  }
  name_explained(view);
  for (auto& [at, hint] : hints) add_hint(view, std::move(hint), at);
  return view;
}

std::vector<const Measurement*> LedgerView::versions(const std::string& candidate) const {
  std::map<std::string, const Measurement*> last;
  for (const Measurement& each : of(candidate)) {
    const Measurement*& kept = last[each.version];
    if (!kept || weight(each) >= weight(*kept)) kept = &each;
  }
  std::vector<const Measurement*> ordered;
  for (const auto& [version, measurement] : last) ordered.push_back(measurement);
  std::stable_sort(ordered.begin(), ordered.end(), [](const Measurement* a, const Measurement* b) {
    return number_of(a->version) < number_of(b->version);
  });
  return ordered;
}

std::vector<const Measurement*> LedgerView::built_versions() const {
  std::vector<const Measurement*> built = versions("human");
  std::erase_if(built, [&](const Measurement* v) {
    return is_of_stub(*v) || std::none_of(human.begin(), human.end(), [&](const Measurement& m) {
             return m.version == v->version && m.gate_one != GateOne::kBuildFailed;
           });
  });
  return built;
}

const Measurement* LedgerView::best(const std::string& candidate) const {
  const Measurement *fastest = nullptr, *last = nullptr;
  for (const Measurement* each : versions(candidate)) {
    if (each->gate_one != GateOne::kPassed) continue;
    last = each;
    if (!has_speedup(*each)) continue;
    if (!fastest || each->measured->speedup->point > fastest->measured->speedup->point) fastest = each;
  }
  return fastest ? fastest : last;
}

std::string LedgerView::reason(const std::string& candidate, const std::string& version) const {
  for (const Measurement& each : of(candidate))
    if (each.version == version && !trim(each.reason).empty()) return each.reason;
  return {};
}

std::optional<double> LedgerView::expected_speedup(const std::string& candidate,
                                                   const std::string& version) const {
  for (const Measurement& each : of(candidate))
    if (each.version == version && each.expected_speedup) return each.expected_speedup;
  return std::nullopt;
}

std::vector<Voucher> LedgerView::vouchers() const {
  std::vector<Voucher> all;
  for (const Record& record : records) {
    if (record.kind != "measurement") continue;
    const std::string key = record.signature ? record.signature->key : std::string();
    auto known = std::find_if(all.begin(), all.end(), [&](const Voucher& v) { return v.key == key; });
    if (known == all.end()) known = all.insert(all.end(), {key, 0});
    ++known->measurements;
  }
  return all;
}

const Explanation* LedgerView::explanation(const std::string& candidate, const std::string& version) const {
  const Json sizes = counted_sizes();
  const Explanation *last = nullptr, *comparable = nullptr;
  for (const Explanation& each : explanations)
    if (each.candidate == candidate && each.version == version) {
      last = &each;
      if (each.sizes == sizes) comparable = &each;
    }
  return comparable ? comparable : last;
}

Json LedgerView::counted_sizes() const {
  std::vector<std::pair<Json, std::set<std::pair<std::string, std::string>>>> versions;
  for (const Explanation& each : explanations) {
    if (each.version.empty()) continue;
    auto at = std::find_if(versions.begin(), versions.end(),
                           [&](const auto& one) { return one.first == each.sizes; });
    if (at == versions.end()) {
      versions.emplace_back();
      at = std::prev(versions.end());
      at->first = each.sizes;
    }
    at->second.insert({each.candidate, each.version});
  }
  const auto most = std::max_element(versions.begin(), versions.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  return most == versions.end() ? Json() : most->first;
}

const Measurement* LedgerView::find(const std::string& version) const {
  for (const char* candidate : kCandidates)
    for (const Measurement* each : versions(candidate))
      if (each->version == version) return each;
  return nullptr;
}

}  // namespace capstone
